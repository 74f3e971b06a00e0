package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

func newLedgerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Read a ledger file",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLedgerShowCommand())
	return cmd
}

// showOptions are the flags of ledger show.
type showOptions struct {
	file       options // the ledger file, its key and anchor
	format     string
	epsilon    float64
	delta      float64
	neighbours string
}

func newLedgerShowCommand() *cobra.Command {
	o := new(showOptions)
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "What a ledger file has spent and left, by whom, and what a planned run would leave",
		Long: `Print the terms of a ledger file, its runs, what each viewer was charged and has left, and
an anchor to keep elsewhere: given back with --ledger-anchor it shows whether lines were cut
off. With --epsilon and --delta: what a run of that budget would leave.`,
		Args: arguments(1, 1, "name the ledger file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file.ledger = args[0]
			return o.show(cmd.OutOrStdout(), cmd.Flags().Changed("epsilon"))
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.file.ledgerKey, "ledger-key", "", "file with the key of the chain")
	fs.StringVar(&o.file.ledgerAnchor, "ledger-anchor", "",
		"LINE:HASH printed earlier: a file that lost lines since is refused")
	fs.Float64Var(&o.epsilon, "epsilon", 0, "epsilon of a planned run")
	fs.Float64Var(&o.delta, "delta", 0, "delta of a planned run")
	fs.StringVar(&o.neighbours, "neighbours", "add-remove", "relation of a planned run: add-remove or replace-one")
	choose(fs, &o.format, "format", "text or json", "text", "json")
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "key" || name == "anchor" { // the names that they had before those of run
			name = "ledger-" + name
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

// viewerState is what a viewer was charged and has left, in the file's currency, and as an epsilon.
type viewerState struct {
	Viewer  string          `json:"viewer"`
	Spent   privacy.Charge  `json:"spent"`
	Left    privacy.Charge  `json:"left"`
	Epsilon float64         `json:"epsilon_spent"`
	After   *privacy.Charge `json:"left_after_planned,omitempty"`
}

func (o *showOptions) show(out io.Writer, planned bool) error {
	f, err := o.file.ledgerFile()
	if err != nil {
		return err
	}
	state, err := f.State()
	switch {
	case err != nil:
		return err
	case state == nil:
		return fault.Request("ledger file "+f.Path, "is not there", "name one that a run has made")
	}
	var price *privacy.Charge
	if planned {
		if price, err = o.price(state); err != nil {
			return err
		}
	}
	var viewers []viewerState
	for _, v := range state.Viewers() {
		s := viewerState{Viewer: v, Spent: state.Spent[v], Left: state.Left(v), Epsilon: state.Epsilon(state.Spent[v].Amount)}
		if price != nil {
			s.After = &privacy.Charge{Amount: s.Left.Amount - price.Amount, Delta: s.Left.Delta - price.Delta}
		}
		viewers = append(viewers, s)
	}
	answer := map[string]any{"terms": state.Terms, "limit": state.Limit, "keyed": state.Keyed, "runs": state.Runs,
		"viewers": viewers, "anchor": state.Anchor, "planned": price}
	return show(out, o.format, answer, func() error { return printState(out, state, viewers, price) })
}

// price is what a run at a budget would be charged.
func (o *showOptions) price(state *privacy.FileState) (*privacy.Charge, error) {
	relation, err := privacy.ParseNeighbours(o.neighbours)
	if err != nil {
		return nil, fault.Range("--neighbours", fmt.Sprintf("%q", o.neighbours), "add-remove or replace-one")
	}
	b := privacy.Budget{Epsilon: o.epsilon, Delta: o.delta}
	if err := b.Validate(); err != nil {
		return nil, fault.Request("--epsilon", err.Error(), "give a budget such as --epsilon 1 --delta 1e-6")
	}
	l, err := privacy.WholeRun("a planned run", b, relation)
	if err != nil {
		return nil, err
	}
	prices, err := state.Prices(l)
	if err != nil {
		return nil, err
	}
	price := prices[privacy.Outsider]
	return &price, nil
}

// currencies are the words for what a composition adds up.
var currencies = map[privacy.Composition]string{privacy.BasicComposition: "epsilon", privacy.ZCDPComposition: "rho",
	privacy.GDPComposition: "mu^2", privacy.RDPComposition: "divergence"}

func printState(out io.Writer, state *privacy.FileState, viewers []viewerState, price *privacy.Charge) error {
	var b strings.Builder
	unit := currencies[state.Composition]
	charge := func(c privacy.Charge) string {
		s := fmt.Sprintf("%s %.6g", unit, c.Amount)
		if state.Limit.Delta > 0 {
			s += fmt.Sprintf(", delta %.3g", c.Delta)
		}
		return s
	}
	fmt.Fprintf(&b, "Budget      epsilon %v at delta %.3g, %s neighbours\n", state.Budget.Epsilon, state.Budget.Delta,
		state.Neighbours)
	fmt.Fprintf(&b, "Composition %s: each viewer may be charged %s\n", state.Composition, charge(state.Limit))
	b.WriteString("\nRuns\n")
	for i, r := range state.Runs {
		ended := ""
		if !r.Ended {
			ended = ", did not end"
		}
		fmt.Fprintf(&b, "  %d  %s%s\n", i+1, r.What, ended)
		for _, v := range state.Viewers() {
			if c, ok := r.Charges[v]; ok {
				fmt.Fprintf(&b, "       %-12s %s\n", v, charge(c))
			}
		}
		for _, n := range r.NotCovered {
			fmt.Fprintf(&b, "       not covered: %s\n", n)
		}
	}
	b.WriteString("\nViewers\n")
	for _, v := range viewers {
		fmt.Fprintf(&b, "  %-12s spent %s (epsilon %.4g)\n", v.Viewer, charge(v.Spent), v.Epsilon)
		fmt.Fprintf(&b, "  %-12s left  %s\n", "", charge(v.Left))
		switch {
		case v.After == nil:
		case v.After.Amount < 0 || v.After.Delta < 0:
			fmt.Fprintf(&b, "  %-12s the planned run asks for %s: refused\n", "", charge(*price))
		default:
			fmt.Fprintf(&b, "  %-12s the planned run would leave %s\n", "", charge(*v.After))
		}
	}
	b.WriteString("  A role that is not listed was charged as an outsider.\n")
	fmt.Fprintf(&b, "\nAnchor      %s\n", state.Anchor)
	if !state.Keyed {
		b.WriteString("            the chain has no key: whoever can write the file can write another whole one, and who " +
			"can read it can try guesses of the columns: it is as secret as the records\n")
	}
	b.WriteString("The file knows people by the columns of their tables: another table of the same people must be " +
		"charged to the same file.\n")
	w := &lines{w: out}
	w.printf("%s", b.String())
	return w.err
}
