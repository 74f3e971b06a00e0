package privacy

import (
	"errors"
	"fmt"
	"math"
)

// ErrReplay says that what a run released on a Replay has another shape than on the neighbour: something
// public depends on a single record.
var ErrReplay = errors.New("the releases of two neighbours differ in shape")

// Replay is what an audit attaches to two runs, one on each of two neighbouring data sets. The first run
// records what it releases. The second is made to release the same and adds up the log of how much
// likelier each release was in the first: the privacy loss of the outcome, given what both runs take as
// public. Whatever is computed from releases and public randomness is then the same in both, so a run
// with a replay is no protocol but a measurement.
//
// A nil *Replay is a run of its own: its methods do nothing. A Replay serves one goroutine at a time.
type Replay struct {
	// Records is the number of records that both runs take as public, 0 for each its own.
	Records int

	replay  bool
	at      int
	records []record
	loss    float64
	// distance is of Laplace and Gaussian releases.
	distance [2]float64
	// Samplers are kept from trial to trial, as their scales repeat.
	gaussians map[float64]*DiscreteGaussian
	laplaces  map[float64]*DiscreteLaplace
	shares    map[sharing]*LaplaceShare
}

// record is one release: the integers that came out, what they were without noise in the first run and in the second,
// and how likely each was.
type record struct {
	released, exact, second []int64
	logs                    []float64
	distribution            Likelihood
}

// Likelihood is a distribution of noise by the log of the probability of a released integer, given the exact one, up
// to a constant.
type Likelihood struct {
	family string // "laplace", "gaussian", or empty for a choice
	scale  float64
	log    func(exact, released int64) float64
}

// LaplaceLikelihood is that of discrete Laplace noise of scale b.
func LaplaceLikelihood(b float64) Likelihood {
	return Likelihood{"laplace", b, func(exact, released int64) float64 { return -math.Abs(float64(released-exact)) / b }}
}

// GaussianLikelihood is that of discrete Gaussian noise of scale sigma.
func GaussianLikelihood(sigma float64) Likelihood {
	return Likelihood{"gaussian", sigma, func(exact, released int64) float64 {
		z := float64(released-exact) / sigma
		return -z * z / 2
	}}
}

// OtherLikelihood is that of a release without additive noise.
func OtherLikelihood(log func(exact, released int64) float64) Likelihood { return Likelihood{log: log} }

// Distance is how far the record of the pair moved the releases of both runs, in units of their noise: the sum of
// |change|/b over releases with Laplace noise and of (change/sigma)^2 over those with Gaussian noise. What the second
// run would have released without noise is compared with the first, value by value.
func (t *Replay) Distance() (laplace, gaussian float64) { return t.distance[0], t.distance[1] }

// Record begins a first run.
func (t *Replay) Record() {
	if t != nil {
		t.replay, t.at, t.loss, t.records = false, 0, 0, t.records[:0]
	}
}

// Replay begins the second run, on the neighbour.
func (t *Replay) Replay() { t.replay, t.at, t.loss, t.distance = true, 0, 0, [2]float64{} }

// Loss is the log of the ratio of the probabilities of what was released, the first run's over the
// second's. It fails if the second run released less than the first.
func (t *Replay) Loss() (float64, error) {
	if t.at != len(t.records) {
		return 0, fmt.Errorf("%w: %d releases and %d", ErrReplay, len(t.records), t.at)
	}
	return t.loss, nil
}

// Releases is the number of releases with the replay.
func (t *Replay) Releases() int { return len(t.records) }

// Noise is by how much what the first run released exceeds the exact values behind it, over all releases with additive
// noise together, modulo 2^64, and how many numbers these are.
func (t *Replay) Noise() (sum int64, numbers int) {
	for _, k := range t.records {
		if k.distribution.family == "" {
			continue
		}
		numbers += len(k.exact)
		for i, x := range k.exact {
			sum += k.released[i] - x
		}
	}
	return sum, numbers
}

// Number is one number of a release with additive noise, without noise in the first run and in the second, and as the
// first run released it.
type Number struct {
	First, Second, Released int64
	// Scale is that of its noise: Laplace's b, or the deviation if Gaussian.
	Scale    float64
	Gaussian bool
}

