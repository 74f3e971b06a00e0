package main

import "slices"

// one is a mutant of a single edit.
func one(name, in, old, new, test, run, says string) mutant {
	return mutant{name, in, []edit{{old, new}}, test, run, says}
}

const (
	inCohort     = "."
	inPrivacy    = "engine/privacy"
	inProtocol   = "engine/protocol"
	inStaged     = "engine/step/staged"
	inStep       = "engine/step"
	inHorizontal = "engine/method/lloyd"
	inHE         = "engine/method/ckks"
	inSketch     = "engine/method/sketch"
	inSecagg     = "internal/secagg"
	inSecret     = "internal/secret"
	inDataset    = "engine/dataset"
	inFlow       = "flow"
	inCommand    = "cmd/cohort"
	inBounds     = "engine/bounds"
	inCensus     = "engine/census"
	inAudit      = "engine/audit"
	inGate       = "internal/gate"
	inBalcan     = "engine/method/balcan"
	inStudy      = "engine/study"
	inSums       = "engine/study/sum"
	inCatalog    = "engine/catalog"
)

// catalogue is all mutants, by subject.
func catalogue() []mutant {
	return slices.Concat(noise(), randomness(), accounting(), ledgers(), files(), deals(), gate(), scales(),
		steps(), byRank(), messages())
}

// noise has bugs of the samplers and mechanisms.
func noise() []mutant {
	return []mutant{
		one("the scale of discrete Laplace noise is halved", inPrivacy, "num, den := rational(b)\n\tt.setExponent",
			"num, den := rational(b / 2)\n\tt.setExponent", inPrivacy, "TestDiscreteLaws", "laplace"),
		one("the scale of discrete Gaussian noise is halved", inPrivacy, "num, den := rational(sigma)",
			"num, den := rational(sigma / 2)", inPrivacy, "TestDiscreteLaws", "gaussian"),
		one("Gaussian noise is never negative", inPrivacy,
			"\t\tif k|j|(^v&1) == 0 {\n\t\t\tcontinue // minus zero\n\t\t}",
			"\t\tv &^= 1", inPrivacy, "TestDiscreteLaws", "gaussian"),
		one("a share of Laplace noise has half of its jumps", inPrivacy,
			"mul = new(big.Int).Lsh(big.NewInt(2), rateBits+shift)",
			"mul = new(big.Int).Lsh(big.NewInt(1), rateBits+shift)",
			inPrivacy, "TestLaplaceShare", "share"),
		one("a share of Laplace noise is always kept", inPrivacy,
			"case a > r+guard:\n\t\treturn 0\n\t}\n\tmul, div, x := l.proposed",
			"case a > r+guard:\n\t\treturn k\n\t}\n\tmul, div, x := l.proposed", inPrivacy, "TestLaplaceShare",
			"share"),
		one("the guard units of a table are all kept", inPrivacy,
			"\tu := lazy{new(big.Int), 0}\n\treturn u.below(st, new(big.Int).SetUint64(g.t.weight[item])",
			"\tu := lazy{new(big.Int), 0}\n\treturn true || u.below(st, new(big.Int).SetUint64(g.t.weight[item])",
			inPrivacy,
			"TestRareDrawsHaveTheDistribution", "gaussian|kept|edge"),
		one("selection does not subtract the maximum", inPrivacy, "x[i] = float64((best - u) * rate)",
			"x[i] = math.Max(0, float64((0-u)*rate))", inPrivacy, "TestSelection", "candidate|choice"),
		one("selection at twice its rate where records are replaced", inPrivacy,
			"if !s.Monotone || s.Neighbours == ReplaceOne {", "if !s.Monotone {", inPrivacy, "TestSelectionLaws",
			"case 2"),
	}
}

// randomness has bugs of the streams.
func randomness() []mutant {
	return []mutant{
		one("all parties draw from one stream", inPrivacy, "b = binary.LittleEndian.AppendUint64(b, uint64(party))",
			"b = binary.LittleEndian.AppendUint64(b, uint64(party)*0)", inPrivacy, "TestStreams", "party"),
		one("all rounds draw from one stream", inPrivacy, "b = binary.LittleEndian.AppendUint64(b, uint64(iteration))",
			"b = binary.LittleEndian.AppendUint64(b, uint64(iteration)*0)", inPrivacy, "TestStreams", "iteration"),
		one("all purposes draw from one stream", inPrivacy, "b = append(b, purpose...)",
			"b = append(b, purpose[:0]...)",
			inPrivacy, "TestStreams", "purpose"),
		one("repetitions of a run draw from one stream", inPrivacy, `s.Reset(&st, 0, r, "run")`,
			`s.Reset(&st, 0, r*0, "run")`, inPrivacy, "TestStreams", "another run"),
		{"the system's randomness is replaced by the clock", inSecret, []edit{{"\trand.Read(r.key[:]) // never",
			"\trand.Read(r.key[:0])\n" +
				"\tbinary.LittleEndian.PutUint64(r.key[:], uint64(time.Now().UnixNano())) // never"},
			{"\t\"fmt\"\n", "\t\"fmt\"\n\t\"time\"\n"}}, inPrivacy, "TestRoots", "root"},
		one("all roles of a simulation have one root", inProtocol, "return root.Derive(r.String())",
			"return root.Derive(\"role\")", inHorizontal, "TestRolesApart", "one stream"),
		one("a role draws from the public seed", inProtocol, "privacy.StreamsOf(p.root().Derive(\"streams\"))",
			"p.Plan.PublicSeed.Streams()", inProtocol, "TestRolesHaveRoots", "public seed|one stream"),
		one("the server has what the parties share", inProtocol,
			"\tif p.Role.Serves() {\n\t\treturn nil\n\t}\n\tp.Group",
			"\tif false {\n\t\treturn nil\n\t}\n\tp.Group", inProtocol, "TestRolesHaveRoots", "server"),
	}
}

