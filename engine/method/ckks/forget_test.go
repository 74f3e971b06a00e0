package ckks

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/ckks/rns"
	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

// forgetCases are jobs of every mode.
func forgetCases() map[string]*Job {
	return map[string]*Job{
		"two-party":    {Problem: protocol.Problem{Columns: [][]int{{0}, {1, 2}}}},
		"server-aided": {Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}},
		"multiparty":   {Problem: protocol.Problem{Columns: [][]int{{0}, {1}, {2}}}, Mode: Multiparty},
		"threshold":    {Problem: protocol.Problem{Columns: [][]int{{}, {0}, {1}, {2}}}, Mode: Multiparty, Threshold: 2},
	}
}

// forgetJob completes a case.
func forgetJob(t *testing.T, j *Job) *run {
	t.Helper()
	data := sample(t, "blobs", 300, 3, 2, 3)
	j.Clients, j.Bounds, j.Budget = data.Table(), data.Bounds, privacy.Budget{Epsilon: 5, Delta: 1e-5}
	j.K, j.Iterations, j.Seed, j.chain = 2, 2, seed(3), &smallChain
	return planned(t, j)
}

// Rows that others may have next hold no secret, mask or error, in any form that these are computed with.
func TestFreeRowsHoldNoSecrets(t *testing.T) {
	for name, j := range forgetCases() {
		t.Run(name, func(t *testing.T) {
			s := forgetJob(t, j)
			roles, programs := s.newParties()
			pool := engine.NewPool(2)
			defer pool.Close()
			play(t, s.jobPlan, pool, programs...)
			secrets := knownSecrets(t, s, roles)
			leftInRows(t, s.params, secrets)
		})
	}
}

// leftInRows looks for secrets in free rows, of which there are some.
func leftInRows(t *testing.T, p *parameters, secrets map[uint64]string) {
	t.Helper()
	free, found := 0, map[string]int{}
	for _, row := range p.lattice.NewPoly(20000) {
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(row))), 4*len(row))
		for at := 0; at < len(b); at += len(row) { // small coefficients begin at each quarter
			x := binary.LittleEndian.Uint64(b[at+probe:])
			if x == 0 {
				continue
			}
			free++
			if what, ok := secrets[x]; ok {
				found[what]++
			}
		}
	}
	if len(found) > 0 || free == 0 {
		t.Errorf("%d free quarters of rows have %v of %d secrets", free, found, len(secrets))
	}
}

// What makes one key, mask or ciphertext leaves nothing either, before others take its rows.
func TestMakingLeavesNoSecrets(t *testing.T) {
	rnd := testEntropy(6)
	seedKey := rnd.key("seed", 0)
	for what, making := range map[string]func(p *parameters, sk *secretKey) []rns.Poly{
		"key": func(p *parameters, sk *secretKey) []rns.Poly { return newRelinearisation(p, sk, rnd).make(alone).Rows },
		"rotation": func(p *parameters, sk *secretKey) []rns.Poly {
			return newRotation(p, sk, 1, seedKey, rnd).make(alone).Rows
		},
		"public key": func(p *parameters, sk *secretKey) []rns.Poly {
			return []rns.Poly{newPublicKey(p, sk, aggregateLevel, -1, seedKey, rnd).B}
		},
		"column": func(p *parameters, sk *secretKey) []rns.Poly {
			c := encryptSeeded(p, slices.Repeat([]int64{0}, p.N()), aggregateLevel, 1<<26, sk, rnd, "column 0", 0)
			return []rns.Poly{c.C0}
		},
		"mask": func(p *parameters, sk *secretKey) []rns.Poly {
			m := (&computer{params: p, rnd: rnd}).drawMask(p.lattice.Room(), 0)
			return []rns.Poly{m.u, m.e}
		},
	} {
		p := smallParameters(t)
		sk := newSecretKey(p, rnd, alone)
		kept := making(p, sk)
		public := p.lattice.NewPoly(0)
		public[0][probe/4] = 1
		p.lattice.Free(public)
		bob := &bob{peer: peer{rnd: rnd}, secret: sk}
		s := &run{jobPlan: &jobPlan{params: p, Plan: &protocol.Plan{D: 1, Rounds: 1}, job: &Job{}}}
		s.job.K = 1
		t.Run(what, func(t *testing.T) {
			leftInRows(t, p, knownSecrets(t, s, &parties{bob: bob, alice: &alice{peer: peer{rnd: rnd}}}))
		})
		runtime.KeepAlive(kept)
	}
}

// probe is where eight bytes of a secret are looked at.
const probe = 64

