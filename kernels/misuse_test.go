package kernels

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// misuse is a call with wrong lengths: a programming error, whose panic names the function,
// what was given and what was wanted.
type misuse struct {
	what string
	want []string
	call func()
}

func panics(t *testing.T, calls []misuse) {
	t.Helper()
	for _, m := range calls {
		got := func() (message string) {
			defer func() { message = fmt.Sprint(recover()) }()
			m.call()
			return
		}()
		if !strings.HasPrefix(got, "kernels: "+m.what+": ") {
			t.Errorf("%s: panic %q, want one that begins with %q", m.what, got, "kernels: "+m.what+": ")
		}
		for _, part := range m.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: panic %q does not name %q", m.what, got, part)
			}
		}
	}
}

// labelsBeyond are 20 labels, of which one is beyond four clusters.
func labelsBeyond() []uint16 {
	labels := make([]uint16, 20)
	labels[7] = 9
	return labels
}

func TestMisuseOfShapes(t *testing.T) {
	p, c := NewPanels(20, 3), NewCentroids(4, 3)
	panics(t, []misuse{
		{"NewPanels", []string{"d=0"}, func() { NewPanels(3, 0) }},
		{"NewPanels", []string{"n=-1"}, func() { NewPanels(-1, 2) }},
		{"NewCentroids", []string{"k=0"}, func() { NewCentroids(0, 2) }},
		{"NewCentroids", []string{"k=65536", "65535"}, func() { NewCentroids(65536, 2) }},
		{"NewAccumulator", []string{"fractionBits=23", "22"}, func() { NewAccumulator(3, 2, 23) }},
		{"NewWeightedAccumulator", []string{"d=0"}, func() { NewWeightedAccumulator(3, 0) }},
		{"Centroids.Set", []string{"11", "12"}, func() { c.Set(make([]float32, 11)) }},
		{"Pack", []string{"59", "60"}, func() { Pack(p, make([]float32, 59)) }},
		{"Pack", []string{"10", "96"}, func() { Pack(&Panels{N: 20, D: 3, Data: make([]float32, 10)}, make([]float32, 60)) }},
		{"Panels.Slice", []string{"[8:20]", "16"}, func() { p.Slice(8, 20) }},
		{"Panels.Slice", []string{"[16:21]", "20"}, func() { p.Slice(16, 21) }},
		{"Panels.Point", []string{"20"}, func() { p.Point(20, nil) }},
		{"Panels.Set", []string{"2", "3"}, func() { p.Set(0, make([]float32, 2)) }},
		{"Gather", []string{"d=3", "d=4"}, func() { Gather(NewPanels(20, 4), p, []int32{1}) }},
		{"Gather", []string{"2 points", "n=1"}, func() { Gather(NewPanels(1, 3), p, []int32{1, 2}) }},
		{"Gather", []string{"20 of 20"}, func() { Gather(p, p, []int32{20}) }},
		{"Gather", []string{"points -1", "20"}, func() { Gather(p, p, []int32{-1}) }},
		{"NewWeightedPoints", []string{"2", "20"}, func() { NewWeightedPoints(*p, make([]float64, 2)) }},
		{"NewUnitMap", []string{"2", "3"}, func() { NewUnitMap(make([]float64, 3), make([]float64, 2), 16) }},
		{"NewUnitMap", []string{"fractionBits=23", "22"}, func() { NewUnitMap(make([]float64, 3), make([]float64, 3), 23) }},
		{"Extend", []string{"5", "d=2"}, func() { Extend(NewRanges[float32](2), make([]float32, 5)) }},
		{"Quantise", []string{"5", "6"},
			func() { Quantise(make([]float32, 5), make([]float64, 6), NewUnitMap([]float64{0}, []float64{1}, 16)) }},
		{"Quantise", []string{"5", "d=2"}, func() {
			Quantise(make([]float32, 5), make([]float64, 5), NewUnitMap([]float64{0, 0}, []float64{1, 1}, 16))
		}},
		{"MeasureFMA", []string{"threads=0"}, func() { MeasureFMA(0) }},
		{"MeasureRead", []string{"readers=0"}, func() { MeasureRead(100, 0) }},
		{"NewExchanges", []string{"k=0"}, func() { NewExchanges(0) }},
	})
}

