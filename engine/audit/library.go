package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// audited is a method that can be audited under every calibration it has.
type audited struct {
	name  string
	cases func(method string, c privacy.Calibration, s Settings) ([]Case, error)
}

func (a *audited) calibrations() []privacy.Calibration { return privacy.Calibrations(a.name) }

// library is every private method, in the order of the help text.
func library() []audited {
	sketches := func(method string, c privacy.Calibration, s Settings) ([]Case, error) {
		if s.Pair != nil {
			return nil, fault.Request("--pair", "sketches are audited on no record against one", "leave it out")
		}
		return sketchCases(method, c, s)
	}
	equations := func(_ string, c privacy.Calibration, s Settings) ([]Case, error) {
		if s.Pair != nil {
			return nil, fault.Request("--pair", "ckks is audited by one attack, on a pair of its own", "leave it out")
		}
		return equationCases(c, s)
	}
	return []audited{
		{"sulloyd", horizontal}, {"csulloyd", horizontal}, {"fastlloyd", horizontal}, {"relative", horizontal},
		{"hybrid", centralCases}, {"lsf", centralCases}, {"eugkm", centralCases}, {"evolve", centralCases},
		{"balcan", centralCases}, {"balcan-edler", centralCases},
		{"ind-lap", local}, {"ldp-agg", local}, {"sketch-basic", sketches}, {"sketch", sketches},
		{"ckks", equations},
	}
}

// Audit is a method under a calibration that it can be audited for.
type Audit struct {
	Method      string
	Calibration privacy.Calibration
}

// Audits lists what can be audited.
func Audits() []Audit {
	var all []Audit
	for _, a := range library() {
		for _, c := range a.calibrations() {
			all = append(all, Audit{a.name, c})
		}
	}
	return all
}

// Choose keeps the cases of those names, in their order; no names keep all.
func Choose(cases []Case, names []string) ([]Case, error) {
	if len(names) == 0 {
		return cases, nil
	}
	var known []string
	for _, c := range cases {
		known = append(known, c.Name)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fault.Request("--case", fmt.Sprintf("%q is no case of this audit", n), "choose among "+
				strings.Join(known, "; "))
		}
	}
	return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return !slices.Contains(names, c.Name) }), nil
}

// Cases returns the worst cases of a method under a calibration.
func Cases(method string, c privacy.Calibration, s Settings) ([]Case, error) {
	var names []string
	for _, a := range library() {
		names = append(names, a.name)
		if a.name != method {
			continue
		}
		if !slices.Contains(a.calibrations(), c) {
			return nil, fault.Request("calibration", fmt.Sprintf("%s has no %s one to audit", method, c),
				"choose among "+strings.Trim(fmt.Sprint(a.calibrations()), "[]"))
		}
		if s.Neighbours == privacy.ReplaceOne && c == privacy.Proven {
			if able := privacy.Provers(privacy.ReplaceOne); !slices.Contains(able, method) {
				return nil, fault.Request("--neighbours", "replace-one has no proof for "+method, "these have one: "+
					strings.Join(able, ", "))
			}
		}
		return a.cases(method, c, s)
	}
	return nil, fault.Request("method", fmt.Sprintf("%q releases nothing that epsilon covers", method), "choose one of "+
		strings.Join(names, ", "))
}
