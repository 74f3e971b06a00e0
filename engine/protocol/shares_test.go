package protocol_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
	"github.com/cohort-engine/cohort/internal/secagg"
)

// sharing is a plan of sums of so many words among servers, each of which adds a share of
// the noise, and the program of a party that holds small numbers.
func sharing(t *testing.T, servers, words, rounds int, ring secagg.Ring) (*protocol.Plan,
	func(id int, got *[][]int64) protocol.Program) {
	t.Helper()
	seed := uint64(3)
	plan := &protocol.Plan{Method: "test", K: 1, D: 1, Parties: 3, Rounds: rounds, Servers: servers, Seed: &seed,
		PublicSeed: protocol.NewPublicSeed(&seed), Capacity: secagg.Capacity{Ring: ring}}
	noise, err := protocol.NewDistribution(protocol.Noise{Mechanism: protocol.Gaussian, Scale: 50,
		Shares: servers - 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	groups := []protocol.Group{{Stream: "a", Values: words, Noise: noise}}
	plan.ServerNoise = func(t int) []protocol.Group {
		if t < rounds {
			return groups
		}
		return nil
	}
	r := plan.Add(&protocol.Release{Name: "numbers", Makers: protocol.ServerShares, Times: rounds})
	return plan, func(id int, got *[][]int64) protocol.Program {
		return func(ctx context.Context, p *protocol.Party) (*protocol.Outcome, error) {
			own := protocol.NewPrivate(words)
			for t := range rounds {
				values := make([]int64, words)
				for i := range values {
					values[i] = int64(id+t+i%5) - 2
				}
				fill(own, values)
				sum, err := p.Sum(ctx, r, t, groups, own)
				if err != nil {
					return nil, err
				}
				*got = append(*got, slices.Clone(sum))
			}
			return &protocol.Outcome{Centroids: []float64{0}}, nil
		}
	}
}

// balance fails the test if the bits of words are not ones and zeros alike: of uniform
// ones that has probability 2e-9.
func balance(t *testing.T, who string, words []uint64, ring secagg.Ring) {
	t.Helper()
	ones, all := 0, len(words)*ring.Bits()
	for _, w := range words {
		ones += bits.OnesCount64(w << (64 - ring.Bits()))
	}
	if z := (float64(ones) - float64(all)/2) / math.Sqrt(float64(all)/4); math.Abs(z) > 6 {
		t.Errorf("%s: %d of %d bits are ones", who, ones, all)
	}
}

// What all servers but one get of a party is uniform; all together have its values. The sum
// that comes out has a share of noise from each server, and is the same over bytes.
func TestSharesAmongServers(t *testing.T) {
	const words, rounds = 512, 2
	for _, servers := range []int{2, 3} {
		for _, ring := range []secagg.Ring{secagg.Ring64, secagg.Ring32} {
			var sums [2][3][][]int64
			views, draws := new(protocol.Views), new(protocol.Draws)
			for apart := range sums {
				plan, party := sharing(t, servers, words, rounds, ring)
				options := protocol.Options{Views: views, Draws: draws}
				if apart == 1 {
					options = protocoltest.Apart(plan)
				}
				var programs []protocol.Program
				for id := range plan.Parties {
					programs = append(programs, party(id, &sums[apart][id]))
				}
				if err := protocol.Start(runtime(t), plan, programs, protocol.ServeShares,
					options).Run(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if fmt.Sprint(sums[0]) != fmt.Sprint(sums[1]) {
				t.Errorf("%d servers: over bytes the sums are others", servers)
			}
			checkShares(t, views, servers, words, ring)
			want := make([][]int64, rounds)
			for round := range want {
				want[round] = make([]int64, words)
				for _, v := range views.Seen {
					if v.Round == round && v.Values != nil && v.Of == v.Viewer {
						for i, x := range v.Values {
							want[round][i] += x
						}
					}
				}
			}
			drawn := map[protocol.Role]int{}
			for _, d := range draws.Seen {
				drawn[d.Role]++
				if d.Noise.Shares != servers-1 {
					t.Errorf("%v draws one of %d shares", d.Role, d.Noise.Shares)
				}
				for i, z := range d.Values {
					want[d.Round][i] += z
				}
			}
			if len(drawn) != servers || drawn[protocol.ServerAt(servers-1)] != rounds ||
				fmt.Sprint(sums[0][0]) != fmt.Sprint(want) ||
				fmt.Sprint(sums[0][2]) != fmt.Sprint(want) {
				t.Errorf("%d servers drew %v, and the sums are not the values with their noise", servers, drawn)
			}
		}
	}
}

// On a replay every party among servers goes on with what the first run released, not only the party that asks first.
func TestReplayAmongServers(t *testing.T) {
	var sums [2][3][][]int64
	replay := new(privacy.Replay)
	for run := range sums {
		plan, party := sharing(t, 2, 8, 3, secagg.Ring32)
		var programs []protocol.Program
		for id := range plan.Parties {
			programs = append(programs, party(id+run*id, &sums[run][id])) // others' values in the second run
		}
		if run == 0 {
			replay.Record()
		} else {
			replay.Replay()
		}
		if err := protocol.Start(runtime(t), plan, programs, protocol.ServeShares,
			protocol.Options{Replay: replay}).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(sums[0]) != fmt.Sprint(sums[1]) {
		t.Errorf("the second run goes on with %v, and the first released %v", sums[1], sums[0])
	}
}

// checkShares looks at what servers get of the first party.
func checkShares(t *testing.T, views *protocol.Views, servers, words int, ring secagg.Ring) {
	t.Helper()
	var all, values [][]uint64 // by round
	shares := map[[2]int][]uint64{}
	for _, v := range views.Seen {
		switch {
		case v.Of == 0 && v.What == protocol.ShareLocal:
			var got []uint64
			for b := v.Message; len(b) > 0; b = b[ring.Bytes():] {
				if ring == secagg.Ring32 {
					got = append(got, uint64(binary.LittleEndian.Uint32(b)))
				} else {
					got = append(got, binary.LittleEndian.Uint64(b))
				}
			}
			shares[[2]int{v.Round, int(protocol.Server - v.Viewer)}] = got
			balance(t, fmt.Sprintf("%v of %d", v.Viewer, servers), got, ring)
		case v.Of == 0 && v.Viewer == 0:
			own := make([]uint64, words)
			for i, x := range v.Values {
				own[i] = uint64(x)
			}
			values, all = append(values, own), append(all, make([]uint64, words))
		}
	}
	for round := range values {
		for s := range servers {
			rest := make([]uint64, words) // what all but this server have
			for other := range servers {
				for i, x := range shares[[2]int{round, other}] {
					if other != s {
						rest[i] += x
					}
				}
			}
			balance(t, fmt.Sprintf("all of %d servers but %d", servers, s+1), rest, ring)
			for i, x := range shares[[2]int{round, s}] {
				all[round][i] += x
			}
		}
		for i := range words {
			if (all[round][i]-values[round][i])<<(64-ring.Bits()) != 0 {
				t.Fatalf("round %d: the shares of %d servers add up to %d, not %d", round, servers, all[round][i],
					values[round][i])
			}
		}
	}
	if len(shares) != servers*len(values) {
		t.Errorf("%d shares were seen", len(shares))
	}
}
