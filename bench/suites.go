package bench

import "slices"

// Groups of suites.
const (
	groupPerformance = "performance"
	groupFastLloyd   = "FastLloyd"
	groupThesisH     = "Thesis-H"
	groupThesisB     = "Thesis-B"
	groupSketch      = "Sketch-V"
	groupCKKS        = "CKKS-V"
)

// groups is the order of the groups.
var groups = []string{groupPerformance, groupFastLloyd, groupThesisH, groupThesisB, groupSketch, groupCKKS}

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