// accounting has bugs of the accountants and of sensitivities.
func accounting() []mutant {
	return []mutant{
		one("zCDP at half the price", inPrivacy, "return 0.5 / (g.Scale * g.Scale)",
			"return 0.25 / (g.Scale * g.Scale)",
			inPrivacy, "TestPureAndZCDPClosedForms|TestCurrencies", "rho|zcdp|Gaussian"),
		one("a pure mechanism at half its Renyi divergence", inPrivacy, "x := alpha*e - math.Log1p(math.Exp(e))",
			"x := alpha*e/2 - math.Log1p(math.Exp(e))", inPrivacy, "TestCurrencies", "Pure|divergence|order"),
		one("a choice beside noise costs half", inPrivacy, "float64((2*b-n)*r.Epsilon), o.Chance * p",
			"float64((2*b-n)*r.Epsilon/2), o.Chance * p", inPrivacy, "TestMixedProfile", "pld accountant"),
		one("beside noise choices are planned at half their epsilon", inStaged,
			"float64(choices)).Pure()\n\t\tif s.pair", "float64(choices)).Pure()/2\n\t\tif s.pair", inBalcan,
			"TestBalcanLedger", "total is"),
		one("disjoint releases cost as the cheapest", inPrivacy, "w = math.Max(w, f(m))",
			"w = math.Max(math.Inf(-1), f(m))", inPrivacy, "TestParallel|TestLedgerTotalsPerViewer",
			"half|parallel|clients"),
		one("the distance of discrete noise is left out", inPrivacy,
			"return math.Min(1, float64(n)*(0.0607/(sigma*sigma)",
			"return math.Min(0, float64(n)*(0.0607/(sigma*sigma)", inPrivacy, "TestGaussianSlack",
			"distance|slack|sigma"),
		one("the distance of shares is left out", inPrivacy, "return math.Min(10*s, 1)", "return math.Min(10*s, 0)",
			inPrivacy, "TestSplitDistance", "share"),
		one("loss distributions are rounded to the cheaper side", inPrivacy, "g.infinite = l.infinite + l.above\n",
			"g.infinite = 0\n", inPrivacy, "TestPLD", "."),
		one("the error of floating point is taken off delta", inPrivacy,
			"return d*(1+relative*(rounds+10)) + p.infinite", "return d*(1-1e-9) + p.infinite",
			inPrivacy, "TestPLDEnclosesExactArithmetic", "not between"),
		one("composition one round short", inPrivacy, "func (s Spec) Times() int { return max(1, s.Rounds) }",
			"func (s Spec) Times() int { return max(1, s.Rounds-1) }", inPrivacy, "TestLedgerTotals", "outsider"),
		one("a composed part is forgotten", inPrivacy, "a.parts[i].rounds += rounds", "a.parts[i].rounds += 0",
			inPrivacy,
			"TestPLD|TestLedgerTotals|TestMoreNever", "."),
		one("phantoms are halved", inPrivacy, "\t\t\tn = min(n, hi-1)\n\t\t}\n\t}\n\treturn hi, nil",
			"\t\t\tn = min(n, hi-1)\n\t\t}\n\t}\n\treturn hi / 2, nil", inPrivacy, "TestFMPhantomsPLDIsTheTable",
			"phantoms"),
		one("the sensitivity of constrained centroids is one cluster's", inPrivacy,
			"v := clusters(s) * dims(s) * rounded(s, 2*s.Bound*exclusive(s)/float64(s.Lo))",
			"v := dims(s) * rounded(s, 2*s.Bound*exclusive(s)/float64(s.Lo))", inPrivacy,
			"TestSensitivitiesOfTheTable", "centroids"),
		one("a rounded quotient is taken for an exact one", inPrivacy, "return (math.Floor(x/s.Unit) + 1) * s.Unit",
			"return x", inPrivacy, "TestSensitivitiesOfTheTable", "centroids"),
		one("sums are bounded by one coordinate", inPrivacy,
			"boxL1 = twice(func(s Shape) float64 { return dims(s) * s.Bound })",
			"boxL1 = twice(func(s Shape) float64 { return s.Bound })", inPrivacy, "TestSensitivitiesOfTheTable",
			"sums"),
		one("replacing a record costs as much as adding one", inPrivacy,
			"\t\tif s.Neighbours == ReplaceOne {\n\t\t\treturn 2 * f(s)\n\t\t}", "", inPrivacy,
			"TestSensitivitiesOfTheTable", "replace"),
	}
}