func TestMisuseOfAssignment(t *testing.T) {
	p, wide, c := NewPanels(20, 3), NewPanels(20, 17), NewCentroids(4, 3)
	labels, short, high := make([]uint16, 20), make([]uint16, 19), labelsBeyond()
	dist := make([]float32, 20)
	panics(t, []misuse{
		{"Assign", []string{"4 bytes", "64"}, func() {
			Assign(Panels{N: 16, D: 3, Data: NewPanels(32, 3).Data[1:]}, c, labels[:16], nil)
		}},
		{"Assign", []string{"19", "20"}, func() { Assign(*p, c, short, nil) }},
		{"Assign", []string{"1", "20"}, func() { Assign(*p, c, labels, dist[:1]) }},
		{"Assign", []string{"d=3", "d=17"}, func() { Assign(*wide, c, labels, nil) }},
		{"AssignRadius", []string{"19", "20"}, func() { AssignRadius(*p, c, 1, short, nil) }},
		{"Assign2", []string{"3", "20"}, func() { Assign2(*p, c, labels, dist, dist[:3]) }},
		{"Distances", []string{"4", "20"}, func() { Distances(*p, c, labels, dist[:4]) }},
		{"Distances", []string{"labels[7]=9", "k=4"}, func() { Distances(*p, c, high, dist) }},
		{"Stale", []string{"2", "k=1"},
			func() { Stale(make([]float32, 1), []uint16{2}, make([]float32, 2), make([]uint32, 1)) }},
		{"StaleByDistance", []string{"5", "4"},
			func() {
				five := make([]float32, 5)
				StaleByDistance(five, five, five[:4], DistanceBound{}, make([]uint32, 1))
			}},
		{"BoundKeys", []string{"19", "20"},
			func() { BoundKeys(dist, dist, labels, make([]float64, 4), KeyBound{1, 1, 0}, dist[:19], dist) }},
		{"BoundKeys", []string{"labels[7]=9", "k=3"},
			func() { BoundKeys(dist, dist, high, make([]float64, 4), KeyBound{1, 1, 0}, dist, dist) }},
		{"BoundKeys", []string{"{0 1 0}"},
			func() { BoundKeys(dist, dist, labels, make([]float64, 4), KeyBound{0, 1, 0}, dist, dist) }},
		{"Exchange", []string{"19", "20"}, func() { Exchange(dist, dist, dist, short, nil, NewExchanges(4)) }},
		{"Exchange", []string{"3", "20"}, func() { Exchange(dist, dist, dist[:3], labels, nil, NewExchanges(4)) }},
		{"Exchange", []string{"labels[7]=9", "k=4"}, func() { Exchange(dist, dist, dist, high, nil, NewExchanges(4)) }},
		{"CostRows", []string{"7", "8"}, func() { CostRows(*p, 0, 2, c, 16, make([]int64, 7)) }},
		{"CostRows", []string{"[2:1]", "20"}, func() { CostRows(*p, 2, 1, c, 16, nil) }},
		{"CostRows", []string{"fractionBits=23", "22"}, func() { CostRows(*p, 0, 2, c, 23, make([]int64, 8)) }},
		{"TopTwo", []string{"12", "9"}, func() { TopTwo(*p, c.rows, dist[:3], 0, 0, labels, make([]uint32, 20), dist) }},
		{"TopTwo", []string{"19", "20"}, func() { TopTwo(*p, c.rows, dist[:4], 0, 0, labels, make([]uint32, 19), dist) }},
	})
}

func TestMisuseOfSums(t *testing.T) {
	p, wide := NewPanels(20, 3), NewPanels(20, 17)
	c, other := NewCentroids(4, 3), NewCentroids(5, 3)
	acc, weighted := NewAccumulator(4, 3, 16), NewWeightedAccumulator(4, 3)
	labels, short, high := make([]uint16, 20), make([]uint16, 19), labelsBeyond()
	dist := make([]float32, 20)
	points := NewWeightedPoints(*p, make([]float64, 20))
	panics(t, []misuse{
		{"AccumulateOffsets", []string{"19", "20"}, func() { AccumulateOffsets(*p, c, labels, dist[:19], acc) }},
		{"AccumulateOffsets", []string{"k=4", "k=5"}, func() { AccumulateOffsets(*p, other, labels, dist, acc) }},
		{"AssignAccumulate", []string{"k=4", "k=5"}, func() { AssignAccumulate(*p, other, labels, acc) }},
		{"AssignAccumulate", []string{"19", "20"}, func() { AssignAccumulate(*p, c, short, acc) }},
		{"Accumulate", []string{"19", "20"}, func() { Accumulate(*p, short, acc) }},
		{"Accumulate", []string{"d=3", "d=17"}, func() { Accumulate(*wide, labels, acc) }},
		{"Accumulate", []string{"labels[7]=9", "k=4"}, func() { Accumulate(*p, high, acc) }},
		{"Accumulator.Merge", []string{"(4, 3, 16)", "(4, 3, 15)"}, func() { acc.Merge(NewAccumulator(4, 3, 15)) }},
		{"UpdateSums", []string{"19", "20"}, func() { UpdateSums(*p, labels, short, 1, acc) }},
		{"UpdateSums", []string{"labels[7]=9", "k=4"}, func() { UpdateSums(*p, labels, high, 1, acc) }},
		{"Reassign", []string{"19", "20"}, func() { Reassign(*p, c, 1, short, acc, nil) }},
		{"Reassign", []string{"labels[7]=9", "k=4"}, func() { Reassign(*p, c, 1, high, acc, nil) }},
		{"Reassign", []string{"k=4", "k=5"}, func() { Reassign(*p, other, 1, labels, acc, nil) }},
		{"Reassign", []string{"bounds", "2", "1"}, func() { Reassign(*p, c, 1, labels, acc, make([]Bound, 2)) }},
		{"Reassign", []string{"d=17", "16"}, func() {
			Reassign(*wide, NewCentroids(4, 17), 1, labels, NewAccumulator(4, 17, 16), make([]Bound, 1))
		}},
		{"MeasureBounds", []string{"bounds", "2", "1"}, func() { MeasureBounds(*p, c, make([]Bound, 2)) }},
		{"MeasureBounds", []string{"d=17", "16"}, func() { MeasureBounds(*wide, NewCentroids(4, 17), make([]Bound, 1)) }},
		{"AssignAccumulateWeighted", []string{"d=2", "d=3"},
			func() { AssignAccumulateWeighted(points, c, labels, nil, nil, NewWeightedAccumulator(4, 2)) }},
		{"AddMembers", []string{"3", "20"}, func() { AddMembers(points, nil, make([]uint16, 3), nil) }},
		{"AddMembers", []string{"-1", "20"},
			func() { AddMembers(points, []int32{3, -1}, make([]uint16, 20), make([]float64, 4)) }},
		{"AddMembers", []string{"20"},
			func() { AddMembers(points, []int32{20}, make([]uint16, 20), make([]float64, 4)) }},
		{"AddMembers", []string{"labels[0]=0", "k=-1"},
			func() { AddMembers(points, []int32{3}, make([]uint16, 20), make([]float64, 3)) }},
		{"WeightedCost", []string{"3", "2"}, func() { WeightedCost(make([]float64, 2), make([]float32, 3)) }},
		{"AssignAccumulateWeighted", []string{"k=4", "k=5"},
			func() { AssignAccumulateWeighted(points, other, labels, nil, nil, weighted) }},
		{"AssignAccumulateWeighted", []string{"3", "20"},
			func() { AssignAccumulateWeighted(points, c, labels, dist[:3], nil, weighted) }},
	})
}

