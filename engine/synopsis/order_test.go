package synopsis

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder: the widest axis is cut, one as wide as the others in turn, none too often.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		widths []float64
		most   int
		want   []int
	}{
		{[]float64{2, 2, 2}, 16, []int{0, 1, 2, 0, 1, 2}},
		{[]float64{1, 8, 2}, 16, []int{1, 1, 1, 2, 0, 1}},
		{[]float64{1, 8, 2}, 2, []int{1, 1, 2, 0, 2, 0}},
	} {
		if got := Widest(c.widths, len(c.want), c.most); !slices.Equal(got, c.want) {
			t.Errorf("%+v: cut %v", c, got)
		}
	}
	if !slices.Equal(InTurn(3, 5), []int{0, 1, 2, 0, 1}) {
		t.Error("axes are not cut in turn")
	}
}

// TestPathsAlong: the records of a leaf lie in its box, whatever the order of the cuts, and each
// box has the sides that the order gives it.
func TestPathsAlong(t *testing.T) {
	const n, d, bits = 3000, 3, 2
	rows := gridRows(rand.New(rand.NewPCG(7, 8)), n, d)
	p, order := packed(rows, d), []int{1, 1, 0, 1, 2, 1}
	paths, err := PathsAlong(context.Background(), nil, p, testBits, bits, order, nil)
	if err != nil {
		t.Fatal(err)
	}
	walker := NewWalker(paths)
	trie, err := Growing{Bits: bits, Levels: 3, Threshold: func(float64) float64 { return 0 },
		Count: func(_, cells int) ([]float64, float64, error) {
			counts, noisy := make([]int64, cells), make([]float64, cells)
			err := walker.Count(context.Background(), nil, counts)
			for c, x := range counts {
				noisy[c] = float64(x)
			}
			return noisy, 1, err
		}}.Grow(nil, walker)
	if err != nil {
		t.Fatal(err)
	}
	inside := 0.0
	for _, b := range trie.BoxesAlong(d, order) {
		for h, cuts := range []float64{1, 4, 1} { // whole trees have been cut so often
			if side := b.Hi[h] - b.Lo[h]; side < 2/float64(int(1)<<int(cuts)) {
				t.Errorf("side %d of %v is %v", h, b, side)
			}
		}
		count := 0.0
		for i := range n {
			in := true
			for h := range d {
				x := float64(p.Point(i, nil)[h])
				in = in && x >= b.Lo[h] && (x < b.Hi[h] || b.Hi[h] == 1)
			}
			if in {
				count++
			}
		}
		if count != b.Weight {
			t.Errorf("box %v holds %v records", b, count)
		}
		inside += count
	}
	if inside != n {
		t.Errorf("%v of %d records are in boxes", inside, n)
	}
}

// TestPathsAreBitsOfAxes compares codes with their definition, cut by cut, for axes cut from never to each bit,
// and with images.
func TestPathsAreBitsOfAxes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	flip := func(h int, dst, src []float32) {
		for i, x := range src {
			dst[i] = x
			if h%2 == 1 {
				dst[i] = -x
			}
		}
	}
	for _, shape := range [][2]int{{1, 9}, {2, 18}, {3, 20}, {5, 30}, {40, 60}, {8, 64}} {
		const n = 100
		d, cuts := shape[0], shape[1]
		rows := gridRows(rng, n, d)
		for i := range min(len(rows), 6) {
			rows[i] = float32(i%3 - 1)
		}
		p, order, times := packed(rows, d), make([]int, 0, cuts), make([]int, d)
		for len(order) < cuts {
			if h := rng.IntN(d); times[h] <= testBits {
				order = append(order, h)
				times[h]++
			}
		}
		for _, image := range []func(int, []float32, []float32){nil, flip} {
			paths, err := PathsAlong(context.Background(), nil, p, testBits, 1, order, image)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				row, want, used := p.Point(i, nil), uint64(0), make([]int, d)
				if image != nil {
					for h := range row {
						image(h, row[h:h+1], row[h:h+1])
					}
				}
				for _, h := range order {
					place := min(int64(row[h]*(1<<testBits))+1<<testBits, 1<<(testBits+1)-1)
					want = want<<1 | uint64(place>>(testBits-used[h])&1)
					used[h]++
				}
				if got := paths.code(i); got != want {
					t.Fatalf("d=%d, %d cuts: record %v has the path %b, want %b", d, cuts, row, got, want)
				}
			}
		}
	}
}
