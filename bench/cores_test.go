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
}
