package study

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Terms are what a role agrees to.
type Terms struct {
	Study *Study
	// Role is a party, or a server besides the coordinator.
	Role   protocol.Role
	Hash   [32]byte
	Roster *Roster
	// Rows is how many records the party has, 0 at a server.
	Rows int
}

// Join is what a party takes part with, or a server besides the coordinator.
type Join struct {
	Invitation *Invitation
	// State is the folder of the party's journal.
	State  string
	Log    *slog.Logger
	Engine *engine.Engine
	// Held, if not nil, is called when the state folder is this process's alone.
	Held func() error
	// Load reads the party's own records when the study is known, before anybody is
	// told anything: its rows, or its columns with the ids of its records. A server has none,
	// and it is not called.
	Load func(ctx context.Context, s *Study, party int) (dataset.Part, []string, error)
	// Agree is asked when everybody is there.
	Agree func(ctx context.Context, t *Terms) error
	// Charge pays for the study from the party's own ledger, once. It is called before the
	// first message of the run: again is true if an earlier life may have paid. Nil pays nothing,
	// nor does a server.
	Charge func(t *Terms, again bool) error
	// Deliver, if not nil, is given what Take returns before anybody is told that this party has
	// it: until then it can be interrupted, and go on. A later life may deliver the same again.
	Deliver func(*Terms, *engine.Result) error
	// Watch, if not nil, is NewPartyWatch's and hears what happens.
	Watch *Watch
	// Step, if not nil, hears of the run's progress.
	Step func(round int, step string)
	// Crash is for tests: see journal.OpenToCrash. It is also called at "delivered".
	Crash func(point string)
	whole bool // for a test that wants every message in the journal
}

// Party is a party of a study, or a server besides the coordinator, which holds no data.
type Party struct {
	Join
	self    protocol.Role
	journal *journal.File
	keys    *keys
	study   *Study
	roster  *Roster
	terms   *Terms
	agreed  []byte // hash of the roster that it agreed to
	records []byte // digest of the records that it agreed with; nil of a server's
	charged bool   // or may have
	done    bool   // nobody needs anything of it any more, nor it of them
	conn    *bus.Conn
	heard   atomic.Int64 // when a frame came last

	mu  sync.Mutex
	end *link.End
}

// Take takes part in a study, from the beginning or from where it was interrupted, and
// returns what the party learns: nil if an earlier life has delivered that, and all others are gone.
func Take(ctx context.Context, j Join) (*engine.Result, error) {
	p := &Party{Join: j, self: protocol.Role(j.Invitation.Party)}
	var err error
	if p.journal, err = journal.OpenToCrash(filepath.Join(j.State, JournalName), j.Crash); err != nil {
		return nil, err
	}
	defer p.journal.Close()
	if err := p.recall(); err != nil {
		return nil, err
	}
	if p.Held != nil {
		if err := p.Held(); err != nil {
			return nil, err
		}
	}
	if err := p.connect(ctx); err != nil {
		if p.done && ctx.Err() == nil {
			p.Log.Info("the study has ended, its coordinator is gone, and this party has had its result")
			return nil, nil
		}
		return nil, err
	}
	defer p.conn.Close()
	if p.study, err = p.fetchStudy(ctx); err != nil {
		return nil, err
	}
	p.Watch.side(p.study, p.self)
	var part dataset.Part
	var ids []string
	rows := 0
	if !p.self.Serves() {
		if part, ids, err = p.Load(ctx, p.study, int(p.self)); err != nil {
			return nil, err
		}
		rows = part.Points.N
		if err := p.hold(part, ids); err != nil {
			return nil, err
		}
	}
	if err := p.enrol(ctx, rows); err != nil {
		return nil, err
	}
	res, err := p.run(ctx, part, ids)
	switch {
	case err == nil:
		p.Watch.ended("done")
	case ctx.Err() == nil:
		p.Watch.ended(err.Error())
	}
	return res, err
}

