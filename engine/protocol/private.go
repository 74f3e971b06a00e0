package protocol

import (
	"errors"
	"fmt"
)

// errPrivate is what every encoder of a Private returns.
var errPrivate = errors.New("protocol: a private vector leaves a party through a release only")

// sealed is what cannot be printed, whatever the verb, nor encoded.
type sealed struct{}

// Format prints "private".
func (sealed) Format(f fmt.State, _ rune) { fmt.Fprint(f, "private") }

// String returns "private".
func (sealed) String() string { return "private" }

// MarshalJSON refuses.
func (sealed) MarshalJSON() ([]byte, error) { return nil, errPrivate }

// MarshalText refuses.
func (sealed) MarshalText() ([]byte, error) { return nil, errPrivate }

// MarshalBinary refuses, and so does encoding/gob.
func (sealed) MarshalBinary() ([]byte, error) { return nil, errPrivate }

// Private is a vector of integers computed from one party's records. Steps write
// into it; only a release of the plan reads it.
type Private struct {
	sealed
	words []int64
}

// NewPrivate returns a vector of n zeros.
func NewPrivate(n int) *Private { return &NewPrivates(1, n)[0] }

// NewPrivates returns so many vectors of n zeros, one for each of several parties.
func NewPrivates(vectors, n int) []Private {
	v, words := make([]Private, vectors), make([]int64, vectors*n)
	for i := range v {
		v[i] = Private{words: words[i*n : (i+1)*n : (i+1)*n]}
	}
	return v
}

// len is the number of elements.
func (v *Private) len() int { return len(v.words) }

// Fill lets write set the elements, which are zero when it is called. It must not
// keep the slice.
func (v *Private) Fill(write func(words []int64) error) error {
	clear(v.words)
	return write(v.words)
}

// PrivateReals are real numbers computed from one party's records, for releases
// whose noise is drawn in floating point: those of papers that claim no more, and
// scores of private choices.
type PrivateReals struct {
	sealed
	values []float64
}

// NewPrivateReals takes values over.
func NewPrivateReals(values []float64) *PrivateReals { return &PrivateReals{values: values} }

// len is the number of elements.
func (v *PrivateReals) len() int { return len(v.values) }
