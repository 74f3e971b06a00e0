package dataset

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/kernels"
)

// The memory of records that were closed has none of them left for whoever takes it next.
func TestSpareMemoryIsCleared(t *testing.T) {
	p := kernels.NewPanels(20, 3)
	for i := range p.Data {
		p.Data[i] = 1
	}
	var room spareRoom
	room.put(p)
	memory := room.take()
	if len(memory) != len(p.Data) || slices.ContainsFunc(memory, func(x float32) bool { return x != 0 }) {
		t.Errorf("the memory kept is %v", memory)
	}
	if room.take() != nil {
		t.Error("memory is handed out twice")
	}
}
