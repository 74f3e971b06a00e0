package protocol

import "slices"

// Draw is noise that a role drew, or the outcomes of a mechanism of a method's own.
type Draw struct {
	Role  Role
	Round int
	// Stream names the noise stream, or the mechanism.
	Stream string
	// Noise is the distribution that the role was told to draw from; its zero value goes
	// with Chances.
	Noise Noise
	// Values is the noise in the integer units of its grid, Reals what was drawn in
	// floating point.
	Values []int64
	Reals  []float64
	// Chances has, for each outcome of a mechanism without additive noise, the probability
	// of what is below it and of what is not above it.
	Chances [][2]float64
}

// Draws records what the roles of one process draw, for audits that test it against
// the plan. Recording allocates.
type Draws struct{ Seen []Draw }

func (d *Draws) record(x Draw) {
	if d == nil {
		return
	}
	x.Values, x.Reals = slices.Clone(x.Values), slices.Clone(x.Reals)
	d.Seen = append(d.Seen, x)
}

// Drew tells an audit the outcomes of a mechanism of the method's own, by their chances
// (see Draw); it does nothing in a run. chances computes them, in an audit only.
func (p *Party) Drew(round int, mechanism string, chances func() [][2]float64) {
	if p.draws != nil {
		p.draws.record(Draw{Role: p.Role, Round: round, Stream: mechanism, Chances: chances()})
	}
}
