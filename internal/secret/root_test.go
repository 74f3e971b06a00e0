package secret

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Roots follow their arguments and nothing else; fresh ones differ.
func TestRootsFollowTheirNames(t *testing.T) {
	r := New()
	if r == New() || r == (Root{}) {
		t.Fatal("two fresh roots are equal")
	}
	if Of(r.Key()) != r {
		t.Error("a root of a key is another")
	}
	base := Simulated(1, "a")
	child, again := r.Derive("a"), r.Derive("a")
	if base != Simulated(1, "a") || child != again {
		t.Error("equal arguments give different roots")
	}
	for what, other := range map[string]Root{"seed": Simulated(2, "a"), "name": Simulated(1, "b"),
		"child": base.Derive("a"), "grandchild": base.Derive("a").Derive("a")} {
		if other == base {
			t.Errorf("another %s gives the same root", what)
		}
	}
	if r.Derive("a") == r.Derive("b") || r.Derive("a") == New().Derive("a") {
		t.Error("a derived root does not follow its name and origin")
	}
}

// No format and no encoding shows a root.
func TestRootPrintsRedacted(t *testing.T) {
	s := New()
	js, err := json.Marshal(struct{ S Root }{s})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %x %d", s, s, s, s, s, s),
		fmt.Sprintf("%v %+v", &s, struct{ S Root }{s}), string(js)} {
		if strings.Contains(text, fmt.Sprintf("%x", s.key[:4])) ||
			strings.Contains(text, fmt.Sprint(s.key[0], " ", s.key[1])) || !strings.Contains(text, "redacted") {
			t.Errorf("a root prints as %s", text)
		}
	}
}

// Derive is HKDF-Expand of crypto/hkdf.
func TestDeriveIsHKDF(t *testing.T) {
	for i := range 200 {
		r, name := New(), strings.Repeat("name ", i)
		want, err := hkdf.Expand(sha256.New, r.key[:], name, len(r.key))
		if got := r.Derive(name).key; err != nil || !bytes.Equal(got[:], want) {
			t.Fatalf("the root of %q: %x, want %x, %v", name, got, want, err)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	r := New()
	b.ReportAllocs()
	for b.Loop() {
		r = r.Derive("streams")
	}
}