func TestMisuseOfArrivalsAndCounts(t *testing.T) {
	p := NewPanels(20, 3)
	panics(t, []misuse{
		{"LeastDot", []string{"4 sums", "7 values", "stride 4"},
			func() { LeastDot(make([]float64, 7), 4, 4, make([]float64, 2)) }},
		{"Arrivals", []string{"0", "1048576"}, func() { Arrivals(nil, nil, 1, 1, 1, nil, nil, nil) }},
		{"Arrivals", []string{"rate=0"}, func() { Arrivals(nil, nil, 0, 1, 1, make([]float64, 1), nil, nil) }},
		{"ShareCounts", []string{"length=12"}, func() { ShareCounts(nil, nil, 12, nil, nil, nil, nil) }},
		{"ShareCounts", []string{"row at 1", "8 weights"}, func() {
			ShareCounts(make([]float64, 8), make([]float64, 8), 8, []int32{1}, nil, nil, nil)
		}},
		{"ShareCounts", []string{"len(counts)=0"}, func() { ShareCounts(nil, nil, 8, nil, make([]uint64, 1), nil, nil) }},
		{"SumMaxima", []string{"len(y)=1"}, func() { SumMaxima(nil, make([]float64, 1)) }},
		{"Arrivals", []string{"len(states)=0", "len(digests)=1"}, func() {
			Arrivals(nil, make([][16]byte, 1), 1, 1, 2, make([]float64, 1), []ArrivalState{}, nil)
		}},
		{"Arrivals", []string{"horizon=0.5"}, func() {
			Arrivals(nil, nil, 1, 1, 0.5, make([]float64, 1), []ArrivalState{}, nil)
		}},
		{"Continue", []string{"rate=-1"}, func() { Continue(nil, nil, -1, 1, make([]float64, 1), nil) }},
		{"Arrivals", []string{"limit=NaN"}, func() {
			Arrivals(nil, nil, 1, math.NaN(), 1, make([]float64, 1), nil, nil)
		}},
		{"Arrivals", []string{"limit=1e+09", "2^31"}, func() {
			Arrivals(nil, nil, 1, 1e9, 1e9, make([]float64, 3), nil, nil)
		}},
		{"CountCells", []string{"len(column)=1", "want 2"}, func() {
			CountCells([][]uint16{{0, 0}, {0}}, 2, make([]int64, 4))
		}},
		{"CountCells", []string{"len(counts)=5", "side=2 in 2"},
			func() { CountCells(make([][]uint16, 2), 2, make([]int64, 5)) }},
		{"CountGrid", []string{"len(counts)=0", "side=0"}, func() { CountGrid(*p, 0, nil) }},
		{"CountGrid", []string{"2^31"}, func() { CountGrid(*NewPanels(1, 40), 3, nil) }},
		{"WeighGrid", []string{"len(units)=2"}, func() { WeighGrid(*p, 1, make([]uint32, 2), make([]int64, 1)) }},
		{"AddUint64", []string{"2", "3"}, func() { AddUint64(make([]uint64, 3), make([]uint64, 2)) }},
	})
}
