package privacy

import (
	"cmp"
	"fmt"
	"math"
)

// Spec names a mechanism with its parameters, so that a reader of a ledger can account for it again.
type Spec struct {
	// Family is gaussian, laplace, discrete-gaussian, discrete-laplace, pure (permute-and-flip, anything
	// of a known epsilon), exponential (the exponential mechanism), randomized-response, fm, drawn-gaussian (Drawn), or
	// empty: no bound is known.
	Family string `json:"family"`
	// Scale is the noise scale over the sensitivity (gaussian, laplace and their discrete forms).
	Scale float64 `json:"scale,omitempty"`
	// Epsilon is the epsilon of a pure release.
	Epsilon float64 `json:"epsilon,omitempty"`
	// Slack is the discretisation slack per round of a discrete Gaussian (GaussianSlack).
	Slack float64 `json:"slack,omitempty"`
	// P is the probability of a uniform draw, Buckets the number of answers (randomized-response); or of a trial's
	// success, of so many Trials (drawn-gaussian).
	P       float64 `json:"p,omitempty"`
	Buckets int     `json:"buckets,omitempty"`
	Trials  int     `json:"trials,omitempty"`
	// Gamma, Phantoms, Parties and Cells describe one key of the FM sketches (fm; T3): phantoms per
	// cell, parties S and clusters per party k'.
	Gamma    float64 `json:"gamma,omitempty"`
	Phantoms int     `json:"phantoms,omitempty"`
	Parties  int     `json:"parties,omitempty"`
	Cells    int     `json:"cells,omitempty"`
	// Rounds is how often it is released, adaptively; 0 means 1.
	Rounds int `json:"rounds,omitempty"`
	// Failure is a probability, over all rounds together, that the release is not what the other fields
	// describe: it is added to delta (T7). Ties of an assignment are one (T1).
	Failure float64 `json:"failure,omitempty"`
	// Distance bounds the total variation distance, over all rounds together, between the release and what
	// the other fields describe, whatever the accountant: it adds (1+e^epsilon) Distance to delta (T6).
	// Shares whose sum is not quite the noise have one.
	Distance float64 `json:"distance,omitempty"`
	// Group, if not empty, joins entries of one ledger that read disjoint records (T7): together
	// they cost a viewer as much as the dearest.
	Group string `json:"group,omitempty"`
}

// Times is Rounds, at least 1.
func (s Spec) Times() int { return max(1, s.Rounds) }

// Mechanism checks the parameters and returns the mechanism of one round.
func (s Spec) Mechanism() (Mechanism, error) {
	positive := func(name string, x float64) error {
		if !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("%s: %s is %v: %w: must be positive and finite", s.Family, name, x, ErrRange)
		}
		return nil
	}
	if !(s.Failure >= 0 && s.Distance >= 0) {
		return nil, fmt.Errorf("%s: failure is %v and distance %v: %w: must not be negative", s.Family, s.Failure,
			s.Distance, ErrRange)
	}
	if s.Rounds < 0 {
		return nil, fmt.Errorf("%s: rounds is %d: %w: must be at least 1", s.Family, s.Rounds, ErrRange)
	}
	switch s.Family {
	case "gaussian":
		return Gaussian{Scale: s.Scale, Discretised: s.Slack}, positive("scale", s.Scale)
	case "discrete-gaussian": // without slack its distance to the continuous distribution is not known: zCDP and RDP only
		return Gaussian{Scale: s.Scale, Discretised: cmp.Or(s.Slack, 1)}, positive("scale", s.Scale)
	case "laplace":
		return Laplace{Scale: s.Scale}, positive("scale", s.Scale)
	case "discrete-laplace": // coarse ones are no better than any mechanism of their epsilon
		return PureDP{Epsilon: 1 / s.Scale}, positive("scale", s.Scale)
	case "pure":
		return PureDP{Epsilon: s.Epsilon}, positive("epsilon", s.Epsilon)
	case "exponential":
		return bounded{Epsilon: s.Epsilon}, positive("epsilon", s.Epsilon)
	case "randomized-response":
		if !(s.P > 0 && s.P <= 1) {
			return nil, fmt.Errorf("randomized-response: p is %v: %w: must be in (0, 1]", s.P, ErrRange)
		}
		if s.Buckets < 2 {
			return nil, fmt.Errorf("randomized-response: buckets is %d: %w: must be at least 2", s.Buckets, ErrRange)
		}
		return RandomizedResponse{P: s.P, Buckets: s.Buckets}, nil
	case "drawn-gaussian":
		if err := positive("scale", s.Scale); err != nil {
			return nil, err
		}
		m := Drawn{Trials: s.Trials, P: s.P, Scale: s.Scale, Discretised: s.Slack}
		return m, m.validate()
	case "fm":
		m := FM{Gamma: s.Gamma, Phantoms: s.Phantoms, Parties: s.Parties, Cells: s.Cells}
		return m, m.validate()
	}
	return nil, fmt.Errorf("mechanism is %q: %w: must be gaussian, laplace, discrete-gaussian, discrete-laplace, "+
		"randomized-response, fm, drawn-gaussian, exponential or pure", s.Family, ErrRange)
}
