package study

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Status is what can be seen of a study while it runs: who is there, how far it is,
// who is late, how long steps take. It has no value that was computed from records.
type Status struct {
	ID          string `json:"id"`
	Title       string `json:"title,omitempty"`
	Method      string `json:"method"`
	Fingerprint string `json:"fingerprint,omitempty"`
	State       string `json:"state"` // "gathering", "running", "done", or why it ended
	Ended       bool   `json:"ended"`
	Sum         int    `json:"sum"` // under way, from 1
	Step        string `json:"step,omitempty"`
	Sums        int    `json:"sums"` // that are done
	// Rounds are those of the plan; Took is how long the study has run, in milliseconds.
	Rounds  int     `json:"rounds"`
	Took    float64 `json:"took_ms"`
	Refused int     `json:"refused"`
	// Parties are all roles but the coordinator: those that hold data, then other servers
	// and, on the side of another role, the coordinator as one of those.
	Parties []PartyStatus `json:"parties"`
	// Steps are the steps of sums, in their order, with all answers so far.
	Steps []StepStatus `json:"steps"`
	// Party is whose side this is, empty for the coordinator's; Paid what it has paid.
	Party string `json:"party,omitempty"`
	Paid  string `json:"paid,omitempty"`
	// Releases are what leaves the parties, as the plan has it, and Budget what it costs
	// each viewer.
	Releases []Release `json:"releases"`
	Budget   []Release `json:"budget"`
}

// StepStatus is how long parties took to answer a step, in milliseconds from its
// beginning: the network there and back, and their own work.
type StepStatus struct {
	Step string `json:"step"`
	// Answers are those in the mean: to steps that began since the role was started last.
	Answers int     `json:"answers"`
	Mean    float64 `json:"mean_ms"`
	Most    float64 `json:"most_ms"`
	// Bytes of the answers, and of what all were told when the step was over.
	Bytes int64 `json:"bytes"`
}

// Release is something that is seen, by whom, and its cost by the plan; nil costs nothing.
type Release struct {
	What    string   `json:"what"`
	Viewers []string `json:"viewers"`
	Epsilon *float64 `json:"epsilon,omitempty"`
	Delta   *float64 `json:"delta,omitempty"`
}

// PartyStatus is one party's.
type PartyStatus struct {
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint,omitempty"`
	// Server says that it is one among which the parties share their vectors.
	Server bool `json:"server,omitempty"`
	// Away says that it has enrolled and is not connected, where that is known, until the study has ended.
	Away     bool `json:"away,omitempty"`
	Enrolled bool `json:"enrolled"`
	Agreed   bool `json:"agreed"`
	Late     bool `json:"late"`
	// LateSteps counts the deadlines that it missed.
	LateSteps int `json:"late_steps"`
	// Sent and Received are bytes of its messages with the role whose side this is; on the
	// coordinator's side of a study with several servers, all that its server has carried.
	Sent     int64 `json:"bytes_sent"`
	Received int64 `json:"bytes_received"`
	// Steps is the time of its last answer in each step, in milliseconds since the
	// step began.
	Steps map[string]float64 `json:"steps"`
}

// Watch follows a study for those who look at it. A nil Watch takes nothing.
type Watch struct {
	mu      sync.Mutex
	status  Status
	changed chan struct{} // closed and renewed at each change
	heard   []func(Event)
	own     protocol.Role        // whose side it is
	parties int                  // of the study, before its other servers
	steps   []StepStatus         // in the order of their first answers
	carried func() []bus.Carried // by place in the status, in place of what moved; nil if it is not known
	begun   time.Time            // the run; zero if it has not, or has ended
	again   func() bool          // says that what an earlier life had comes again; nil if there was none
	timed   bool                 // the step under way began in this life
}

// NewWatch follows a study.
func NewWatch(s *Study) *Watch {
	w := NewPartyWatch()
	w.know(s)
	return w
}

// NewPartyWatch follows a study from a party's side, which has yet to learn what it is.
func NewPartyWatch() *Watch {
	return &Watch{status: Status{State: "gathering"}, changed: make(chan struct{}), own: protocol.Server}
}

