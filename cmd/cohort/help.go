package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/bench/table"
	"github.com/cohort-engine/cohort/engine/catalog"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// everyday are the flags that the help of a command shows where no method is named.
func everyday() []string {
	return []string{"data", "columns", "k", "method", "epsilon", "bounds", "clients", "parties", "seed", "format", "out",
		"labels-out", "report"}
}

// explain gives cmd, whose own flags are named, a help that fits the question: the flags that everybody
// needs, or with --method all that the method takes. It also completes names and values.
func (o *options) explain(cmd *cobra.Command, own ...string) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		m, err := catalog.Methods().Find(o.method)
		if err != nil {
			o.shortHelp(cmd, own)
			return
		}
		o.methodHelp(cmd, m)
	})
	o.complete(cmd)
}

// help writes to a command's output in lines that fit.
type help struct {
	out   io.Writer
	width int
}

func newHelp(cmd *cobra.Command) help {
	return help{cmd.OutOrStdout(), textWidth(cmd.OutOrStdout())}
}

func (h help) paragraph(text string) {
	io.WriteString(h.out, table.Paragraph(text, 0, 0, h.width))
}

// hanging writes an item of a list, whose further lines stand further in.
func (h help) hanging(indent int, text string) {
	io.WriteString(h.out, table.Paragraph(text, indent, 2, h.width))
}

// text writes paragraphs, of which those that are indented have lines of their own.
func (h help) text(long string) {
	for _, paragraph := range strings.Split(long, "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			fmt.Fprintln(h.out, paragraph)
		} else {
			h.paragraph(paragraph)
		}
		fmt.Fprintln(h.out)
	}
}

// example writes command lines, folded as a shell takes them.
func (h help) example(lines string) {
	if lines == "" {
		return
	}
	fmt.Fprintf(h.out, "\nExamples:\n")
	lines = strings.ReplaceAll(lines, "\\\n", "")
	for _, command := range strings.Split(lines, "\n") {
		folded := table.Fold(quotedWhole(command), h.width-len("      ")-len(" \\"))
		for i, line := range folded {
			line = strings.ReplaceAll(line, "\x00", " ")
			indent, end := "  ", " \\"
			if i > 0 {
				indent = "      "
			}
			if i == len(folded)-1 {
				end = ""
			}
			fmt.Fprintf(h.out, "%s%s%s\n", indent, line, end)
		}
	}
}

// quotedWhole has no blanks between quotes, but zero bytes: what is quoted stays on one line.
func quotedWhole(command string) string {
	quoted := false
	return strings.Map(func(r rune) rune {
		if r == '"' {
			quoted = !quoted
		}
		if quoted && r == ' ' {
			return 0
		}
		return r
	}, command)
}

// plainHelp is the help of commands that have none of their own.
func plainHelp(cmd *cobra.Command, _ []string) {
	h := newHelp(cmd)
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	h.text(long)
	fmt.Fprintf(h.out, "Usage:\n")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(h.out, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(h.out, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				h.entry(c.Name(), c.Short)
			}
		}
	}
	h.example(cmd.Example)
	h.flags("Flags", func(fs *pflag.FlagSet) { fs.AddFlagSet(cmd.LocalFlags()) })
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(h.out, "\n%s COMMAND --help says more about a command.\n", cmd.CommandPath())
	}
}

// flags lists flags under a heading.
func (h help) flags(heading string, add func(*pflag.FlagSet)) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SortFlags = false
	add(fs)
	if fs.HasFlags() {
		fmt.Fprintf(h.out, "\n%s:\n%s", heading, fs.FlagUsagesWrapped(h.width))
	}
}

// entry writes a name and, beside it, what it is.
func (h help) entry(name, about string) { h.entryAt(18, name, about) }

func (h help) entryAt(at int, name, about string) {
	for i, line := range table.Fold(about, h.width-at) {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(h.out, "  %-*s%s\n", at-2, name, line)
	}
}

func (o *options) shortHelp(cmd *cobra.Command, own []string) {
	h := newHelp(cmd)
	h.text(cmd.Long)
	fmt.Fprintf(h.out, "Usage:\n  %s\n", cmd.UseLine())
	h.example(cmd.Example)
	h.flags("Flags", func(fs *pflag.FlagSet) {
		for _, name := range append(everyday(), own...) {
			if f := cmd.Flags().Lookup(name); f != nil {
				fs.AddFlag(f)
			}
		}
	})
	for _, holding := range []method.Holding{method.Rows, method.Table, method.Columns} {
		fmt.Fprintf(h.out, "\nMethods, parties hold %s:\n", holding)
		for _, m := range catalog.Methods() {
			if m.Holds == holding {
				h.entry(m.Name, m.About)
			}
		}
	}
	fmt.Fprintf(h.out, "\n%s --method NAME --help lists everything that a method takes.\n", cmd.CommandPath())
	h.paragraph("cohort methods compares the methods. Parties, columns, rows and clusters are counted from 1.")
}

