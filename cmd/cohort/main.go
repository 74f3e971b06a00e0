// Command cohort clusters data that several parties hold without showing it,
// and publishes centroids that are differentially private.
//
// Run `cohort --help` for the commands and `cohort run --help` for the main one.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/pages"
)

// Exit statuses of every command.
const (
	exitDone   = 0
	exitFailed = 1 // the run failed; for audit: a violation was found
	exitWrong  = 2 // the request was wrong
	// exitUnread is what shells say of a program that SIGPIPE ended: nobody reads the output, and nothing was paid for.
	exitUnread = 141
)

func main() {
	pages.Late()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	// Who no longer reads the output shall not end the process by that before a result that was paid for is saved.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	status := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(status)
}

// execute runs the command line args and returns the exit status. What the
// command is for goes to out; progress and the one line of an error to errOut.
func execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	answer := &sink{Writer: out}
	root.SetOut(answer)
	root.SetErr(errOut)
	addHelp(root)
	cmd, err := root.ExecuteContextC(ctx)
	if errors.Is(answer.err, syscall.EPIPE) && !errors.As(err, new(*fault.Error)) {
		return exitUnread
	}
	if answer.err != nil && (err == nil || err == answer.err) {
		err = fault.Failed("output", fmt.Sprintf("it cannot be written (%v)", answer.err), mendWriting(answer.err),
			answer.err)
	}
	var verdict *statusError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &verdict):
		return verdict.status
	case errors.Is(err, context.Canceled) && !errors.As(err, new(*fault.Error)):
		fate := "nothing was written"
		if cmd.Flags().Lookup("state") != nil {
			fate = "the same command goes on"
		}
		fmt.Fprintln(errOut, "cohort: "+cmd.Name()+": was interrupted: "+fate)
		return exitFailed
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) && cmd.Flags().Lookup(f.What) != nil &&
		(f.Wrong || !isGiven(cmd, f.What)) {
		f.What = "--" + f.What // as the person wrote it
	}
	fmt.Fprintln(errOut, "cohort: "+fault.Visible(strings.NewReplacer("\n", "; ", "\r", " ").Replace(err.Error())))
	if fault.IsRequest(err) || errors.Is(err, privacy.ErrRange) || errors.Is(err, privacy.ErrBudget) ||
		errors.Is(err, privacy.ErrDataset) {
		return exitWrong
	}
	return exitFailed
}

// isGiven tells whether a word is an argument of cmd, or a flag's value or one of its list: a file may have the name
// of a flag.
func isGiven(cmd *cobra.Command, word string) bool {
	given := slices.Contains(cmd.Flags().Args(), word)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		given = given || slices.Contains(strings.Split(f.Value.String(), ","), word)
	})
	return given
}

// sink is standard output, or a recorder's file. It remembers what went wrong with it.
type sink struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.err = cmp.Or(s.err, err)
	return n, err
}

// statusError ends a command with a status after it has printed its verdict.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.status) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "cohort",
		Short: "Private k-means among several parties: fast, with a privacy ledger that holds",
		Long: `Cohort clusters data that several parties hold and none may show. All parties
and the server run in this process; what is published is differentially private
and every released number stands in a ledger.

  cohort run                                  cluster a built-in set
  cohort run --data my.csv --k 8 --epsilon 1  cluster a file privately`,
		Version:       engine.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return noEmptyFlags(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var own *fault.Error
		if errors.As(err, &own) {
			return own
		}
		return wrongFlag(cmd, err)
	})
	root.SetHelpFunc(plainHelp)
	root.SetVersionTemplate("cohort {{.Version}}\n")
	root.AddCommand(newRunCommand(), newPlanCommand(), newPredictCommand(), newReportCommand(), newMethodsCommand(),
		newManCommand(), newAccountCommand(), newAuditCommand(), newLedgerCommand(), newDataCommand(), newStudyCommand(),
		newServeCommand(), newJoinCommand(), newBenchCommand(), newProfileCommand(), newVersionCommand())
	completeFixed(root)
	return root
}

// addHelp gives the root, whose output is set, the library's commands help and completion. Those answer a word that
// they do not know by the help of another command; here they refuse it.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Short, c.Long = "Help about any command", "Show the help of a command, as cohort COMMAND --help does."
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				if len(rest) > 0 && about.HasAvailableSubCommands() {
					return noArguments(about, rest)
				}
				about.InitDefaultHelpFlag()
				return about.Help()
			}
		case "completion":
			c.Args, c.RunE = noArguments, func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Args = noArguments
			}
		}
	}
}

// wrongFlag is err of reading the flags of cmd: an unknown one with what was meant where that can be told, and a value
// without what Go says of it.
func wrongFlag(cmd *cobra.Command, err error) error {
	see := "see " + cmd.CommandPath() + " --help"
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		why := fmt.Sprintf("%q is not ", invalid.GetValue())
		if errors.Is(err, strconv.ErrRange) {
			why += "within the range of "
		}
		switch f := invalid.GetFlag(); f.Value.Type() {
		case "int", "int64":
			return fault.Request("--"+f.Name, why+"a whole number", see)
		case "uint64":
			return fault.Request("--"+f.Name, why+"a whole number of 0 or more", see)
		case "float64":
			return fault.Request("--"+f.Name, why+"a number", see)
		}
	}
	why := err.Error()
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		// After one dash stand short names, of which there are few: -k 8 and -data FILE mean the long ones.
		short, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "=")
		name := unknown.GetSpecifiedName()
		run, _, _ := cmd.Root().Find([]string{"run"})
		switch {
		case short == "" && run.Flags().Lookup(name) != nil:
			why += ", which cohort run has and " + cmd.CommandPath() + " does not"
		case slices.Contains(names, short):
			why += " (did you mean --" + short + "?)"
		default:
			why += fault.Meant(cmp.Or(name, short), names, "--")
		}
	}
	return fault.Request("flags", why, see)
}

// noEmptyFlags refuses a flag whose value is empty, as that of a shell's variable is which is not set: --ledger or
// --bounds would count as left out, and the run spend from no budget, or look at the data for its bounds.
func noEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && err == nil {
			err = fault.Request("--"+f.Name, "is empty", "give a value, or leave the flag out")
		}
	})
	return err
}

// noArguments refuses words that are neither a command nor a flag, with what was meant where that can be told.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Flags().Lookup("data") != nil {
		return fault.Request("arguments", fmt.Sprintf("%q stands alone", args[0]), "a file is given as --data "+args[0])
	}
	if !cmd.HasAvailableSubCommands() {
		return fault.Request("arguments", fmt.Sprintf("%q is one too many: %s takes none", args[0], cmd.CommandPath()),
			"see "+cmd.CommandPath()+" --help")
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	why := fmt.Sprintf("%q is not a command of %s%s", args[0], cmd.CommandPath(), fault.Meant(args[0], names))
	return fault.Request("arguments", why, "see "+cmd.CommandPath()+" --help")
}

// arguments is the rule of commands that take from least to most arguments; advice says which.
func arguments(least, most int, advice string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return fault.Request("arguments", fmt.Sprintf("%d are given", len(args)), advice)
	}
}
