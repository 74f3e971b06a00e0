package cohort

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/cohort-engine/cohort/internal/fault"
)

// FuzzLoad reads models that anybody may have written: they are refused in the usual form, or label records and are
// written as they were read.
func FuzzLoad(f *testing.F) {
	seed := uint64(1)
	rows := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, o := range []Options{{K: 2}, {K: 2, OneScale: true}, {K: 2, Settings: map[string]string{"metric": cosine}},
		{K: 2, Epsilon: 1, Bounds: Range(0, 10), Seed: &seed}} {
		m, err := Fit(context.Background(), Rows(rows, 4, 2), o)
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if err := m.Save(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"centroids":[[1e308],[-1e308]],"lower":[-1e308],"upper":[1e308],"fraction_bits":16,"one_scale":true}`))
	f.Add([]byte(`{"centroids":[[0]],"lower":[0],"upper":[5e-324],"fraction_bits":22}`))
	f.Add([]byte(`{"centroids":[[],[1]],"lower":[0],"upper":[1],"fraction_bits":16}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Load(bytes.NewReader(text))
		if err != nil {
			if !errors.As(err, new(*fault.Error)) {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		d := len(m.Lower)
		points := make([]float64, 0, 3*d)
		for _, share := range []float64{0, 0.5, 1} {
			for h := range d {
				points = append(points, m.Lower[h]*(1-share)+m.Upper[h]*share)
			}
		}
		labels, distances, err := m.Nearest(context.Background(), points)
		if err != nil && !errors.As(err, new(*fault.Error)) {
			t.Fatal(err)
		}
		for i, l := range labels {
			if err == nil && (l < 0 || int(l) >= len(m.Centroids) || !(distances[i] >= 0) || math.IsInf(distances[i], 0)) {
				t.Fatalf("record %d of %v is in cluster %d at %g", i, points, l, distances[i])
			}
		}
		var b bytes.Buffer
		if err := m.Save(&b); err != nil {
			t.Fatal(err)
		}
		first := bytes.Clone(b.Bytes())
		again, err := Load(&b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(m.Centroids, again.Centroids) || !reflect.DeepEqual(m.Lower, again.Lower) ||
			!reflect.DeepEqual(m.Upper, again.Upper) || !reflect.DeepEqual(m.Columns, again.Columns) {
			t.Fatal("a model is not what it was")
		}
		if err := again.Save(&b); err != nil || !bytes.Equal(first, b.Bytes()) {
			t.Fatalf("a model is written otherwise the second time, %v", err)
		}
	})
}