func (o *options) methodHelp(cmd *cobra.Command, m *method.Method) {
	h := newHelp(cmd)
	h.paragraph(m.Name + ": " + m.About + ".")
	fmt.Fprintln(h.out)
	h.entry("parties hold", string(m.Holds))
	private := "private against"
	if !m.Private {
		private = "not private"
	}
	h.entry(private, m.Against)
	h.entry("choose it when", m.When)
	h.entry("cost", m.Cost)
	h.flags("Options of "+m.Name, func(fs *pflag.FlagSet) {
		for _, option := range m.Options() {
			if own := cmd.Flags().Lookup(option.Name); own != nil {
				f := fs.VarPF(&setting{kind: option.Type()}, option.Name, "", option.About)
				f.DefValue, f.NoOptDefVal = option.Default, own.NoOptDefVal
			}
		}
	})
	h.flags("Flags of "+cmd.CommandPath(), func(fs *pflag.FlagSet) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, other := f.Value.(*setting)
			if takes := scope(f.Name); !other && (takes == nil || takes(m)) {
				fs.AddFlag(f)
			}
		})
	})
}

// complete offers the names of methods, of built-in sets, and the values of options.
func (o *options) complete(cmd *cobra.Command) {
	offer := func(flag string, values func() []string, directive cobra.ShellCompDirective) {
		if cmd.Flags().Lookup(flag) == nil {
			return
		}
		err := cmd.RegisterFlagCompletionFunc(flag,
			func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return values(), directive
			})
		if err != nil {
			panic("cohort: " + err.Error()) // the flag was offered twice
		}
	}
	const only = cobra.ShellCompDirectiveNoFileComp
	offer("method", func() (names []string) {
		for _, m := range catalog.Methods() {
			names = append(names, m.Name+"\t"+m.About)
		}
		return names
	}, only)
	offer("data", func() []string { return builtinSets("builtin:") }, cobra.ShellCompDirectiveDefault)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(*setting); ok {
			offer(f.Name, func() []string { return o.optionValues(f.Name) }, only)
		}
	})
}

// builtinSets are the names of the built-in sets, with what they are.
func builtinSets(prefix string) (names []string) {
	for _, b := range dataset.Builtins() {
		names = append(names, prefix+b.Name+"\t"+b.About)
	}
	return names
}

// fixedValues are those that flags take which a package below reads.
var fixedValues = map[string][]string{
	"missing":            {dataset.RefuseMissing.String(), dataset.DropRow.String(), dataset.MeanOfBounds.String()},
	"header":             {"auto", "yes", "no"},
	"separator":          {",", ";", "|", "blank"},
	"comment":            {"#", "none"},
	"ledger-composition": {"basic", "zcdp", "gdp", "rdp"},
	"neighbours":         {string(privacy.AddRemove), string(privacy.ReplaceOne)},
}

// wordFlags take text that names no file.
var wordFlags = []string{"bounds", "case", "columns", "id", "label-column", "ledger-anchor", "ledger-budget", "listen",
	"max-memory", "names", "nats", "network-model", "page", "proportions", "reach", "release", "server-names", "split",
	"title", "traces"}

// takesFile tells whether files may be meant after a flag.
func takesFile(f *pflag.Flag) bool {
	switch f.Value.Type() {
	case "int", "int64", "uint64", "float64", "duration", "intSlice":
		return false
	}
	return !slices.Contains(wordFlags, f.Name)
}

// completeFixed offers the values of flags that have few, and files after none that takes no file, to cmd and the
// commands below.
func completeFixed(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		values := fixedValues[f.Name]
		switch v := f.Value.(type) {
		case *choice:
			values = notEmpty(v.allowed)
		case *setting:
			return
		}
		if _, offered := cmd.GetFlagCompletionFunc(f.Name); offered || values == nil && takesFile(f) {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name,
			cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("cohort: " + err.Error()) // the flag was offered twice
		}
	})
	for _, c := range cmd.Commands() {
		completeFixed(c)
	}
}

// optionValues are those that the method named so far takes, or those that any method takes.
func (o *options) optionValues(option string) (values []string) {
	for _, m := range catalog.Methods() {
		if o.method != "" && o.method != m.Name {
			continue
		}
		for _, p := range m.Options() {
			if p.Name != option {
				continue
			}
			for _, v := range p.Values() {
				if !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
		}
	}
	return values
}
