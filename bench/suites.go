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

// Suites returns every suite, in the order in which they run and are listed.
func Suites() []Suite {
	return slices.Concat(
		kernelSuites(),
		flowSuites(),
		horizontalSuites(),
		verticalSuites(),
		utilitySuites(),
		centralSuites(),
		scalingSuites(),
		fastLloydSuites(),
		thesisSuites(),
		sketchSuites(),
		ckksSuites(),
	)
}
