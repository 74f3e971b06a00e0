package main

import "slices"

// one is a mutant of a single edit.
func one(name, in, old, new, test, run, says string) mutant {
	return mutant{name, in, []edit{{old, new}}, test, run, says}
}

const (
	inPrivacy    = "engine/privacy"
	inProtocol   = "engine/protocol"
	inCentral    = "engine/central"
	inHorizontal = "engine/horizontal"
	inVertical   = "engine/vertical"
	inHE         = "engine/vertical/he"
	inSecagg     = "engine/secagg"
	inDataset    = "engine/dataset"
	inFlow       = "flow"
	inCommand    = "cmd/cohort"
)

// catalogue is all mutants, by subject.
func catalogue() []mutant {
	return slices.Concat(noise(), randomness(), accounting(), ledgers())
}

// noise has bugs of the samplers and mechanisms.
func noise() []mutant {
	return []mutant{
		one("the scale of discrete Laplace noise is halved", inPrivacy, "num, den := rational(b)\n\tt.setExponent", "num, den := rational(b / 2)\n\tt.setExponent", inPrivacy, "TestDiscreteLaws", "laplace"),
		one("the scale of discrete Gaussian noise is halved", inPrivacy, "num, den := rational(sigma)", "num, den := rational(sigma / 2)", inPrivacy, "TestDiscreteLaws", "gaussian"),
		one("Gaussian noise is never negative", inPrivacy, "\t\tif k|j|(^v&1) == 0 {\n\t\t\tcontinue // minus zero\n\t\t}", "\t\tv &^= 1", inPrivacy, "TestDiscreteLaws", "gaussian"),
		one("a share of Laplace noise has half of its jumps", inPrivacy, "mul = new(big.Int).Lsh(big.NewInt(2), rateBits+shift)", "mul = new(big.Int).Lsh(big.NewInt(1), rateBits+shift)", inPrivacy, "TestLaplaceShare", "share"),
		one("a share of Laplace noise is always kept", inPrivacy, "case a > r+guard:\n\t\treturn 0\n\t}\n\tmul, div, x := l.proposed", "case a > r+guard:\n\t\treturn k\n\t}\n\tmul, div, x := l.proposed", inPrivacy, "TestLaplaceShare", "share"),
		one("the guard units of a table are all kept", inPrivacy, "\tu := lazy{new(big.Int), 0}\n\treturn u.below(st, new(big.Int).SetUint64(g.t.weight[item])", "\tu := lazy{new(big.Int), 0}\n\treturn true || u.below(st, new(big.Int).SetUint64(g.t.weight[item])", inPrivacy, "TestRareDrawsHaveTheLaw", "gaussian|kept|edge"),
		one("selection does not subtract the maximum", inPrivacy, "x[i] = float64((best - u) * rate)", "x[i] = math.Max(0, float64((0-u)*rate))", inPrivacy, "TestSelection", "maximum|candidate|PermuteAndFlip|exponential"),
		one("selection at twice its rate where records are replaced", inPrivacy, "if !s.Monotone || s.Neighbours == ReplaceOne {", "if !s.Monotone {", inPrivacy, "TestSelection", "replace-one"),
	}
}

// randomness has bugs of the streams.
func randomness() []mutant {
	return []mutant{
		one("all parties draw from one stream", inPrivacy, "b = binary.LittleEndian.AppendUint64(b, uint64(party))", "b = binary.LittleEndian.AppendUint64(b, uint64(party)*0)", inPrivacy, "TestStreams", "party"),
		one("all rounds draw from one stream", inPrivacy, "b = binary.LittleEndian.AppendUint64(b, uint64(iteration))", "b = binary.LittleEndian.AppendUint64(b, uint64(iteration)*0)", inPrivacy, "TestStreams", "iteration"),
		one("all purposes draw from one stream", inPrivacy, "b = append(b, purpose...)", "b = append(b, purpose[:0]...)", inPrivacy, "TestStreams", "purpose"),
		one("repetitions of a run draw from one stream", inPrivacy, `s.Reset(&st, 0, r, "run")`, `s.Reset(&st, 0, r*0, "run")`, inPrivacy, "TestStreams", "run"),
		{"the system's randomness is replaced by the clock", inPrivacy, []edit{{"\t\tcrand.Read(s.root[:]) // never", "\t\tcrand.Read(s.root[:0])\n\t\tbinary.LittleEndian.PutUint64(s.root[:], uint64(time.Now().UnixNano())) // never"}, {"\t\"math/bits\"\n\t\"math/rand/v2\"", "\t\"math/bits\"\n\t\"math/rand/v2\"\n\t\"time\""}}, inPrivacy, "TestRoots", "root"},
	}
}

