package bench

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method/lloyd"
	"github.com/cohort-engine/cohort/internal/fault"
)

// authorsScript calls clients and server of the authors' code.
//
//go:embed authors.py
var authorsScript []byte

// authors are checkouts of the code that the authors of FastLloyd released, which the user
// provides, with a process for each that is in use.
type authors struct {
	pythons []string
	// checkouts are the folders of the code of the paper and of its follow-up; empty where
	// there is none.
	checkouts [2]string
	running   [2]*peers
}

// Where each of the checkouts has its clients, and what it is called.
var (
	authorsClients = [2]string{"parties/clients.py", "parties/client.py"}
	authorsNames   = [2]string{"D-Diaa/privateclustering", "its follow-up D-Diaa/FastLloyd"}
)

// openAuthors finds checkouts: the folder itself, or folders in it.
func openAuthors(dir, python string) (*authors, error) {
	a := &authors{pythons: pythons}
	if python != "" {
		a.pythons = []string{python}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.Request("--peers", err.Error(), "give a folder with checkouts of the authors' code")
	}
	folders := []string{dir}
	for _, e := range entries {
		folders = append(folders, filepath.Join(dir, e.Name()))
	}
	for _, folder := range folders {
		for i, clients := range authorsClients {
			if a.checkouts[i] == "" && exists(filepath.Join(folder, clients)) {
				a.checkouts[i] = folder
			}
		}
	}
	if a.checkouts == [2]string{} {
		return nil, fault.Request("--peers", dir+" has no checkout of the authors' code",
			"clone "+strings.Join(authorsNames[:], " or ")+" into it")
	}
	return a, nil
}

// names are what the checkouts are, with their revisions.
func (a *authors) names() string {
	var names []string
	if a != nil {
		for i, folder := range a.checkouts {
			if folder != "" {
				names = append(names, authorsNames[i]+" at "+checkedOut(folder))
			}
		}
	}
	return strings.Join(names, ", ")
}

// rival makes the rounds of the authors' code of a method on a set in turns with ours, or has the
// stored figures of it where there is no checkout.
func (e *Env) rival(s *Set, m lloyd.Method, epsilon float64) *rival {
	which := 0
	if m == lloyd.Relative {
		which = 1
	}
	if e.authors == nil || e.authors.checkouts[which] == "" {
		return &rival{fallback: peerIteration(s.Name, m)}
	}
	return &rival{name: "authors' code", source: authorsNames[which] + " at " + checkedOut(e.authors.checkouts[which]) +
		", run here in turns with ours, CPU time of one thread", fallback: peerIteration(s.Name, m),
		rounds: func(ctx context.Context, run, rounds int) ([]float64, string, error) {
			return e.authors.rounds(ctx, which, s, m, epsilon, run, rounds)
		}}
}

// checkedOut is the abbreviated revision of a checkout.
func checkedOut(folder string) string {
	out, err := exec.Command("git", "-C", folder, "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "an unknown revision"
	}
	return strings.TrimSpace(string(out))
}

// rounds times rounds of a checkout's code, on the same parts of the records as ours in that run;
// absent says why there are none.
func (a *authors) rounds(ctx context.Context, which int, s *Set, m lloyd.Method, epsilon float64, run,
	rounds int) (ns []float64, absent string, err error) {
	p := a.running[which]
	if p == nil {
		if p, err = newPeers(ctx, a.pythons); err != nil {
			return nil, "", err
		}
		if p == nil {
			return nil, "no Python with numpy: give one with --peer-python", nil
		}
		a.running[which] = p
		checkout, err := filepath.Abs(a.checkouts[which])
		if err == nil {
			err = p.start(context.WithoutCancel(ctx), authorsScript, checkout) // it outlives a case
		}
		if err != nil {
			return nil, "", err
		}
	}
	parts, err := s.parts(clientsOf, uint64(run))
	if err != nil {
		return nil, "", err
	}
	request := []string{string(m), strconv.Itoa(s.D), strconv.Itoa(s.K), strconv.Itoa(rounds), fmt.Sprint(epsilon),
		strconv.Itoa(run)}
	for i, part := range parts {
		var rows []float32
		for r := range part.Points.N {
			rows = append(rows, part.Points.Point(r, nil)...)
		}
		name := "client" + strconv.Itoa(i)
		if err := p.hand(name, rows); err != nil {
			return nil, "", err
		}
		request = append(request, p.path(name))
	}
	ns, err = p.ask(strings.Join(request, " "))
	return ns, p.absent, err
}

func (a *authors) close() {
	if a != nil {
		for _, p := range a.running {
			p.close()
		}
	}
}

// rival is another program that makes the same iterations in turn.
type rival struct {
	name, source string
	// rounds makes the iterations of a run and returns the nanoseconds of each, or why it cannot.
	rounds func(ctx context.Context, run, iterations int) (ns []float64, absent string, err error)
	// fallback are stored figures for where it does not run.
	fallback []Reference

	samples []float64
	absent  string
}

// mostRivalRuns is how many runs the rival makes: it is slow, and its rounds are alike.
const mostRivalRuns = 5

// take lets the rival make the rounds that a run of ours has made.
func (r *rival) take(ctx context.Context, run int, res *engine.Result) error {
	if r == nil || r.rounds == nil || r.absent != "" || run > mostRivalRuns {
		return nil
	}
	ns, absent, err := r.rounds(ctx, run, res.Iterations)
	if r.absent = absent; err == nil && run > 0 { // the first warms up
		r.samples = append(r.samples, ns...)
	}
	return err
}

// stored tells whether the rival's references are stored figures.
func (r *rival) stored() bool { return r == nil || len(r.samples) == 0 }

// references are what the rival took, or the stored figures.
func (r *rival) references() []Reference {
	if r == nil {
		return nil
	}
	if r.stored() {
		return r.fallback
	}
	v := summarise("", unitNanoseconds, r.samples)
	return []Reference{{Name: r.name, Kind: kindPeer, Value: v.Median, Source: r.source}}
}