// know takes in what is public of the study.
func (w *Watch) know(s *Study) {
	if w == nil {
		return
	}
	outline, err := s.Outline()
	w.change(func(t *Status) {
		t.ID, t.Title, t.Method, w.parties = s.ID, s.Title, s.Method, len(s.Parties)
		for _, r := range s.roles() {
			t.Parties = append(t.Parties, PartyStatus{Name: s.Name(r), Server: r.Serves(), Steps: make(map[string]float64)})
		}
		if err != nil {
			return // the study is refused elsewhere
		}
		t.Rounds = outline.Rounds
		seen := func(e *privacy.Entry) Release { return Release{e.What, e.Viewers, e.Epsilon, e.Delta} }
		for i := range outline.Releases {
			t.Releases = append(t.Releases, seen(&outline.Releases[i].Entry))
		}
		for _, e := range outline.Ledger.Totals() {
			t.Budget = append(t.Budget, seen(&e))
		}
	})
}

// side makes this the side of a role of the study that is not the coordinator.
func (w *Watch) side(s *Study, own protocol.Role) {
	if w == nil {
		return
	}
	w.know(s)
	w.change(func(t *Status) {
		w.own, t.Party = own, s.Name(own)
		if len(s.Servers) > 0 {
			t.Parties = append(t.Parties, PartyStatus{Name: "coordinator", Server: true, Steps: make(map[string]float64)})
		}
	})
}

// index is where a role stands in the status, negative if it does not.
func (w *Watch) index(r protocol.Role) int {
	at := place(r, w.parties) - 1
	if r == protocol.Server && w.own != protocol.Server && len(w.status.Parties) > w.parties {
		at = len(w.status.Parties) - 1 // it is one of several servers
	}
	if at >= len(w.status.Parties) {
		return -1
	}
	return at
}

// follow has bytes and presence told by what carries the messages.
func (w *Watch) follow(carried func() []bus.Carried) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.carried = carried
}

// Pay says what the party has paid, in words.
func (w *Watch) Pay(what string) { w.change(func(t *Status) { t.Paid = what }) }

// EventKind is what an event says.
type EventKind int

// The kinds of events.
const (
	StepBegan EventKind = iota // a step of a sum, or, on a party's side, a sum
	Answered                   // a party, after Took
	Missed                     // a party, by the deadline of the step
	SumDone
	Ended
)

// Event is something that happened in a study. It has no value that was computed from records.
type Event struct {
	Kind EventKind
	// Sum counts from 1; Party is the name of one.
	Sum         int
	Step, Party string
	Took        time.Duration
	// State is why a study ended, or "done".
	State string
}

// Listen has f called with what happens, in its order. It must be quick.
func (w *Watch) Listen(f func(Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, f)
}

// tell tells those who listen; the caller holds the lock.
func (w *Watch) tell(e Event) {
	for _, f := range w.heard {
		f(e)
	}
}

// Status returns the state now, and a channel that is closed when it changes.
func (w *Watch) Status() (Status, <-chan struct{}) {
	w.mu.Lock()
	follow := w.carried
	w.mu.Unlock()
	var carried []bus.Carried
	if follow != nil {
		carried = follow() // without the lock: the coordinator, which answers, waits for it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status
	s.Parties = make([]PartyStatus, len(w.status.Parties))
	for i, p := range w.status.Parties {
		steps := make(map[string]float64, len(p.Steps))
		for k, v := range p.Steps {
			steps[k] = v
		}
		p.Steps = steps
		if carried != nil {
			p.Sent, p.Received = carried[i].From, carried[i].To
			p.Away = p.Enrolled && !carried[i].Here && !s.Ended
		}
		s.Parties[i] = p
	}
	s.Steps = slices.Clone(w.steps)
	if !w.begun.IsZero() {
		s.Took = milliseconds(time.Since(w.begun))
	}
	return s, w.changed
}

// change changes the state.
func (w *Watch) change(f func(*Status)) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.status)
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *Watch) gathered(entries []Entry, consents [][]byte) {
	w.change(func(s *Status) {
		for p := range s.Parties {
			s.Parties[p].Enrolled, s.Parties[p].Agreed = entries[p].Signing != "", consents[p] != nil
		}
	})
}

func (w *Watch) began(r *Roster) {
	w.change(func(s *Status) {
		w.begun = time.Now()
		s.State, s.Fingerprint = "running", r.Fingerprint()
		for p := range s.Parties { // whose consent is there
			s.Parties[p].Enrolled, s.Parties[p].Agreed = true, true
			s.Parties[p].Fingerprint = r.keyPrint((p + 1) % len(r.Entries)) // the coordinator, if it is there, is the last
		}
	})
}