// ledgers has bugs of what is entered, added up and charged.
func ledgers() []mutant {
	return []mutant{
		one("what is public is not charged to the server", inPrivacy,
			"return e.Kind == Release && (slices.Contains(e.Viewers, viewer) || slices.Contains(e.Viewers, Outsider))",
			"return e.Kind == Release && slices.Contains(e.Viewers, viewer)", inPrivacy, "TestLedgerTotalsPerViewer",
			"server"),
		one("who draws the noise pays as if it did not know it", inPrivacy,
			"return e.Cost.Family != \"\" && !e.Noise.hides(viewer)", "return false", inPrivacy,
			"TestLedgerTotalsCountUnknownNoiseOnly", "server"),
		one("the failure of ties is not in the totals", inPrivacy, "a.failure += s.Failure", "a.failure += 0",
			inPrivacy,
			"TestLedgerTotalsHaveAdditiveDeltas", "failure"),
		one("the distance of shares is not in the totals", inPrivacy, "a.distance += s.Distance", "a.distance += 0",
			inPrivacy, "TestLedgerTotalsHaveAdditiveDeltas", "distance"),
		one("one column pays for the bounds of all", inPrivacy, `Release: "magnitudes", L1: twice(dims)`,
			`Release: "magnitudes", L1: one(1, 2)`, inBounds, "TestNoiseOfMagnitudes", "scale"),
		one("magnitudes leave without noise", inBounds, "Values: cells * len(columns), Noise: noise}}",
			"Values: cells * len(columns)}}\n\t_ = noise",
			inBounds, "TestNoiseOfMagnitudes", "noise"),
		one("the bounds of a party's columns have half the noise", inBounds, "Laplace, Scale: pl.scale, Shares",
			"Laplace, Scale: pl.scale / 2, Shares",
			inBounds, "TestBoundsOfPartiesWithColumns", "noise"),
		one("the bounds are not charged to the ledger file", inCommand, "if o.ledger != \"\" {\n\t\tif in.boundsPaid",
			"if o.ledger == \"-\" {\n\t\tif in.boundsPaid",
			inCommand, "TestPrivateBoundsOnALedgerFile", "too small a budget"),
		one("a record counts twice among magnitudes", inBounds, "words[i*cells+cell(x)]++",
			"words[i*cells+cell(x)] += 2",
			inBounds, "TestOneRecordChangesOneCellOfEachColumn", "L1"),
		one("the bounds are not charged", inCommand, "r.Ledger.After(in.found.Ledger)", "r.Ledger", inCommand,
			"TestPrivateBounds", "magnitudes"),
		one("what is found first is paid on top of epsilon", inCommand,
			"Epsilon: o.epsilon * (1 - o.boundsShare - o.countShare), Delta: -1",
			"Epsilon: o.epsilon, Delta: -1", inCommand, "TestPrivateBounds|TestPrivateN", "total"),
		one("the number of records is not charged", inCommand, "r.Ledger.After(in.countedBy.Ledger)", "r.Ledger",
			inCommand, "TestPrivateN", "number of records"),
		one("the number of records has half its noise", inCensus, "Scale: scale, Shares: shares}",
			"Scale: scale / 2, Shares: shares}",
			inCensus, "TestCountHasItsNoise", "noise"),
		one("the number of records is not charged to the ledger file", inCommand,
			"paid, err := in.payForCount(o, m, pay, job)", "paid, err := &library.Paid{Job: job}, error(nil)",
			inCommand, "TestPrivateNOnALedgerFile", "too small a budget"),
		one("a role pays for nothing that another makes of its own", inPrivacy,
			"!slices.Contains(e.Derived, viewer)", "len(e.Derived) == 0", inPrivacy, "TestLedgerChargesNobodyTwice",
			"sees what costs"),
		one("drawn cells cost as their mean number of keys", inPrivacy, "next[i+(b*b+width-1)/width] += p * q",
			"next[i+(b+width-1)/width] += p * q", inPrivacy, "TestDrawnProfile", "release"),
		one("drawn cells are charged for one pair of parties", inPrivacy,
			"return math.Sqrt(float64(2 * s.Pairs)) }", "return math.Sqrt2 }", inSketch, "TestDrawnCellsHaveTheirNoise",
			"the ledger has"),
		one("a record draws half as many keys as it may", inSketch, "r.chance = min(0.5, (1+j.Gamma)/(all+1)",
			"r.chance = min(0.5, (1+j.Gamma)/(2*all+1)", inSketch, "TestOneRecordDrawsFewKeys", "planned are"),
		one("drawn cells have half of their noise", inSketch, "math.Sqrt(float64(2*r.pairs)), 1/scale)",
			"math.Sqrt(float64(2*r.pairs)), 2/scale)", inSketch, "TestNoisedReturn", "sees what costs"),
		one("a paid number of records is not followed", inCommand, "Records: in.counted, ", "", inCommand,
			"TestPrivateN", "follow"),
		one("the root of an interrupted run serves other records", inCohort, "case p.state.Data != data:",
			"case false:",
			inCommand, "TestInterruptedRunIsFinishedWithoutPayingAgain", "other records"),
		one("an interrupted run is done again with fresh noise", inCohort, "return secret.Of([32]byte(b)), nil",
			"return secret.New(), nil", inCommand, "TestInterruptedRunIsFinishedWithoutPayingAgain", "another one"),
	}
}

