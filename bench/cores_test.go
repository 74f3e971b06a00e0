package bench

import "testing"

func TestCoreModel(t *testing.T) {
	m := coreModel{serial: 10, parallel: 90, shards: 9, bytes: 20, bandwidth: 1e9}
	for cores, want := range map[int]float64{
		1: 100,               // what was measured
		2: 60,                // one core has 5 shards of 10
		3: 40, 9: 30, 64: 30, // bytes take 20
	} {
		if got := m.iteration(cores); got != want {
			t.Errorf("%d cores take %v, want %v", cores, got, want)
		}
	}
	m.arithmetic = 75
	for together, want := range map[float64]float64{
		0: 60, 2: 60, // as two cores
		1:    85, // the arithmetic takes turns
		1.25: 70,
	} {
		if got := m.pair(together); got != want {
			t.Errorf("two workers that together do %v of the arithmetic take %v, want %v", together, got, want)
		}
	}
}