// accounting has bugs of the accountants and of sensitivities.
func accounting() []mutant {
	return []mutant{
		one("zCDP at half the price", inPrivacy, "return 0.5 / (g.Scale * g.Scale)", "return 0.25 / (g.Scale * g.Scale)", inPrivacy, "TestPureAndZCDPClosedForms|TestCurrencies", "rho|zcdp|Gaussian"),
		one("a pure mechanism at half its Renyi divergence", inPrivacy, "x := alpha*e - math.Log1p(math.Exp(e))", "x := alpha*e/2 - math.Log1p(math.Exp(e))", inPrivacy, "TestCurrencies", "Pure|divergence|order"),
		one("disjoint releases cost as the cheapest", inPrivacy, "w = math.Max(w, f(m))", "w = math.Max(math.Inf(-1), f(m))", inPrivacy, "TestParallel|TestLedgerTotalsPerViewer", "half|parallel|clients"),
		one("the distance of discrete noise is left out", inPrivacy, "return math.Min(1, float64(n)*(0.0607/(sigma*sigma)", "return math.Min(0, float64(n)*(0.0607/(sigma*sigma)", inPrivacy, "TestGaussianSlack", "distance|slack|sigma"),
		one("the distance of shares is left out", inPrivacy, "return math.Min(10*s, 1)", "return math.Min(10*s, 0)", inPrivacy, "TestSplitDistance", "share"),
		one("loss distributions are rounded to the cheaper side", inPrivacy, "g.infinite = l.infinite + l.above\n", "g.infinite = 0\n", inPrivacy, "TestPLD", "."),
		one("composition one round short", inPrivacy, "func (s Spec) Times() int { return max(1, s.Rounds) }", "func (s Spec) Times() int { return max(1, s.Rounds-1) }", inPrivacy, "TestLedgerTotals", "outsider"),
		one("a composed part is forgotten", inPrivacy, "a.parts[i].rounds += rounds", "a.parts[i].rounds += 0", inPrivacy, "TestPLD|TestLedgerTotals|TestMoreNever", "."),
		one("phantoms are halved", inPrivacy, "\t\t\tn = min(n, hi-1)\n\t\t}\n\t}\n\treturn hi, nil", "\t\t\tn = min(n, hi-1)\n\t\t}\n\t}\n\treturn hi / 2, nil", inPrivacy, "TestFMPhantomsPLDIsTheTable", "phantoms"),
		one("the sensitivity of constrained centroids is one cluster's", inPrivacy, "v := clusters(s) * dims(s) * rounded(s, 2*s.Bound*exclusive(s)/float64(s.Lo))", "v := dims(s) * rounded(s, 2*s.Bound*exclusive(s)/float64(s.Lo))", inPrivacy, "TestCalibrationsTable", "centroids"),
		one("a rounded quotient is taken for an exact one", inPrivacy, "return (math.Floor(x/s.Unit) + 1) * s.Unit", "return x", inPrivacy, "TestCalibrationsTable", "centroids"),
		one("sums are bounded by one coordinate", inPrivacy, "boxL1 = twice(func(s Shape) float64 { return dims(s) * s.Bound })", "boxL1 = twice(func(s Shape) float64 { return s.Bound })", inPrivacy, "TestCalibrationsTable", "sums"),
		one("replacing a record costs as much as adding one", inPrivacy, "\t\tif s.Neighbours == ReplaceOne {\n\t\t\treturn 2 * f(s)\n\t\t}", "", inPrivacy, "TestCalibrationsTable", "replace"),
	}
}

// ledgers has bugs of what is entered, added up and charged.
func ledgers() []mutant {
	return []mutant{
		one("what is public is not charged to the server", inPrivacy, "return e.Kind == Release && (slices.Contains(e.Viewers, viewer) || slices.Contains(e.Viewers, Outsider))", "return e.Kind == Release && slices.Contains(e.Viewers, viewer)", inPrivacy, "TestLedgerTotalsPerViewer", "server"),
		one("who draws the noise pays as if it did not know it", inPrivacy, "return e.Cost.Family != \"\" && !e.Noise.hides(viewer)", "return false", inPrivacy, "TestLedgerTotalsCountUnknownNoiseOnly", "server"),
		one("the failure of ties is not in the totals", inPrivacy, "a.failure += s.Failure", "a.failure += 0", inPrivacy, "TestLedgerTotalsHaveAdditiveDeltas", "failure"),
		one("the distance of shares is not in the totals", inPrivacy, "a.distance += s.Distance", "a.distance += 0", inPrivacy, "TestLedgerTotalsHaveAdditiveDeltas", "distance"),
		one("a ledger file lets every run start", inPrivacy, "\t\t\tif !c.within(before.Limit) {", "\t\t\tif false {", inPrivacy, "TestLedgerFileSpends", "fifth run"),
		one("a ledger file charges the outsider alone", inPrivacy, "if c, ok := charges[viewer]; ok {", "if c, ok := charges[Outsider]; ok {", inPrivacy, "TestLedgerFileChargesEveryViewer", "server"),
		one("a ledger file does not charge for what is public", inPrivacy, "\t\treturn charges[Outsider]\n", "\t\treturn Charge{}\n", inPrivacy, "TestLedgerFileChargesEveryViewer", "server"),
		one("a ledger file takes a guarantee for replaced records", inPrivacy, "if relation == ReplaceOne && t.Neighbours == AddRemove {", "if false {", inPrivacy, "TestLedgerFileHasOneRelation", "replacing"),
		one("two steps cost twice rho", inPrivacy, "c.Amount *= 4\n", "c.Amount *= 2\n", inPrivacy, "TestLedgerFileHasOneRelation", "amount"),
		one("lines of a ledger file may be altered", inPrivacy, "if !ok || string(chain) != s.chained(body) {", "if !ok {", inPrivacy, "TestLedgerFileDetectsDamage", "altered"),
		one("lines may be cut off a ledger file", inPrivacy, "if s.lines < anchorLine {", "if false {", inPrivacy, "TestLedgerFileKeyAndAnchor", "lost"),
		one("a simulation is charged as a run", inCommand, "if o.given(\"seed\") {\n\t\treturn fault.Request(\"--ledger\"", "if false {\n\t\treturn fault.Request(\"--ledger\"", inCommand, "TestRunsSpendALedgerFile", "--seed"),
	}
}