// recall reads the journal, or begins it.
func (p *Party) recall() error {
	var id *identity
	for _, r := range p.journal.Records() {
		b, err := p.journal.Read(r)
		if err != nil {
			return err
		}
		switch r.Kind {
		case recordIdentity:
			id = new(identity)
			err = json.Unmarshal(b, id)
		case recordConsent:
			n := min(len(b), sha256.Size)
			p.agreed, p.records = b[:n], b[n:]
		case recordCharge:
			p.charged = true
		case recordDone:
			p.done = true
		}
		if err != nil {
			return fault.Failed(p.State, "holds another journal",
				"name the folder that this party began with, or a new one", err)
		}
	}
	v := p.Invitation
	if id == nil {
		if len(p.journal.Records()) > 0 {
			return fault.Failed(p.State, "holds a journal without keys", "name a new folder and ask for a new invitation",
				journal.ErrDamaged)
		}
		var err error
		if id, err = newIdentity(v.Study, p.self); err != nil {
			return err
		}
		if err := p.note(recordIdentity, encode(id)); err != nil {
			return err
		}
	}
	if string(id.Study) != string(v.Study[:]) || id.Party != v.Party {
		return fault.Request(p.State, "was begun with another invitation", "name a folder for each study and party")
	}
	var err error
	p.keys, err = id.keys()
	return err
}

func (p *Party) note(kind byte, body []byte) error {
	if _, err := p.journal.Append(kind, body); err != nil {
		return err
	}
	return p.journal.Sync()
}

// connect connects, and waits for a coordinator that is not there yet.
func (p *Party) connect(ctx context.Context) error {
	v := p.Invitation
	public, err := p.keys.signing.PublicKey()
	if err != nil {
		return err
	}
	d := bus.Dialer{Self: p.self, Study: v.ID, URL: v.URL, Pin: v.Pin, Key: p.keys.signing,
		Proof:  proof(v.Secret, v.Study, public),
		Once:   p.done, // the coordinator may well be gone
		Frames: p.frames, Cluster: v.cluster(),
		Away: func(err error) { p.Log.Warn("the coordinator is away", "why", err.Error()) },
		Back: func(error) {
			p.Log.Info("the coordinator is back")
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.end != nil {
				p.end.Again()
			}
		}}
	p.conn, err = bus.Dial(ctx, d)
	return err
}

func (p *Party) frames(from protocol.Role, b []byte) {
	p.heard.Store(time.Now().UnixNano())
	p.mu.Lock()
	end := p.end
	p.mu.Unlock()
	if end != nil {
		end.Deliver(from, b)
	}
}

// unanswered is how long a coordinator is asked in vain by a party that does not yet know the study's deadlines.
const unanswered = time.Hour

