package pca

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/dataset/datasettest"
	"github.com/cohort-engine/cohort/engine/enginetest"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/step/staged"
	"github.com/cohort-engine/cohort/engine/step/staged/stagedtest"
)

// TestPrincipalAxes compares the variance that the axes explain with that of
// gonum's principal components.
func TestPrincipalAxes(t *testing.T) {
	norm, _ := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 12, K: 4, Separation: 6, Seed: 3})
	p := norm.Points
	data := mat.NewDense(p.N, p.D, nil)
	for i := range p.N {
		data.SetRow(i, staged.Widen(p.Point(i, nil)))
	}
	var components stat.PC
	if !components.PrincipalComponents(data, nil) {
		t.Fatal("gonum finds no components")
	}
	variances := components.VarsTo(nil)
	const q = 3
	var axes []float32
	stagedtest.OnParty(t, stagedtest.Plan(t, p, 4), p, func(ctx context.Context, p *staged.Party) (err error) {
		_, axes, err = principalAxes(ctx, p, q)
		return err
	})
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, data, nil)
	var got, want float64
	for a := range q {
		axis := mat.NewVecDense(p.D, staged.Widen(axes[a*p.D:(a+1)*p.D]))
		got += mat.Inner(axis, &covariance, axis)
		want += variances[a]
	}
	if math.Abs(got-want) > 1e-3*want {
		t.Errorf("%d axes explain a variance of %v, want %v", q, got, want)
	}
}

func TestPCAFindsClusters(t *testing.T) {
	norm, table := datasettest.Builtin(t, "blobs", dataset.Generator{N: 3000, D: 30, K: 4, Separation: 10, Seed: 5})
	eng := enginetest.New(t)
	res, err := eng.Run(context.Background(),
		&Job{Problem: protocol.Problem{Clients: []dataset.Part{datasettest.Part(norm.Points)}, Bounds: norm.Bounds,
			Labels: table.Labels, K: 4}})
	if err != nil {
		t.Fatal(err)
	}
	if *res.ARI < 0.99 || res.Epsilon != nil || res.Calibration != string(privacy.None) {
		t.Errorf("adjusted Rand index %v, epsilon %v, calibration %s", *res.ARI, res.Epsilon, res.Calibration)
	}
}
