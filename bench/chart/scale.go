package chart

import (
	"math"
	"slices"
)

// scale maps values to pixels.
type scale struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		return s.from + (math.Log(v)-math.Log(s.lo))/(math.Log(s.hi)-math.Log(s.lo))*(s.to-s.from)
	}
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// newScale chooses round limits around values; a logarithmic scale needs
// positive ones and falls back to a linear one.
func newScale(values []float64, from, to float64, log, zero bool) scale {
	lo, hi := slices.Min(values), slices.Max(values)
	if log && lo > 0 {
		if hi/lo < 4 {
			mid := math.Sqrt(hi * lo)
			lo, hi = mid/2, mid*2
		}
		margin := math.Pow(hi/lo, 0.05)
		return scale{lo / margin, hi * margin, from, to, true}
	}
	if zero && lo > 0 {
		lo = 0
	}
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	margin := (hi - lo) * 0.06
	s := scale{lo - margin, hi + margin, from, to, false}
	if zero && lo == 0 {
		s.lo = 0
	}
	return s
}

// ticks returns round values inside the scale.
func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		for e := math.Floor(math.Log10(s.lo)); e <= math.Ceil(math.Log10(s.hi)); e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); v >= s.lo && v <= s.hi {
					out = append(out, v)
				}
			}
		}
		if len(out) > 7 {
			out = slices.DeleteFunc(out, func(v float64) bool {
				l := math.Log10(v)
				return math.Abs(l-math.Round(l)) > 1e-9
			})
		}
		for len(out) > 8 {
			for i := len(out) - 1 - (len(out)+1)%2; i > 0; i -= 2 {
				out = slices.Delete(out, i, i+1)
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((s.hi-s.lo)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (s.hi-s.lo)/(step*m) <= 6 {
			step *= m
			break
		}
	}
	for v := math.Ceil(s.lo/step) * step; v <= s.hi+step*1e-9; v += step {
		out = append(out, math.Round(v/step)*step+0) // -0 is 0
	}
	return out
}
