package ckks

import "github.com/cohort-engine/cohort/engine/privacy"

// Scales is the noise on the totals of each of rounds rounds, in records, for arithmetic in the clear: the standard
// deviation on each count and each sum of features in [-1, 1], and whether the key holder adds as much again after
// decryption (THEOREMS.md T4).
func Scales(c privacy.Calibration, nb privacy.Neighbours, b privacy.Budget, rounds, n, k, d int) (count, sum float64,
	twice bool, err error) {
	p, err := planNoise(c, nb, b, rounds, n, k, d, nil)
	return p.count, p.sum, p.keyHolder, err
}

// Scales is the noise of the job's plan, as [Scales] gives it.
func (j *Job) Scales() (count, sum float64, err error) {
	pl, err := j.plan()
	if err != nil {
		return 0, 0, err
	}
	return pl.noise.count, pl.noise.sum, nil
}
