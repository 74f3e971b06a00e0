package seeding

import "slices"

// Candidates of a part that is alone are drawn for several steps together, so that one pass over the records serves
// them all. A record is proposed in proportion to its squared distance D at the time; when its turn comes, and it has
// D' by then, it is taken with the probability D'/D, which is at most 1, and else passed over. So the candidates of
// each step follow the distances of that step, independent of one another: given all before it, a proposal that is
// taken is record i with a probability in proportion to D_i (D'_i/D_i).

// draws are the proposals for some steps.
type draws struct {
	records []int32
	squares []float32 // by record, its squared distance when it was proposed
	rows    []float32 // of the records
	next    int       // the first whose turn has not come
	step    []int     // those that are taken in the present step
	served  int       // steps so far
	scanned bool      // the screening has been through the records
}

const (
	// drawnSteps is the number of centres before which proposals, whose distances fall fast, are for one step.
	drawnSteps = screenWait
	// drawnMost is the number of proposals at a time at most, for trials that are fewer.
	drawnMost = 64
)

// Candidates names the candidates of the next step of a part that is alone, as [Picks] does.
func (p *Part) Candidates(uniform func() float64) []Pick {
	d, total := &p.draws, p.Potential()
	if p.expected == 0 || p.centres < drawnSteps || total == 0 {
		d.forget()
		var weights []float64
		if total == 0 {
			weights = []float64{p.Weight()}
		}
		return Picks([]float64{total}, weights, p.weights == nil, p.trials, uniform)
	}
	d.step, d.served = d.step[:0], d.served+1
	for len(d.step) < p.trials {
		if d.next == len(d.records) {
			p.propose(total, uniform)
		}
		before, now := d.squares[d.next], p.nearest[d.records[d.next]]
		if now == before || float64(uniform()*float64(before)) < float64(now) {
			d.step = append(d.step, d.next)
		}
		d.next++
	}
	picks := make([]Pick, p.trials)
	for i, at := range d.step { // all records weigh the same
		picks[i] = Pick{At: float64(d.records[at]), ByWeight: true}
	}
	return picks
}

// forget drops the proposals.
func (d *draws) forget() {
	*d = draws{records: d.records[:0], squares: d.squares[:0], rows: d.rows[:0], step: d.step[:0]}
}

// propose draws proposals, after those that the present step has taken: for twice as many steps as the last ones have
// served.
func (p *Part) propose(total float64, uniform func() float64) {
	d := &p.draws
	size := 2 * p.trials * max(1, d.served-1)
	left := max(1, p.expected-p.centres)*p.trials - len(d.step)
	size = max(min(size, left, drawnMost-len(d.step)), p.trials-len(d.step))
	columns := p.points.D
	for i, at := range d.step { // in rising order
		d.records[i], d.step[i] = d.records[at], i
		copy(d.rows[i*columns:(i+1)*columns], d.rows[at*columns:])
	}
	d.next, d.served, d.scanned = len(d.step), 1, false
	d.records, d.squares, d.rows = d.records[:d.next], d.squares[:d.next], d.rows[:d.next*columns]
	for range size {
		at := p.find(float64(uniform() * total))
		d.records, d.squares = append(d.records, int32(at)), append(d.squares, p.nearest[at])
		d.rows = append(slices.Grow(d.rows, columns), p.recordAt(at, nil)...)
	}
}

// adopt makes rows the present step, where they are not what was drawn for it.
func (d *draws) adopt(rows []float32, columns int) {
	same := len(d.step)*columns == len(rows)
	for i := 0; same && i < len(d.step); i++ {
		at := d.step[i] * columns
		same = slices.Equal(rows[i*columns:(i+1)*columns], d.rows[at:at+columns])
	}
	if same {
		return
	}
	d.forget()
	d.rows = append(d.rows, rows...)
	for i := range len(rows) / columns {
		d.step = append(d.step, i)
	}
}
