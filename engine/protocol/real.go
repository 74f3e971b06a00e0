package protocol

import (
	"fmt"
	"slices"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/privacy"
)

// OwnReals makes a release of this party's own numbers with Laplace noise of a
// scale drawn in floating point, or exactly if the release has no makers. stream
// names the noise stream that begins here; empty goes on with the last.
func (p *Party) OwnReals(r *Release, round int, stream string, scale float64, own *PrivateReals) ([]float64, error) {
	if err := p.admitOwn(r, round); err != nil {
		return nil, err
	}
	out := make([]float64, own.len())
	if r.Makers == Holder {
		span := p.Begin(engine.PhaseNoise, round)
		p.resume(round, stream)
		p.stream.FillLaplace(scale, out)
		p.draws.record(Draw{Role: p.Role, Round: round, Stream: stream, Noise: Noise{Mechanism: Laplace, Scale: scale},
			Reals: out})
		p.End(span)
	}
	for i, x := range own.values {
		out[i] += x
	}
	return out, nil
}

// Choose makes a private choice among this party's scores: permute-and-flip, or
// the exponential mechanism. stream is that of OwnReals.
func (p *Party) Choose(r *Release, round int, stream string, s privacy.Selection, exponential bool,
	scores *PrivateReals) (int, error) {
	if err := p.admitOwn(r, round); err != nil {
		return 0, err
	}
	p.resume(round, stream)
	choose := s.PermuteAndFlip
	if exponential {
		choose = s.ExponentialMechanism
	}
	chosen, err := choose(&p.stream, scores.values)
	if err != nil {
		return 0, err
	}
	return p.Replay.Choose(chosen, scores.values, s.Epsilon/s.Sensitivity)
}

// Shuffle returns a random order of n things from a stream of OwnReals: what later
// choices start from.
func (p *Party) Shuffle(round int, stream string, n int) []int {
	p.resume(round, stream)
	return p.stream.Perm(n)
}

// resume begins a noise stream, or goes on with the last. The root is the role's
// own, so streams need no role in their names.
func (p *Party) resume(round int, stream string) {
	if stream != "" {
		p.Streams().Reset(&p.stream, 0, round, stream)
	}
}

// admitOwn checks a release of one party's numbers.
func (p *Party) admitOwn(r *Release, round int) error {
	if r.Makers != Holder && r.Makers != Nobody {
		return fmt.Errorf("protocol: %s is no release of one party", r.Name)
	}
	return p.admit(r, round, nil, 0)
}

// Share draws this role's noise of a release that is added up under encryption, for
// the role to add to what it encrypted.
func (p *Party) Share(r *Release, round int, groups []Group) ([]int64, error) {
	length := valuesOf(groups)
	if err := p.admit(r, round, groups, length); err != nil {
		return nil, err
	}
	noise := make([]int64, length)
	p.draw(round, groups, noise)
	return noise, nil
}

// Open makes a release of what this role has decrypted: it adds the role's own
// noise, nil groups for none of its own, and returns the noisy values. What was
// decrypted carries the noise of others, which this role does not know.
func (p *Party) Open(r *Release, round int, groups []Group, decrypted *Private) ([]int64, error) {
	length := 0
	if groups != nil {
		length = decrypted.len()
	}
	if err := p.admit(r, round, groups, length); err != nil {
		return nil, err
	}
	p.views.values(p.Role, round, r.Name, p.Role, decrypted.words)
	if groups != nil {
		p.addNoise(round, groups, decrypted.words)
	}
	return slices.Clone(decrypted.words), nil
}

// Apply makes a release of this party by a mechanism of the method's own, such as
// sketches with phantoms or randomised response: what it computes in release, with
// this role's randomness, is the mechanism's output.
func (p *Party) Apply(r *Release, round int, release func() error) error {
	if err := p.admitOwn(r, round); err != nil {
		return err
	}
	return release()
}
