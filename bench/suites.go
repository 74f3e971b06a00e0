package bench

import "slices"

// Groups of suites.
const (
	GroupPerformance = "performance"
	GroupFastLloyd   = "FastLloyd"
	GroupThesisH     = "Thesis-H"
	GroupThesisB     = "Thesis-B"
	GroupSketch      = "Sketch-V"
	GroupCKKS        = "CKKS-V"
)

// groups is the order of the groups.
var groups = []string{GroupPerformance, GroupFastLloyd, GroupThesisH, GroupThesisB, GroupSketch, GroupCKKS}

// Suites returns every suite, group by group, in the order in which they run
// and are listed.
func Suites() []Suite {
	all := slices.Concat(
		kernelSuites(),
		flowSuites(),
		horizontalSuites(),
		verticalSuites(),
		sketchPlanSuites(),
		utilitySuites(),
		centralSuites(),
		floorSuites(),
		looseSuites(),
		clientSuites(),
		scalingSuites(),
		networkSuites(),
		embeddingSuites(),
		kmeansSuites(),
		pictureSuites(),
		embedSuites(),
		privacySuites(),
		tableSuites(),
		fastLloydSuites(),
		thesisSuites(),
		thesisFigures(),
		edlerSuites(),
		sketchSuites(),
		heSuites(),
		ckksSuites(),
	)
	slices.SortStableFunc(all, func(a, b Suite) int {
		return slices.Index(groups, a.Group) - slices.Index(groups, b.Group)
	})
	return all
}
