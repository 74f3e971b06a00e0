package sketch

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
)

// Describe lists the methods of this package.
func Describe() method.List {
	const (
		served = "the server, and whom it shows the result: it sees what a party sends, with noise"
		keyed  = "the server, which alone gets the result and sees what a party sends, with noise; not who has the " +
			"parties' keys"
		cost = "local k-means at each party"
		sets = "parties compare sets of records, in which a record is or is not"
	)
	return method.List{
		{Name: string(Plain), About: "exact local centres and memberships, no privacy", Holds: method.Columns,
			Against: "no one: the server sees exact local centres and memberships",
			When:    "no privacy is needed, or as what a private run is compared with",
			Cost:    cost + ", and one membership a record and party on the wire", Unweighed: sets, Make: Plain.make},
		{Name: string(Independent), About: "noisy sizes of local clusters, columns taken for independent",
			Holds: method.Columns, Private: true, Against: served,
			When: "a pure epsilon is wanted and columns of different parties are unrelated; a baseline", Cost: cost +
				"; messages of k' numbers", Unweighed: sets, Make: Independent.make},
		{Name: string(LocalReports), About: "memberships under local privacy", Holds: method.Columns, Private: true,
			Against: served,
			When:    "as a baseline", Cost: cost + ", and one report a record and party on the wire",
			Unweighed: sets, Make: LocalReports.make},
		{Name: string(SketchBasic), About: "membership sketches, each cell of the grid on its own", Holds: method.Columns,
			Private: true, Against: keyed,
			When: "to reproduce Sketch-V's baseline", Cost: cost + "; a pass over the records for M keys",
			Unweighed: sets, Make: SketchBasic.make},
		{Name: string(Sketch), About: "membership sketches, the grid as a whole (recommended)", Holds: method.Columns,
			Private: true, Against: keyed + "; the parties and outsiders, too, with --return noised",
			When: "parties hold different columns and can name their records alike", Cost: cost +
				"; a pass over the records for M keys, and an estimate of the grid", Unweighed: sets, Make: Sketch.make},
	}
}

// make returns a job of the protocol and its options.
func (m Method) make(p protocol.Problem) (engine.Job, method.Options) {
	j := &Job{Method: m, Problem: p}
	options := method.Shared(string(m), &j.Problem, m.takes())
	if m.private() {
		byDefault := string(j.mechanism())
		if m.sketches() {
			byDefault = "gaussian, laplace under claimed"
		}
		options.Reword("mechanism", byDefault, "kind of noise of what is not a sketch; it follows from the calibration")
	}
	return j, append(options, j.own()...)
}

// own are the options of the job's method that are not the problem's, with the rules of the fields that they
// write to.
func (j *Job) own() method.Options {
	m := j.Method
	options := method.Options{{Name: "local-k", Default: "auto",
		About: "local clusters of each party: auto, paper or a number",
		Value: method.Text(func(text string) (err error) {
			j.LocalK, err = parseLocalK(text)
			return err
		})}}
	if m.private() {
		options = append(options, method.Option{Name: "local-start", Default: "auto",
			About: "start of the local centres: auto, tree, lsf or rounds",
			Value: method.Choice(&j.LocalStart, StartAuto, StartTree, StartRounds, StartForest)})
	}
	if m == Sketch {
		options = append(options, method.Option{Name: "estimator", Default: "em; paper under claimed",
			About: "how the grid is estimated: em, pair-mle or paper",
			Value: method.Choice(&j.Estimator, EstimatorEM, EstimatorPair, EstimatorPaper)}, method.Option{Name: "return",
			Default: "server", About: "who may see the result: server; or noised, the parties too, with noise that the " +
				"server draws", Value: method.Choice(&j.Return, ToServer, Noised)})
	}
	if m == LocalReports {
		options = append(options, method.Option{Name: "estimator", Default: "ldp-agg-2pest",
			About: "how the grid is estimated: ldp-agg from the reports of all parties together, ldp-agg-2pest from those " +
				"of each pair",
			Value: method.Choice(&j.Estimator, EstimatorReports, EstimatorReportPairs)})
	}
	if m.sketches() {
		options = append(options,
			method.Option{Name: "sketches", Default: fmt.Sprintf("%d to %d by the budget; %d for the paper's estimators",
				leastPlanned, mostPlanned, DefaultSketches), About: "number of sketches M",
				Value: method.Int(&j.Sketches, 1, maxSketches)},
			method.Option{Name: "gamma", Default: "1/1024; 1 for the paper's estimators", About: "parameter of the sketches",
				Value: method.Real(&j.Gamma, method.Positive, 16)},
			method.Option{Name: "sketch-share", Default: ".5 where pairs of parties have keys of their own (.65 where these " +
				"have few clusters) or a mixture is fitted to the cells of more clusters than a party has (.75 where each has " +
				"one column); else .25, and .15 for two with a small budget",
				About: "share of the squared budget for the sketches", Value: method.Real(&j.Share, method.Positive, 1)})
	}
	return options
}