// restarted has the steps of an earlier life, which come again in no time, left out of the times.
func (w *Watch) restarted(again func() bool) { w.change(func(*Status) { w.again = again }) }

func (w *Watch) step(sum int, step string) {
	again := w != nil && w.again != nil && w.again() // without the lock, under which links tell what moved
	w.change(func(s *Status) {
		s.Sum, s.Step, w.timed = sum+1, step, !again
		w.tell(Event{Kind: StepBegan, Sum: s.Sum, Step: s.Step})
	})
}

// answered says that a role has answered a step, with so many bytes.
func (w *Watch) answered(r protocol.Role, step string, took time.Duration, bytes int) {
	w.change(func(s *Status) {
		p := &s.Parties[w.index(r)]
		p.Late = false
		all := w.stepOf(step)
		all.Bytes += int64(bytes)
		if !w.timed {
			return
		}
		ms := milliseconds(took)
		p.Steps[step] = ms
		all.Most = max(all.Most, ms)
		all.Mean = (all.Mean*float64(all.Answers) + ms) / float64(all.Answers+1)
		all.Answers++
		w.tell(Event{Kind: Answered, Sum: s.Sum, Step: step, Party: p.Name, Took: took})
	})
}

// told counts the bytes that others were told when a step was over.
func (w *Watch) told(step string, bytes int) {
	w.change(func(*Status) { w.stepOf(step).Bytes += int64(bytes) })
}

// stepOf is what is known of a step; the caller holds the lock.
func (w *Watch) stepOf(step string) *StepStatus {
	at := slices.IndexFunc(w.steps, func(x StepStatus) bool { return x.Step == step })
	if at < 0 {
		at, w.steps = len(w.steps), append(w.steps, StepStatus{Step: step})
	}
	return &w.steps[at]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// late says that a role has missed the deadline of the step.
func (w *Watch) late(r protocol.Role) {
	w.change(func(s *Status) {
		p := &s.Parties[w.index(r)]
		p.Late = true
		p.LateSteps++
		w.tell(Event{Kind: Missed, Sum: s.Sum, Step: s.Step, Party: p.Name})
	})
}

func (w *Watch) refused() { w.change(func(s *Status) { s.Refused++ }) }

func (w *Watch) summed(sums int) {
	w.change(func(s *Status) {
		s.Sums = sums
		w.tell(Event{Kind: SumDone, Sum: sums})
	})
}

// moved counts the bytes of a message as those of the role that it is from or to; on the
// side of a party they are its own, too.
func (w *Watch) moved(peer protocol.Role, sent bool, bytes int) {
	w.change(func(s *Status) {
		s.move(w.index(peer), !sent, bytes)
		if w.own != protocol.Server {
			s.move(w.index(w.own), sent, bytes)
		}
	})
}

// move counts bytes that a role has sent or received.
func (s *Status) move(at int, sent bool, bytes int) {
	switch {
	case at < 0:
	case sent:
		s.Parties[at].Sent += int64(bytes)
	default:
		s.Parties[at].Received += int64(bytes)
	}
}

func (w *Watch) ended(how string) {
	w.change(func(s *Status) {
		s.State, s.Ended = how, true
		if !w.begun.IsZero() {
			s.Took, w.begun = milliseconds(time.Since(w.begun)), time.Time{}
		}
		w.tell(Event{Kind: Ended, State: how})
	})
}

// LastStatus is the status that a coordinator left in the journal of its state folder when its study ended.
func LastStatus(state string) (*Status, error) {
	none := func(err error) error {
		return fault.Failed(state, "has no study that runs or has ended", "start it with cohort serve", err)
	}
	path := filepath.Join(state, JournalName)
	if _, err := os.Stat(path); err != nil {
		return nil, none(err)
	}
	j, err := journal.Open(path)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	for _, r := range slices.Backward(j.Records()) {
		if r.Kind != recordStatus {
			continue
		}
		b, err := j.Read(r)
		if err != nil {
			return nil, err
		}
		s := new(Status)
		if err := json.Unmarshal(b, s); err != nil {
			return nil, none(err)
		}
		return s, nil
	}
	return nil, none(nil)
}