// files has bugs of the files that runs are charged to, and of what is shown of a run.
func files() []mutant {
	return []mutant{
		one("a ledger file lets every run start", inPrivacy, "\t\tif !c.within(before.Limit) {",
			"\t\tif c.Amount < 0 {",
			inPrivacy, "TestLedgerFileSpends", "fifth run"),
		one("a ledger file charges the outsider alone", inPrivacy, "if c, ok := charges[viewer]; ok {",
			"if c, ok := charges[Outsider]; ok {", inPrivacy, "TestLedgerFileChargesEveryViewer", "server"),
		one("a ledger file does not charge for what is public", inPrivacy, "\t\treturn charges[Outsider]\n",
			"\t\treturn Charge{}\n", inPrivacy, "TestLedgerFileChargesEveryViewer", "server"),
		one("a ledger file takes a guarantee for replaced records", inPrivacy,
			"if relation == ReplaceOne && t.Neighbours == AddRemove {", "if false {", inPrivacy,
			"TestLedgerFileHasOneRelation", "replacing"),
		one("two steps cost twice rho", inPrivacy, "c.Amount *= 4\n", "c.Amount *= 2\n", inPrivacy,
			"TestLedgerFileHasOneRelation", "amount"),
		one("lines of a ledger file may be altered", inPrivacy, "if !ok || string(chain) != s.chained(body) {",
			"if !ok {",
			inPrivacy, "TestLedgerFileDetectsDamage", "charge altered"),
		one("lines may be cut off a ledger file", inPrivacy, "if s.lines < anchorLine {", "if false {", inPrivacy,
			"TestLedgerFileKeyAndAnchor", "lost"),
		one("what has paid for a study pays for all of its id", inStudy, "state.Runs[i].Mark == t.mark()",
			"state.Runs[i].What == t.Study.paidAs()", inStudy, "TestAPaymentIsForOneStudy", "another of its id"),
		one("a viewer whom only the end of a run names is not charged", inPrivacy,
			"range s.ends[i+1].Charges {\n\t\t\tall",
			"range s.starts[i].Charges {\n\t\t\tall", inPrivacy, "TestLedgerFileChargesWhoRunsEndWith",
			"the server saw"),
		one("the slack of discrete noise is not charged to a ledger file", inPrivacy,
			"c.Delta += slackDelta(t.Budget.Epsilon, a.gdp.slack)", "c.Delta += 0", inPrivacy,
			"TestLedgerFileChargesSlack", "gdp delta"),
		one("the root of an interrupted run serves other first centroids", inCommand,
			"fmt.Sprintf(\"start=%v ids=%q files=%v\", in.start, in.ids, in.table.Files)",
			"fmt.Sprintf(\"ids=%q files=%v\", in.ids, in.table.Files)", inCommand, "TestInterruptedRunKnowsItsStart",
			"other first centroids"),
		one("a run that was interrupted loses its root with those before", inCommand,
			"undelivered == nil && !isLost(err)", "undelivered == nil", inCommand, "TestInterruptedLaterRunIsNotLost",
			"state files"),
		one("exact sizes are in a private result", inCommand, "\tif r.Epsilon == nil {\n\t\tif err := model.Count(labels)",
			"\tif true {\n\t\tif err := model.Count(labels)", inCommand, "TestPrivateSizesAreReleased", "sizes"),
		one("the result of a study has times", inCommand, "\t\tr.Timings = nil // they", "\t\t_ = r.Timings // they",
			inCommand, "TestResultOfAStudyHasNoTimes", "assign"),
		one("ties of an assignment are free", inHorizontal, "return flow.TieDelta(p.n, p.k, rounds)",
			"return 0 * flow.TieDelta(p.n, p.k, rounds)", inHorizontal, "TestTiesAreInTheLedger", "ties"),
		one("a simulation is charged as a run", inCommand,
			"if o.given(\"seed\") {\n\t\treturn fault.Request(\"--ledger\"",
			"if false {\n\t\treturn fault.Request(\"--ledger\"", inCommand, "TestRunsSpendALedgerFile", "--seed"),
	}
}

// deals has bugs of what no bound covers.
func deals() []mutant {
	return []mutant{
		one("a table that is dealt anew for a record more is as clients' own", inHorizontal,
			"if !dealt || !p.Private ||", "if dealt || !p.Private ||", inHorizontal,
			"TestDealtPlans", "doubts|notes|refusal"),
		one("a ledger file takes what no bound covers", inCohort, "r.Core().Unpaid != \"\"", "r.Core().Unpaid == \"-\"",
			inCohort, "TestAccount", "fastlloyd"),
	}
}

