package page

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cohort-engine/cohort/engine/study"
)

// A server that has the name of a party, which a study may have, has metrics of its own.
func TestNamesakes(t *testing.T) {
	s := &study.Study{Method: "sulloyd", K: 3, Records: 600, Epsilon: 1, Delta: -1, FractionBits: 16, Threshold: 2,
		Options: map[string]string{"aggregator": "shares"}, Bounds: [][2]float64{{0, 1}},
		Parties: []study.Holder{{Name: "North"}, {Name: "South"}}, Servers: []study.Holder{{Name: "North"}},
		Deadlines: study.Deadlines{Step: 20, Message: 60}}
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	p, err := Listen("127.0.0.1:0", t.TempDir(), study.NewWatch(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	status, body := ask(t, p, http.MethodGet, "/metrics", p.control.Address, "")
	if status != http.StatusOK || strings.Count(body, "cohort_study_party_agreed{") != 3 {
		t.Errorf("status %d: %s", status, body)
	}
}
