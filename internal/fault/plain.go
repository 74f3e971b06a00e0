package fault

import (
	"strings"
	"unicode/utf8"
)

// alone are the texts of the command line of what a library does not take, and what is said in their place.
var alone = strings.NewReplacer(" with --columns", "", " with --bounds or --bounds-file", "",
	", or --private-bounds 0.1", "", ", or choose what to do with --missing", "",
	"give --decimal-comma if numbers are written 1,5", "write numbers with a point",
	`give --separator ";", and --decimal-comma if numbers are written 1,5`, "write commas between the cells only")

// Plain is an error's text with options named as callers of a library do: without the dashes of the command line, and
// without what it alone takes.
func Plain(message string) string {
	message, _, _ = strings.Cut(message, ", such as with --columns")
	message = alone.Replace(message)
	var b strings.Builder
	for i := 0; i < len(message); i++ {
		begins := i == 0 || strings.IndexByte(" (", message[i-1]) >= 0
		if rest := message[i:]; begins && len(rest) > 2 && rest[:2] == "--" && 'a' <= rest[2] && rest[2] <= 'z' {
			i += 2
		}
		b.WriteByte(message[i])
	}
	return b.String()
}

// plain is an error with a plain text.
type plain struct {
	text string
	err  error
}

func (p *plain) Error() string { return p.text }
func (p *plain) Unwrap() error { return p.err }

// OfLibrary is an error as callers of a library read it: its text is Plain.
func OfLibrary(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if p := Plain(text); p != text {
		return &plain{p, err}
	}
	return err
}

// Cut is the beginning of a text that has at most so many bytes, in whole characters.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