// gate has bugs of the one gate for releases.
func gate() []mutant {
	return []mutant{
		one("one holder leaves the noise off", inProtocol, "\tfor i, x := range noise {\n\t\twords[i] += x\n\t}", "",
			inAudit, "TestWhiteBox$", "not in what was released"),
		one("a party of a study leaves its share of the noise off", inProtocol,
			"\tif r.drawnByParties() {\n\t\tp.addNoise(", "\tif !p.single && r.drawnByParties() {\n\t\tp.addNoise(", inStudy,
			"TestLiveStudyAttacked", "not what the parties released"),
		one("all parties of a study draw the same noise", inStudy, "Own: secret.Of(k.root).Derive(\"run\")",
			"Own: group.Derive(\"run\")", inStudy, "TestLiveStudyAttacked", "deviations from the plan's"),
		one("a holder of columns in a study leaves the noise off", inProtocol,
			"if r.Makers == Holder {\n\t\tp.addNoise", "if r.Makers == Holder && !p.single {\n\t\tp.addNoise", inStudy,
			"TestLiveColumnsAttacked", "and not the"),
		one("a colluder knows the noise of holders of columns", inStudy, "Own: secret.Of(k.root).Derive(\"run\")",
			"Own: group.Derive(\"run\")", inStudy, "TestLiveColumnsAttacked", "makes what the parties have sent"),
		one("a role that begins again draws another root", inStudy, "root: [32]byte(i.Root)",
			"root: [32]byte([]byte(rand.Text() + rand.Text())[:32])", inStudy, "TestLiveColumnsAttacked",
			"not the one that was sent before"),
		one("a server of several leaves its share of the noise off", inProtocol,
			"p.addNoise(p.sums, layout, total)", "_ = layout",
			inProtocol, "TestSharesAmongServers", "drew"),
		one("shares of values are not uniform", inProtocol, "int64(uniform.Uint64())",
			"int64(uniform.Uint64() >> 8)",
			inProtocol, "TestSharesAmongServers", "bits are ones"),
		one("the server leaves the noise off", inProtocol, "err := total.Add(noise)",
			"err := total.Add(make([]int64, total.Len()))", inAudit, "TestWhiteBox$", "not in what was released"),
		one("Gaussian noise at half the scale that the plan has", inProtocol,
			"replay.DiscreteGaussian(n.Scale / math.Sqrt(float64(shares)))",
			"replay.DiscreteGaussian(n.Scale / 2 / math.Sqrt(float64(shares)))", inAudit, "TestWhiteBox$",
			"distribution"),
		one("Laplace noise at half the scale that the plan has", inProtocol, "replay.DiscreteLaplace(n.Scale)",
			"replay.DiscreteLaplace(n.Scale / 2)", inAudit, "TestWhiteBox$", "distribution"),
		one("all releases of a run draw from one stream", inProtocol, "\t\tp.resume(round, g.Stream)\n\t\tg.Noise",
			"\t\tp.resume(0, \"noise\")\n\t\tg.Noise", inAudit, "TestWhiteBox$", "independence"),
		one("a release may be made twice in a round", inProtocol, "if round < p.made[r.index] {", "if false {",
			inProtocol,
			"TestReleaseOncePerRound", "released|twice|second"),
		one("a release that the plan does not have is made", inProtocol,
			"\tif r.index >= len(p.Plan.Releases) || p.Plan.Releases[r.index] != r {\n"+
				"\t\treturn fmt.Errorf(\"protocol: %s "+
				"is not in the plan\", r.Name)\n\t}\n\tif round", "\tif round", inProtocol, "TestReleaseOncePerRound",
			"plan"),
		one("a private vector can be marshalled", inProtocol,
			"func (v *Private) len() int { return len(v.words) }",
			"func (v *Private) len() int { return len(v.words) }\n\n"+
				"func (v *Private) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(v.words)), nil }",
			inProtocol,
			"TestPrivateShowsNothing", "[Mm]arshal|private"),
		one("a release that costs more than the plan is booked", inProtocol, "e.Cost.Scale < p.Scale*rounding",
			"e.Cost.Scale < 0", inProtocol, "TestBookRefusesWhatIsDearer", "booked"),
		one("a private vector is in a remark", inHorizontal, "\t\tc.update(c.t, c.sum)\n",
			"\t\tc.update(c.t, c.sum)\n\t\tc.party.Note(\"the sums were %v\", c.private)\n", inGate, "TestGate$", "sealed"),
		one("what fills a vector keeps a sum", inHorizontal, "c.acc.Counts)\n\t}\n\treturn nil",
			"c.acc.Counts)\n\t}\n\tc.centroids[0] = float64(words[0])\n\treturn nil", inGate, "TestGate$", "fill"),
		one("a message goes round the party", inProtocol, "type Party struct {\n\tRole Role\n",
			"type Party struct {\n\tBeside Transport\n\tRole   Role\n", inGate, "TestGate$", "surface"),
		one("a release opens before it asks the plan", inProtocol,
			"\tif err := p.admit(r, round, groups, own.len()); err != nil {\n\t\treturn nil, err\n"+
				"\t}\n\tif r.Makers != Holder",
			"\tp.views.values(p.Role, round, r.Name, p.Role, own.words)\n"+
				"\tif err := p.admit(r, round, groups, own.len()); err != nil {\n\t\treturn nil, err\n"+
				"\t}\n\tif r.Makers != Holder",
			inGate, "TestGate$", "asks the plan"),
	}
}