// knownSecrets are eight bytes of each form of the roles' secrets, masks and errors.
func knownSecrets(t *testing.T, s *run, roles *parties) map[uint64]string {
	p := smallParameters(t) // with free rows of its own
	all := map[uint64]string{}
	small := func(what string, x []int8) {
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
		all[binary.LittleEndian.Uint64(b[probe:])] = what
	}
	rows := func(what string, x rns.Poly) {
		for _, row := range x {
			all[uint64(row[probe/4])|uint64(row[probe/4+1])<<32] = what
		}
	}
	factors := func(what string, x rns.Poly) {
		rows(what, x)
		y := p.lattice.NewPoly(x.Level())
		p.lattice.Unfactor(y, x)
		rows(what+", as a factor", y)
		p.lattice.Wipe(y)
	}
	secret := func(k *secretKey, rnd entropy) {
		factors("secret", rns.Poly(k.main[:p.MaxLevel()+1]))
		factors("secret of the aggregates", rns.Poly(k.small[:p.MaxLevel()+1]))
		square := k.main.factor(p.lattice, len(p.Q()))
		p.lattice.Multiply(square, rns.Poly(k.main), square)
		rows("square of the secret", square)
		p.lattice.Wipe(square)
		if index, err := p.turn(-1); err == nil {
			turned := p.lattice.NewPoly(p.MaxLevel())
			for i, row := range turned {
				ntt.Permute(row, k.main[i], index)
			}
			rows("turned secret", turned)
			p.lattice.Wipe(turned)
		}
		small("coefficients of the secret", newTernary(p.N(), rnd.prng("secret", 0)))
		small("error of the public key", newErrors(p.N(), rnd.prng("public key: error", aggregateLevel)))
		for _, key := range []string{"relinearisation key", "ring switching key"} {
			small("error of the "+key, newErrors(p.N(), rnd.prng(key+": errors", 0)))
		}
		small("error of a rotation key", newErrors(p.N(), rnd.prng("rotation key: errors", 1)))
		for h := range s.D {
			for i := range 2 {
				small("error of a column", newErrors(p.N(), rnd.prng(fmt.Sprintf("column %d: error", h), i)))
			}
		}
	}
	if roles.bob != nil {
		secret(roles.bob.secret, roles.bob.rnd)
	}
	for _, m := range roles.members {
		secret(m.secret, m.rnd)
	}
	rnd := roles.alice.peer.rnd
	for index := range s.Rounds * s.job.K * (1 + s.D) {
		prng := rnd.prng("re-randomisation", index)
		u := newTernary(p.N(), prng)
		newErrors(1, prng)
		e := newErrors(p.N(), prng)
		small("secret of a mask", u)
		small("error of a mask", e)
		x, y := transformed(p.lattice.Room(), u, aggregateLevel), transformed(p.lattice.Room(), e, aggregateLevel)
		rows("error of a mask, transformed", y)
		p.lattice.Factor(x)
		rows("secret of a mask, as a factor", x)
		p.lattice.Wipe(x, y)
	}
	return all
}

// When a run has ended its roles have no secrets any more.
func TestRolesForgetTheirSecrets(t *testing.T) {
	for name, j := range forgetCases() {
		t.Run(name, func(t *testing.T) {
			s := forgetJob(t, j)
			pool := engine.NewPool(2)
			defer pool.Close()
			_, roles, err := s.play(context.Background(), engine.NewRuntime(pool), protocol.Options{})
			if err != nil {
				t.Fatal(err)
			}
			gone := func(what string, k *secretKey, share *smallSecret) {
				for _, x := range []rns.Poly{rns.Poly(k.main), rns.Poly(k.small)} {
					for _, row := range x {
						for _, w := range row {
							if w != 0 {
								t.Fatalf("%s has a secret", what)
							}
						}
					}
				}
				for _, row := range share {
					for _, w := range row {
						if w != 0 {
							t.Fatalf("%s has a share of the aggregates' secret", what)
						}
					}
				}
			}
			if roles.bob != nil {
				gone("the key holder", roles.bob.secret, &roles.bob.small)
			}
			for i, m := range roles.members {
				gone(fmt.Sprint("key holder ", i+1), m.secret, &m.share)
			}
		})
	}
}

// Keys of a run that ends before all of them is drawn have secrets that are not there yet.
func TestKeysOfAnEndedRun(t *testing.T) {
	p := smallParameters(t)
	rnd := testEntropy(4)
	sk := newSecretKey(p, rnd, alone)
	for most := range 7 {
		drafts := []*draft{newRelinearisation(p, sk, rnd), newSmallRing(p, sk, rnd.key("seed", 0), rnd)}
		left := most
		makeKeys(func(n int, f func(i int)) {
			for i := 0; i < n && left > 0; i++ {
				f(i)
				left--
			}
			left = 0
		}, drafts)
	}
}