// ask asks the coordinator until it answers, or has not for as long as messages are waited for; it waits for the
// others if it must.
func (p *Party) ask(ctx context.Context, r request) ([]byte, error) {
	limit := unanswered
	if p.study != nil {
		limit = p.study.Deadlines.message()
	}
	var body []byte
	told, answered := -1, time.Now()
	for {
		r.Version = version
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		b, err := p.conn.Request(once, encode(r))
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && time.Since(answered) > limit:
			return nil, fault.Failed("coordinator", fmt.Sprintf("has not answered for %v", limit),
				"begin again with the same folder when it is back", err)
		case err != nil: // away: the connection comes back by itself
			if err := pause(ctx, 300*time.Millisecond); err != nil {
				return nil, err
			}
			continue
		}
		answered = time.Now()
		a, err := parseAnswer(b)
		if err != nil {
			return nil, err
		}
		if a.Wait {
			if a.Here != told {
				p.Log.Info("waiting for the other parties", "for", r.Ask, "here", a.Here, "of", a.Parties)
				told = a.Here
			}
			if err := pause(ctx, 200*time.Millisecond); err != nil {
				return nil, err
			}
			continue
		}
		if body = append(body, a.Body...); len(body) > mostAnswer {
			return nil, fault.Failed("coordinator", "gives an answer without end", "ask who runs it", nil)
		}
		if !a.More {
			return body, nil
		}
		r.Part++
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetchStudy takes the study file that has the invitation's hash.
func (p *Party) fetchStudy(ctx context.Context) (*Study, error) {
	text, err := p.ask(ctx, request{Ask: askStudy})
	if err != nil {
		return nil, err
	}
	s, err := Parse(text)
	if err != nil {
		return nil, err
	}
	hash, err := s.Hash()
	if err == nil && (hash != p.Invitation.Study || s.index(p.self) < 0 || s.ID != p.Invitation.ID) {
		err = fault.Failed("study", "is not the one of the invitation",
			"do not go on: ask the coordinator for a new invitation", nil)
	}
	return s, err
}

// hold refuses records that are not those which this party agreed with: its ledger has paid for them alone.
func (p *Party) hold(part dataset.Part, ids []string) error {
	key, err := derived(p.keys.root[:], p.Invitation.Study, "records")
	if err != nil {
		return err
	}
	n := dataset.Normalised{Points: part.Points, FractionBits: part.FractionBits, Weights: part.Weights}
	h := hmac.New(sha256.New, key[:])
	h.Write(n.Digest(key[:]))
	for _, id := range ids {
		fmt.Fprintf(h, "%d %s", len(id), id)
	}
	digest := h.Sum(nil)
	if p.agreed != nil && len(p.records) > 0 && !bytes.Equal(p.records, digest) {
		return fault.Request("--data", "has other records than this party has agreed to take part with",
			"give those, read by the same flags")
	}
	p.records = digest
	return nil
}

// enrol gives the party's keys, gets everybody's, asks and pays.
func (p *Party) enrol(ctx context.Context, rows int) error {
	v := p.Invitation
	own, err := p.keys.entry(v.Study)
	if err != nil {
		return err
	}
	enrol := request{Ask: askEnrol, Entry: &own, Proof: proof(v.Secret, v.Study, own.Signing)}
	if _, err := p.ask(ctx, enrol); err != nil {
		return err
	}
	text, err := p.ask(ctx, request{Ask: askRoster})
	if err != nil {
		return err
	}
	var entries []Entry
	if err := strict(text, &entries); err != nil {
		return fault.Failed("roster", "cannot be read", "ask the coordinator what happened", err)
	}
	if p.roster, err = newRoster(v.Study, len(p.study.Parties), len(p.study.Servers), entries); err != nil {
		return err
	}
	e := p.roster.Entries[1+p.study.index(p.self)]
	if e.Signing != own.Signing || string(e.Sealing) != string(own.Sealing) {
		return fault.Failed("roster", "has other keys for this party",
			"do not go on: somebody used the invitation, ask for a new one", nil)
	}
	hash := p.roster.hash()
	if p.agreed != nil && string(p.agreed) != string(hash[:]) {
		return fault.Failed("roster", "is not the one that this party agreed to",
			"do not go on: ask the coordinator what happened", nil)
	}
	t := &Terms{Study: p.study, Role: p.self, Hash: v.Study, Roster: p.roster, Rows: rows}
	p.terms = t
	if p.agreed == nil {
		if err := p.Agree(ctx, t); err != nil {
			return err
		}
	}
	if err := p.pay(t); err != nil {
		return err
	}
	if p.agreed == nil {
		if err := p.note(recordConsent, append(hash[:], p.records...)); err != nil {
			return err
		}
	}
	return p.consent(ctx)
}

// pay charges the party's ledger, before anything is signed. The journal says first
// that it may have happened. A party that begins again may have got a ledger since.
func (p *Party) pay(t *Terms) error {
	if p.Charge == nil || p.self.Serves() {
		return nil
	}
	again := p.charged
	if !again {
		if err := p.note(recordCharge, []byte("charging")); err != nil {
			return err
		}
	}
	return p.Charge(t, again)
}

// consent signs the roster and checks that all others have signed the same.
func (p *Party) consent(ctx context.Context) error {
	signature, err := p.keys.signing.Sign(p.roster.consent())
	if err != nil {
		return err
	}
	if _, err := p.ask(ctx, request{Ask: askAgree, Signature: signature}); err != nil {
		return err
	}
	text, err := p.ask(ctx, request{Ask: askAgreed})
	if err != nil {
		return err
	}
	var all [][]byte
	roles := p.study.roles()
	if strict(text, &all) != nil || len(all) != len(roles) {
		return fault.Failed("roster", "its signatures cannot be read", "ask the coordinator what happened", nil)
	}
	for i, s := range all {
		if !p.roster.verify(roles[i], p.roster.consent(), s) {
			return fault.Failed("roster", fmt.Sprintf("%v has not signed the one that this party has", roles[i]),
				"do not go on: ask the others for their fingerprint", nil)
		}
	}
	return nil
}

// run plays the party's role.
func (p *Party) run(ctx context.Context, part dataset.Part, ids []string) (*engine.Result, error) {
	p.Watch.began(p.roster)
	digests, err := derived(p.keys.root[:], p.roster.hash(), "digests")
	if err != nil {
		return nil, err
	}
	quota, err := p.study.quota()
	if err != nil {
		return nil, err
	}
	c := link.Config{Self: p.self, Keys: p.keys.links(p.roster), Journal: p.journal, Bus: p.conn,
		Most: mostMessage, Quota: quota, Secret: digests,
		Refused: func(from protocol.Role, err error) {
			p.Log.Warn("a frame was refused", "from", p.study.Name(from), "why", err.Error())
			p.Watch.refused()
		}, Moved: p.Watch.moved}
	if !p.whole {
		c.Lasting = lasting
	}
	end, err := link.New(c)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.end = end
	p.mu.Unlock()
	p.Watch.restarted(end.Replaying)
	end.Start()
	defer end.Close()
	box := newPostbox(end, p.self, p.study.Deadlines.message())
	res, err := p.play(ctx, box, part, ids)
	if err == nil && p.Deliver != nil {
		err = p.Deliver(p.terms, res)
	}
	if p.Crash != nil {
		p.Crash("delivered")
	}
	if err == nil {
		err = p.part(ctx, box)
	}
	if err != nil {
		return nil, err
	}
	if !p.done && p.settle(ctx, box) {
		if err := end.Note(recordDone, nil); err != nil {
			return nil, err
		}
	}
	soon, cancel := context.WithTimeout(ctx, doneTime)
	defer cancel()
	if _, err := p.ask(soon, request{Ask: askDone}); err != nil && ctx.Err() == nil {
		p.Log.Info("the coordinator is gone before this party has said that it is done")
	}
	return res, nil
}

// part tells everybody that this role's program has ended: of many parties, the servers.
func (p *Party) part(ctx context.Context, box *postbox) error {
	err := box.send(ctx, protocol.Server, mailLeave, nil)
	for _, r := range p.study.roles() {
		if r != p.self && (r.Serves() || len(p.study.Parties) <= mostMail) && err == nil {
			err = box.send(ctx, r, mailLeave, nil)
		}
	}
	return err
}

// settle waits until everybody who needs what this party has sent has it, and reports whether they have.
func (p *Party) settle(ctx context.Context, box *postbox) bool {
	told := make(chan []protocol.Role)
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go p.askEnded(asking, told)
	alone := p.alone(box)
	settled := box.settle(ctx, func() bool {
		select {
		case all := <-told:
			for _, r := range all {
				if r != p.self && p.study.index(r) >= 0 {
					box.leave(r)
				}
			}
		default:
		}
		return alone()
	}, p.study.Deadlines.message())
	if !settled && ctx.Err() == nil {
		p.Log.Warn("not everybody has acknowledged everything")
	}
	return settled || alone()
}

// askEnded asks again and again whose programs have ended, and tells it, until ctx is done: a role that
// has everything goes, and its last word to this one may have been lost.
func (p *Party) askEnded(ctx context.Context, told chan<- []protocol.Role) {
	for pause(ctx, time.Second) == nil {
		body, err := p.ask(ctx, request{Ask: askEnded})
		var all []protocol.Role
		if err != nil || strict(body, &all) != nil {
			continue
		}
		select {
		case told <- all:
		case <-ctx.Done():
		}
	}
}

// mostMail is the most parties that send messages to each other.
const mostMail = 64

// alone returns what says that all others have ended: the other roles have said so, the
// coordinator has all but this party's last word, and nobody has been heard for a while.
func (p *Party) alone(box *postbox) func() bool {
	others := len(p.study.roles()) - 1
	if len(p.study.Parties) > mostMail {
		others = 0 // they do not tell each other
	}
	begun := time.Now()
	return func() bool {
		heard := time.Unix(0, p.heard.Load())
		return len(box.left) >= others && box.end.Waiting(protocol.Server) <= 1 &&
			time.Since(heard) > silence && time.Since(begun) > silence
	}
}

// doneTime is how long a party tries to say that it needs nothing more.
const doneTime = 5 * time.Second

// silence is how long a role that is there is not heard at most.
const silence = 20 * time.Second

// play agrees on the group's secret, matches records, and runs the method.
func (p *Party) play(ctx context.Context, box *postbox, part dataset.Part, ids []string) (*engine.Result, error) {
	s := p.study
	if p.self.Serves() {
		return p.serve(ctx, box)
	}
	group, err := p.agreeOnGroup(ctx, box)
	if err != nil {
		return nil, err
	}
	if s.ByColumns() {
		if s.IDColumn != "" {
			if part, ids, err = p.match(ctx, box, group, part, ids); err != nil {
				return nil, err
			}
		}
		if part.Points.N != s.Records {
			return nil, fault.Failed("records", fmt.Sprintf("are %d, and the study is of %d", part.Points.N, s.Records),
				"check the file, or ask for a study of as many", nil)
		}
	}
	runner, err := s.runner(ids)
	if err != nil {
		return nil, err
	}
	core := runner.Core()
	member := &sum.Member{Config: sum.Config{Study: p.roster.hash(), Parties: core.Parties, Threshold: s.Threshold,
		Ring: core.Capacity.Ring, Plain: s.PlainSums},
		Index: int(p.self), Pair: func(q int) ([32]byte, error) { return p.keys.pair(p.roster, protocol.Role(q)) },
		Sign:   p.keys.signing.Sign,
		Verify: func(q int, b, signature []byte) bool { return p.roster.verify(protocol.Role(q), b, signature) }}
	// Who has another secret of the group reads another result out of the same bytes.
	member.History = group.Derive("history").Key()
	if member.Root, err = derived(p.keys.root[:], p.roster.hash(), "sums"); err != nil {
		return nil, err
	}
	own := s.newPace(p.Log)
	t := &partyTransport{Transport: s.overMail(box, p.self, core, own, p.Watch, p.Log), box: box,
		parties: core.Parties, member: member, pace: own, step: p.Step, watch: p.Watch}
	res, err := p.Engine.Run(ctx, &seated{runner, protocol.Options{Seat: &protocol.Seat{Role: p.self, Part: part},
		Connect: func(protocol.Role) protocol.Transport { return t },
		Secrets: func(r protocol.Role) protocol.Secrets { return s.secrets(r, p.keys, group) }}})
	if err != nil {
		return nil, err
	}
	res.Notes = append(res.Notes, own.notes()...)
	return res, nil
}

// serve is the part of a server besides the coordinator: it adds up its shares.
func (p *Party) serve(ctx context.Context, box *postbox) (*engine.Result, error) {
	runner, err := p.study.runner(nil)
	if err != nil {
		return nil, err
	}
	core := runner.Core()
	t := p.study.overMail(box, p.self, core, nil, p.Watch, p.Log)
	return p.Engine.Run(ctx, &seated{runner, protocol.Options{Seat: &protocol.Seat{Role: p.self},
		Connect: func(protocol.Role) protocol.Transport { return t },
		Secrets: func(r protocol.Role) protocol.Secrets { return p.study.secrets(r, p.keys, secret.Root{}) }}})
}

// agreeOnGroup returns the root that all parties share and the coordinator lacks:
// party 1 draws it and sends it to each.
func (p *Party) agreeOnGroup(ctx context.Context, box *postbox) (secret.Root, error) {
	if p.study.Seed != nil {
		return protocol.SimulatedSecrets(*p.study.Seed, 0).Group, nil
	}
	if p.Invitation.Party > 0 {
		b, err := box.receive(ctx, 0, mailGroup)
		if err != nil {
			return secret.Root{}, err
		}
		if len(b) != 32 {
			return secret.Root{}, errors.New("study: the group's secret has another length")
		}
		return secret.Of([32]byte(b)), nil
	}
	key := secret.Of(p.keys.root).Derive("group").Key()
	for q := 1; q < len(p.study.Parties); q++ {
		if err := box.send(ctx, protocol.Role(q), mailGroup, key[:]); err != nil {
			return secret.Root{}, err
		}
	}
	return secret.Of(key), nil
}