// scales has noise that is drawn at another scale than is charged.
func scales() []mutant {
	return []mutant{
		one("a horizontal round has half the noise that it is charged for", inHorizontal,
			"Scale: part.scales[at].scale / part.unit,", "Scale: part.scales[at].scale / 2 / part.unit,", inAudit,
			"TestWhiteBox$", "distance"),
		one("sums of replaced records have less noise than their round", inStaged, "sums, counts = 1, 1",
			"sums, counts = 2, 1", inBalcan, "TestBalcanLedger", "costs|dearer|more than"),
		one("a central release has half the noise that it is charged for", inStaged,
			"Scale: g.Scale * (1 << releaseBits),",
			"Scale: g.Scale * (1 << (releaseBits - 1)),", inAudit, "TestWhiteBox$", "distance"),
		one("counts of columns are charged as those of one column", inPrivacy,
			"\"marginal counts\", L1: twice(dims),\n\t\t\tL2:         func(s Shape) float64 { return "+
				"math.Sqrt(one(1, 2)(s) * dims(s)) },",
			"\"marginal counts\", L1: one(1, 2), L2: one(1, math.Sqrt2),", inAudit, "TestWhiteBox$", "distance"),
		one("a generation's counts are charged at half", inPrivacy,
			"Proven, Release: release, L1: one(1, 2), L2: one(1, math.Sqrt2)",
			"Proven, Release: release, L1: one(0.5, 1), L2: one(0.5, math.Sqrt2/2)", inAudit, "TestWhiteBox$",
			"distance"),
		one("a local release has half the noise that it is charged for", inSketch, "Scale: math.Ldexp(r.scale, unit)}",
			"Scale: math.Ldexp(r.scale, unit-1)}", inAudit, "TestWhiteBox$", "distance"),
		one("sketches have half of the planned phantoms", inSketch,
			"phantoms = cellPhantoms{parties: parties, at: at, perCell: p.plan.phantoms}",
			"phantoms = cellPhantoms{parties: parties, at: at, perCell: p.plan.phantoms / 2}", inAudit, "TestWhiteBox$",
			"heights 1 Check:distribution"),
		one("reports keep the truth too often", inSketch, "case u < f.keep:", "case u < f.keep+f.keep/4:", inAudit,
			"TestWhiteBox$", "reports 1 Check:distribution"),
		one("roundings of ciphertexts follow from the records", inHE, "w.Round(r)\n\tw.embed.roundBy(r)",
			"w.Round(nil)\n\tw.embed.roundBy(nil)", inHE, "TestRoundingsAreRandom", "roundings of a comparison"),
		one("re-randomised totals have no error in the coefficient that is sent", inHE,
			"d.first = first[0]", "d.first = 0*first[0]", inHE,
			"TestRerandomisationAddsErrorsToBothHalves", "beside the key's products"),
		one("masks of totals come back every round", inHE, `c.rnd.prng("re-randomisation", index)`,
			`c.rnd.prng("re-randomisation", index%c.perRound)`, inHE, "TestNoMaskServesTwice", "have one mask"),
		one("the bound of roundings adds nothing to the noise", inHE, "fixed := float64(2*a.rest)",
			"fixed := 0*float64(2*a.rest)", inHE, "TestProvedBoundIsPaidFor", "bound of roundings"),
		one("the failure of a bound is not in delta", inHE, "b.Delta -= proved.failure", "b.Delta -= 0", inHE,
			"TestProvedBoundIsPaidFor", "bound of roundings"),
		one("encrypted sums have half the noise that they are charged for", inHE, "sigma := q.noise.sum * u\n",
			"sigma := q.noise.sum * u / 2\n", inAudit, "TestWhiteBox$", "sums in records 1 Check:distribution"),
	}
}

// steps has bugs of what methods compute before a release, and of how they divide the budget.
func steps() []mutant {
	return []mutant{
		one("the cut of offsets is four times wider at the same sensitivity", inStaged,
			"limit[j] = step.NearSquared(r, d)",
			"limit[j] = 16 * step.NearSquared(r, d)", inStaged, "TestOffset", "offset|radius|sum"),
		one("offsets of a mean in steps are cut to twice the length that is charged", inStaged,
			"p.Weights, from, []float64{radius},", "p.Weights, from, []float64{2 * radius},", inStaged,
			"TestOffsetIsCut",
			"the sum changes"),
		one("a weight above the cap counts in full", inStaged, "math.Round(min(w/most, 1) * ", "math.Round(w/most * ",
			inStaged, "TestWeightedSensitivities", "changes by|at most"),
		one("a weight above the cap counts in full in rounds", inHorizontal,
			"min(weight/p.job.MostWeight(), 1) * p.scale", "weight / p.job.MostWeight() * p.scale", inHorizontal,
			"TestCappedSensitivity", "the counts change"),
		one("a heavy record's offset is not cut", inHorizontal,
			"\t\t\tstep.Clip(offset, length, reach)\n\t\t}\n\t\tacc.Counts[j] += u",
			"\t\t}\n\t\tacc.Counts[j] += u", inHorizontal, "TestCappedSensitivity", "the sums change"),
		one("the sum of offsets has twice the weight", inStaged, "sums[h] += u * int64(", "sums[h] += 2 * u * int64(",
			inStaged, "TestWeighted", "a round costs"),
		one("far records are cut to a length with the rounding error on the wrong side", inStep,
			"slack := 1 + float64(d+4)*0x1p-24", "slack := 1 - 1e5*float64(d+4)*0x1p-24", inStaged, "TestOffset",
			"offset|radius|sum"),
		one("a level's counts are not in the ledger", inStaged,
			"s.Release = f.Add(&protocol.Release{Name: e.What, Makers: f.makers, Entries: []privacy.Entry{e}})",
			"s.Release = f.Add(&protocol.Release{Name: e.What, Makers: f.makers, Entries: []privacy.Entry{e}[:0]})",
			inCommand,
			"TestLedgersOfAllMethodsAgreeWithTheTable", "released|release"),
		one("every level of a tree spends the whole budget", inStaged, "l.Part(l.growth(level)/total), t.bits",
			"l.Part(total/total), t.bits", inCommand, "TestLedgersOfAllMethodsAgreeWithTheTable", "budget"),
		one("two records move a level's counts as one does", inStaged, "both = math.Sqrt2\n\t}\n\ts := f.addRelease",
			"both = 1\n\t}\n\ts := f.addRelease", inAudit, "TestWhiteBox$", "distance"),
		one("two records move a cluster's sum as one does", inStaged,
			"return splitPair(4*l.Total, sum.L2(), size, f.D)",
			"return splitGaussian(2*l.Total, sum.L2(), size, f.D)", inStaged, "TestPairs", "pair|dearer"),
		one("replacing a record spends the budget of adding one", inStaged, "\t\t\ts.Total /= 4\n",
			"\t\t\ts.Total /= 1\n",
			inCommand, "TestLedgersOfAllMethodsAgreeWithTheTable", "budget"),
		one("records are rounded to nearest", inDataset, "return float32(float64(int64(x*scale)) / scale)",
			"return float32(float64(int64(x*scale*1.00001+0.5)) / scale)", inDataset, "TestTruncate", "Truncate"),
		one("the sizes of clusters are rounded down", inHorizontal,
			"lo, hi = int(math.Ceil(n/(j.EtaMinAlpha*share))), int",
			"lo, hi = int(math.Floor(n/(j.EtaMinAlpha*share))), int", inHorizontal, "TestSizesAreRoundedInwards",
			"sizes"),
		one("every round spends the whole epsilon", inHorizontal, "round := j.Budget.Epsilon / float64(p.rounds)",
			"round := j.Budget.Epsilon", inHorizontal, "TestLedgerChargesTheBudget", "sulloyd"),
		one("a Gaussian round spends the whole mu", inHorizontal, "mu /= math.Sqrt(float64(p.rounds))", "mu /= 1",
			inHorizontal, "TestLedgerChargesTheBudget", "relative"),
		one("counts have no noise", inProtocol, "\t\tg.Noise.sampler.Fill(&p.stream, noise[at:at+g.Values])\n",
			"\t\tif at == 0 {\n\t\t\tg.Noise.sampler.Fill(&p.stream, noise[at:at+g.Values])\n\t\t}\n", inHorizontal,
			"TestNoiseHasTheVarianceItShould", "variance of the counts"),
		one("shares count on clients that collude", inHorizontal, "Shares: p.shares(t), Rounding",
			"Shares: p.shares(t) + 1, Rounding", inHorizontal, "TestNoiseHasTheVarianceItShould", "split"),
		one("clients leave their noise off", inProtocol, "\tif r.drawnByParties() {\n\t\tp.addNoise(",
			"\tif false {\n\t\tp.addNoise(", inHorizontal, "TestNoiseHasTheVarianceItShould", "local"),
		one("ties of all rounds are broken by one key", inHorizontal,
			"p.Streams().Reset(st, int(p.Role), round, \"ties\")",
			"p.Streams().Reset(st, int(p.Role), 0, \"ties\")", inHorizontal, "TestNonExclusiveTakesTheNearest", "key"),
		one("ties depend on the order of the records", inFlow, "return digest(sum[:16])",
			"sum[0] ^= byte(i)\n\treturn digest(sum[:16])", inFlow, "TestOrderDoesNotMatter|TestTies",
			"order|[Ll]abels|ties"),
		one("local releases have no noise", inProtocol,
			"\tif r.Makers == Holder {\n\t\tp.addNoise(round, groups, words)",
			"\tif false {\n\t\tp.addNoise(round, groups, words)",
			inAudit, "TestWhiteBox$", "not in what was released"),
		one("all roles of a protocol draw from one stream", inProtocol, "privacy.StreamsOf(p.root().Derive(\"streams\"))",
			"p.common.of", inAudit, "TestWhiteBox$", "independence"),
		one("an audit by canaries refutes what is possible", inAudit,
			"need := f.least(parameter, right)", "need := right", inAudit, "TestGuesses", "called impossible"),
	}
}

