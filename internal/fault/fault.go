// Package fault is the form of every error that reaches a person: what failed,
// why, and what to do about it, on one line, and whether the request was wrong
// (the caller asked for something impossible) or the run failed (the input or
// the machine let it down).
//
// The command line prints "cohort: <what>: <why>: <what to do>" and exits with
// status 2 for a wrong request and 1 for a failed run.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error says what failed, why, and what to do. It wraps Err, which may be nil.
type Error struct {
	// What names the thing that failed: a flag, a field, a file.
	What string
	// Why gives the reason with the value and the rule it breaks.
	Why string
	// Do says what the reader can do about it; empty when Why already says it.
	Do string
	// Wrong is true if the request was wrong, false if the run failed.
	Wrong bool
	// Err is the cause, for errors.Is and errors.As.
	Err error
}

// Error returns "what: why: what to do" on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.What)
	if e.Why != "" {
		b.WriteString(": ")
		b.WriteString(e.Why)
	}
	if e.Do != "" {
		b.WriteString(": ")
		b.WriteString(e.Do)
	}
	return Visible(strings.NewReplacer("\n", " ", "\r", " ").Replace(b.String()))
}

// Visible is text with its control characters, other than line ends, as Go writes them ("\x1b"): names of
// columns, files and parties come from others, and must not steer the terminal that shows them.
func Visible(text string) string {
	if !strings.ContainsFunc(text, steers) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if steers(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// steers tells whether a terminal may act on a character instead of showing it: control characters, and those that
// turn the direction of writing.
func steers(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Request returns an error for a wrong request: a flag, a range, a combination
// of options, a size, a budget. The command line exits with status 2.
func Request(what, why, do string) error {
	return &Error{What: what, Why: why, Do: do, Wrong: true}
}

// Failed returns an error for a run that failed: a fault in a file's content,
// an unreadable path, a broken message. The command line exits with status 1.
// cause may be nil; its text is not repeated, so why must carry it.
func Failed(what, why, do string, cause error) error {
	return &Error{What: what, Why: why, Do: do, Err: cause}
}

// File is Failed for a file that could not be used. The system's errors name the file, too: it is
// not said twice.
func File(path, do string, cause error) error {
	why := cause.Error()
	var p *fs.PathError
	if errors.As(cause, &p) && p.Path == path {
		why = p.Err.Error()
	}
	return Failed(path, why, do, cause)
}

// Range is Request with the usual text of a check: "name: is value, must be
// rule".
func Range(name string, value any, rule string) error {
	return Request(name, fmt.Sprintf("is %v, must be %s", value, rule), "")
}

// Named returns the one of all that has a name, whatever its letters' case, or
// refuses the request and lists the names.
func Named[T any](what, name string, all []T, nameOf func(T) string) (T, error) {
	var names []string
	for _, x := range all {
		if strings.EqualFold(nameOf(x), name) {
			return x, nil
		}
		names = append(names, nameOf(x))
	}
	var none T
	return none, Unknown(what, name, names)
}

// Unknown is Request for a word that is none of the names, with what was meant where that can be told.
func Unknown(what, word string, names []string) error {
	return Request(what, fmt.Sprintf("%q is unknown%s", word, Meant(word, names)), "choose one of "+
		strings.Join(names, ", "))
}

// IsRequest reports whether err, or an error that it wraps, is a wrong request.
func IsRequest(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Wrong
}

// Count is a number of things as people read it: 1 column, 2 columns, 3 parties, 4 ways.
func Count(n int, thing string) string {
	switch stem, ends := strings.CutSuffix(thing, "y"); {
	case n == 1:
	case ends && !strings.HasSuffix(stem, "a"):
		thing = stem + "ies"
	default:
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