// Numbers calls f with every number that both runs have released with additive noise, in their order.
func (t *Replay) Numbers(f func(Number)) {
	for i := range t.records {
		k := &t.records[i]
		for j, x := range k.second {
			if k.distribution.family != "" {
				f(Number{k.exact[j], x, k.released[j], k.distribution.scale, k.distribution.family == "gaussian"})
			}
		}
	}
}

// next returns the record of a release of n integers.
func (t *Replay) next(n int) (*record, error) {
	if !t.replay {
		if t.at == cap(t.records) {
			t.records = append(t.records, record{})
		}
		t.records = t.records[:t.at+1]
		k := &t.records[t.at]
		k.released, k.logs, k.exact, k.second = k.released[:0], k.logs[:0], k.exact[:0], k.second[:0]
		t.at++
		return k, nil
	}
	if t.at == len(t.records) || len(t.records[t.at].released) != n {
		return nil, fmt.Errorf("%w: release %d has %d values on the neighbour", ErrReplay, t.at+1, n)
	}
	t.at++
	return &t.records[t.at-1], nil
}

// Release passes the integers of a release, each with the exact value behind it, and the distribution of the
// noise. The first run's are kept; the second run's are replaced by them.
func (t *Replay) Release(exact, released []int64, distribution Likelihood) error {
	if t == nil {
		return nil
	}
	k, err := t.next(len(released))
	if err != nil {
		return err
	}
	k.distribution = distribution
	if t.replay {
		k.second = append(k.second[:0], exact...)
	}
	for i, x := range exact {
		if !t.replay {
			k.released = append(k.released, released[i])
			k.logs = append(k.logs, distribution.log(x, released[i]))
			k.exact = append(k.exact, x)
			continue
		}
		switch change := math.Abs(float64(x - k.exact[i])); distribution.family {
		case "laplace":
			t.distance[0] += change / distribution.scale
		case "gaussian":
			change /= distribution.scale
			t.distance[1] += float64(change * change)
		}
		released[i] = k.released[i]
		t.loss += k.logs[i] - distribution.log(x, released[i])
	}
	return nil
}

// Choose passes a choice among candidates of these scores at a rate (the epsilon of a score of 1). How
// likely it was is taken from the exponential mechanism, also where another one chose.
func (t *Replay) Choose(chosen int, scores []float64, rate float64) (int, error) {
	if t == nil {
		return chosen, nil
	}
	c := []int64{int64(chosen)}
	err := t.Release([]int64{0}, c, OtherLikelihood(func(_, released int64) float64 {
		if released >= int64(len(scores)) {
			return math.Inf(-1)
		}
		var sum float64
		for _, u := range scores {
			sum += math.Exp((u - scores[released]) * rate)
		}
		return -math.Log(sum)
	}))
	return int(c[0]), err
}

// DiscreteGaussian is NewDiscreteGaussian, once for each scale.
func (t *Replay) DiscreteGaussian(sigma float64) (*DiscreteGaussian, error) {
	if t == nil {
		return NewDiscreteGaussian(sigma)
	}
	return remember(&t.gaussians, sigma, NewDiscreteGaussian)
}

// DiscreteLaplace is NewDiscreteLaplace, once for each scale.
func (t *Replay) DiscreteLaplace(b float64) (*DiscreteLaplace, error) {
	if t == nil {
		return NewDiscreteLaplace(b)
	}
	return remember(&t.laplaces, b, NewDiscreteLaplace)
}

// LaplaceShare is newLaplaceShare, once for each scale and number of shares.
func (t *Replay) LaplaceShare(b float64, shares int) (*LaplaceShare, error) {
	if t == nil {
		return newLaplaceShare(b, shares)
	}
	return remember(&t.shares, sharing{b, shares}, func(s sharing) (*LaplaceShare, error) {
		return newLaplaceShare(s.scale, s.shares)
	})
}

// sharing is Laplace noise in shares.
type sharing struct {
	scale  float64
	shares int
}

// mostSamplers bounds what a replay keeps: scales that depend on noise do not repeat.
const mostSamplers = 256

func remember[K comparable, T any](m *map[K]*T, of K, make func(K) (*T, error)) (*T, error) {
	if s := (*m)[of]; s != nil {
		return s, nil
	}
	s, err := make(of)
	if err != nil {
		return nil, err
	}
	if *m == nil || len(*m) >= mostSamplers {
		*m = map[K]*T{}
	}
	(*m)[of] = s
	return s, nil
}