// byRank has bugs of the comparison by rank and of what is released of its totals.
func byRank() []mutant {
	return []mutant{
		one("ties by rank are broken by the key holder's secrets", inHE,
			`q.Public.Stream(int(protocol.Server), round, "ties")`,
			`q.Streams.Stream(int(protocol.Server), round, "ties")`, inHE, "TestTiesAreBrokenInPublic", "not public"),
		one("what breaks ties of runs without noise is not in the ledger", inHE, "if j.argmin() == Rank {\n\t\t\tcentroids",
			"if j.argmin() == Pairs {\n\t\t\tcentroids", inHE, "TestLedgersOfRanks", "ledger"),
		one("the true cost of the paper's noise is of memberships in one cluster", inHE, "s.Scale /= j.overlap()",
			"s.Scale /= 1", inHE, "TestTrueCostIsOfSoftMemberships", "moves a round by"),
		one("comparisons by rank have one scale", inHE, "\t\t\tr.pairs[i][j] = q\n",
			"\t\t\tfor h := range q.gain {\n\t\t\t\tq.gain[h] = (near[h] - far[h]) / 8\n\t\t\t}\n\t\t\tq.setOffset()\n"+
				"\t\t\tr.pairs[i][j] = q\n", inHE, "TestCrowdedCentroidsByRank", "plaintext Lloyd"),
		one("comparisons by rank have the other sign", inHE, "newPair(j, i, far, near,", "newPair(i, j, near, far,", inHE,
			"TestModesFollowLloyd", "Lloyd|check total"),
		one("of equal centroids the last one has the records", inHE, "math.Copysign(0.5, float64(j-i))",
			"math.Copysign(0.5, float64(2*(i-j)+1))", inHE, "TestRanksMatchTheSoftFormula", "second of equal centroids is"),
		one("comparisons by rank keep no room for many key holders", inHE, "rankSpare * math.Sqrt(float64(set.holders))",
			"rankSpare / 5", inHE, "TestRankSpareCovers", "is kept"),
		one("nobody notes that most records count for little", inHE, "if !q.tied {", "if q.tied {", inHE,
			"TestAnyRecordsByRank", "notes of records"),
		one("ties by rank are not broken", inHE, "q.breakTies(round, current, next)", "_ = next", inHE,
			"TestAnyRecordsByRank", "plaintext Lloyd"),
		one("the sum of counts by rank is not checked", inHE, "total > hi+float64(n)*bounds.more+s {",
			"total > hi+float64(n*k)+s {", inHE, "TestCheckTotalByRank", "counts of"),
	}
}

