package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muesli/roff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands to a folder",
		Example: "  cohort man /usr/local/share/man/man1",
		Args:    arguments(1, 1, "name one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := os.MkdirAll(args[0], 0o755)
			if err == nil {
				err = writeManual(cmd.Root(), args[0])
			}
			if err != nil {
				return unwritable("man", args[0], err)
			}
			return nil
		},
	}
}

// writeManual writes the page of a command and those of the commands below it. (Cobra's own pages
// would come with a parser of Markdown, whose tables take a fifth of the program's start.)
func writeManual(c *cobra.Command, dir string) error {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			if err := writeManual(below, dir); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, manualName(c)+".1"), []byte(manualPage(c)), 0o644)
}

func manualName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func manualPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	page := roff.NewDocument()
	text := func(s string) { page.Text(strings.ReplaceAll(s, "%", "%%")) } // Text takes a format
	page.Heading(1, manualName(c), "Cohort", time.Now())
	page.Section("Name")
	text(manualName(c) + " - " + c.Short)
	page.Section("Synopsis")
	page.TextBold(c.UseLine())
	if c.Long != "" {
		page.Section("Description")
		for line := range strings.Lines(c.Long) {
			if strings.TrimSpace(line) == "" {
				page.Paragraph()
				continue
			}
			text(strings.TrimRight(line, "\n"))
			page.EndSection()
		}
	}
	page.Section("Options")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		page.TaggedParagraph(-1)
		page.TextBold("--" + f.Name)
		text(" " + value)
		page.EndSection()
		text(usage)
		page.EndSection()
	})
	if c.Example != "" {
		page.Section("Examples")
		for line := range strings.Lines(c.Example) {
			page.Paragraph()
			text(strings.TrimSpace(line))
			page.EndSection()
		}
	}
	if names := relatedPages(c); len(names) > 0 {
		page.Section("See also")
		text(strings.Join(names, ", "))
	}
	page.EndSection()
	return page.String()
}

// relatedPages names the pages of the command above and of those right below.
func relatedPages(c *cobra.Command) []string {
	var names []string
	if c.HasParent() {
		names = append(names, manualName(c.Parent())+"(1)")
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, manualName(below)+"(1)")
		}
	}
	return names
}
