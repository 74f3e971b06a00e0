package bus

import (
	"slices"
	"testing"

	"github.com/cohort-engine/cohort/engine/protocol"
)

// A role has one name in subjects, and a name one role; others are of nobody.
func TestNames(t *testing.T) {
	roles := []protocol.Role{protocol.Server, protocol.ServerAt(1), protocol.ServerAt(2), 0, 1, 9, MostParties - 1}
	var names []string
	for _, r := range roles {
		got, ok := parseName(name(r))
		if !ok || got != r || slices.Contains(names, name(r)) {
			t.Errorf("%v is %q, which is %v", r, name(r), got)
		}
		names = append(names, name(r))
	}
	for _, s := range []string{"", "s0", "s1", "s4", "p", "p0", "p01", "p10001", "s02", "p-1", "q1", "s-1"} {
		if r, ok := parseName(s); ok {
			t.Errorf("%q is %v", s, r)
		}
	}
}

// Each role may publish under its own name alone, and the coordinator alone answers requests.
func TestSubjects(t *testing.T) {
	for _, r := range []protocol.Role{protocol.ServerAt(1), 0} {
		publish, subscribe := subjects("id", r)
		if !slices.Equal(publish, []string{"c.id." + name(r) + ".>"}) || slices.Contains(subscribe, "c.id.*.ctl") {
			t.Errorf("%v publishes %q and receives %q", r, publish, subscribe)
		}
	}
}
