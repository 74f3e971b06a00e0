package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/cohort-engine/cohort/engine"
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
				err = doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "COHORT", Section: "1", Source: "Cohort " +
					engine.Version, Manual: "Cohort"}, args[0])
			}
			if err != nil {
				return unwritable("man", args[0], err)
			}
			return nil
		},
	}
}