// messages has bugs of what crosses between parties.
func messages() []mutant {
	return []mutant{
		one("messages are not masked", inSecagg, "\taddPad(c.key.ring, dst.words, c.own)\n", "", inSecagg,
			"TestMessagesHide|TestSurvivors|TestMaskIs", "."),
		one("one mask serves all rounds", inSecagg, "uint64(round)*uint64(k.blocks)",
			"uint64(round)*0*uint64(k.blocks)", inSecagg,
			"TestMaskIsAESCounterMode|TestMessagesHide", "mask|round"),
		one("a mask is that of the round before", inSecagg, "s.ctr == nil || s.next != uint64(round)", "s.ctr == nil",
			inSecagg, "TestMaskIsAESCounterMode|TestMessagesHide|TestSurvivors", "mask|round"),
		one("one key of masks serves all roots", inProtocol, "s.keyRoot == root && ", "", inProtocol,
			"TestMaskKeyIsOfItsRoot", "another root"),
		one("one mask serves all clients", inSecagg, "binary.BigEndian.PutUint32(s.iv[4:], uint32(client))",
			"binary.BigEndian.PutUint32(s.iv[4:], uint32(client)*0)", inSecagg,
			"TestMaskIsAESCounterMode|TestMessagesHide",
			"mask|client"),
		one("anybody signs a set for a party", inSums, "!is && p != c.Index {", "!is && false {", inSums,
			"TestSignersAreNeighbours", "signatures of others"),
		one("a party adds to a sum with those who were told another result", inSums,
			"slices.Concat(key, m.History[:])", "slices.Concat(key, m.History[:0])", inSums,
			"TestPartiesHaveHadTheSameResults", "different results"),
		one("a party adds to a sum with those who have another secret of the group", inStudy,
			"member.History = group.Derive(\"history\").Key()", "", inStudy, "TestPartiesHaveOneSecret", "another secret"),
		one("sums begin when they are ready", inStudy, "return pause(ctx, time.Until(p.begun",
			"return pause(ctx, 0*time.Until(p.begun", inStudy, "TestSumsBeginInTheirTime", "begins after"),
		one("a sum that missed its time is not reported", inStudy, "\t\tp.missed++\n", "", inStudy,
			"TestSumsBeginInTheirTime", "late|reported"),
		one("jobs take records from outside the box", inStep, "\tif inside {\n\t\treturn nil",
			"\tif inside || true {\n\t\treturn nil", inCatalog, "TestBadJobsAreRefused", "beyond the box"),
		one("a refusal tells that some clients have no records", inProtocol, "p.Points.N < 1 && !mayLack",
			"p.Points.N < 1", inCatalog, "TestClientsWithoutRecords", "holds no records"),
		one("the plan of records with weights tells whether the first client has any", inStaged,
			"if !f.problem.Weighted() {", "if f.problem.Clients[0].Weights == nil {", inCatalog,
			"TestClientsWithoutRecords", "weights true, the plan is"),
		one("a private run refuses weights of no records", inDataset, "\treturn kept(w, t.Report.Dropped), nil",
			"\tif len(w) == 0 {\n\t\treturn nil, fault.Request(\"weights\", \"are none\", \"\")\n\t}\n"+
				"\treturn kept(w, t.Report.Dropped), nil", inCommand, "TestNoWeightIsAsGoodAsOne", "status"),
		one("a first record without values names the columns", inDataset, "if !isMissing(c) {", "if len(c) > 0 {",
			inDataset,
			"TestTextForms", "a first record without values"),
		one("the budget of a ledger file follows the data's own number of records", inCohort,
			"err == nil && n > 0 {\n\t\treturn n", "err == nil && n < 0 {\n\t\treturn n", inCommand,
			"TestOwnNumberStaysHidden", "tell the number"),
		one("a profile does not say that its times depend on the records", inCommand,
			"\t\tres.Ledger.Note(timesNote)\n\t}\n\tif p.timeline", "\t}\n\tif p.timeline",
			inCommand, "TestProfileSaysWhatItShows", "lacks"),
		one("a private run tells how many ids have no match", inCommand,
			"\tcase quality:\n\t\treturn append([]string{in.joined",
			"\tcase quality || true:\n\t\treturn append([]string{in.joined", inCommand, "TestOwnNumberStaysHidden",
			"the notes are"),
		one("waiting noise does not know whose the records are", inCommand, "in.start, in.ids, in.table.Files)",
			"in.start, in.ids, len(in.table.Files))", inCommand, "TestInterruptedRunKnowsWhoHoldsTheRecords",
			"runs were paid"),
		one("a plan counts the data's own records beside a public number", inHorizontal,
			"if j.Records == 0 {\n\t\treturn j.Cl", "if j.Records >= 0 {\n\t\treturn j.Cl", inCatalog,
			"TestPublicNumberOfRecords", "the plan is"),
		one("a root prints", inSecret,
			"func (Root) Format(f fmt.State, _ rune) { fmt.Fprint(f, \"secret.Root(redacted)\") }",
			"func (r Root) Format(f fmt.State, _ rune) { fmt.Fprintf(f, \"%x\", r.key[:]) }", inSecret,
			"TestRootPrintsRedacted", "prints"),
	}
}
