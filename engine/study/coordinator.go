package study

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/engine/study/journal"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/engine/study/sum"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/secret"
	"github.com/cohort-engine/cohort/internal/wholefile"
)

// Kinds of journal records beside those of links.
const (
	recordIdentity byte = 'i'
	recordStudy    byte = 'S' // the study file
	recordSecrets  byte = 'v' // of invitations
	recordEntry    byte = 'e' // a party's entry
	recordConsent  byte = 'y' // a role's signature of the roster: its place among the others u16, signature
	recordCharge   byte = 'c' // "charging", then the run's number in the ledger file
	recordUsers    byte = 'u' // seeds of the roles' keys for a cluster
	// recordCertificate has a certificate of the study's own and its key.
	recordCertificate byte = 't'
	recordEnded       byte = 'x' // why the study was ended before it began
	recordStatus      byte = 'p' // the coordinator's Status when the study ended
	recordDone        byte = 'd' // at the coordinator a role's place among the others u16, which needs nothing more
)

// JournalName is the journal's file within a state folder.
const JournalName = "journal"

// Serve is what a coordinator runs with.
type Serve struct {
	Study *Study
	// State is the folder of its journal, Listen where parties
	// connect, and Reach the HOST:PORT that invitations have, empty for the same.
	State, Listen, Reach string
	// Certificate and Key, if not empty, are PEM files of the server's certificate, with
	// those up to its authority's behind it, and of its key: else the study has its own.
	Certificate, Key string
	// NATS, if not empty, is the URL of a cluster that carries the messages in place of a
	// server of the coordinator's own at Listen; Authority is the certificate that its
	// servers' lead to (nil: one of this machine's authorities). Users is told what the
	// cluster's configuration must have, before it is connected to.
	NATS      string
	Authority []byte
	Users     func(text string) error
	Log       *slog.Logger
	Engine    *engine.Engine
	// Watch, if not nil, hears what happens.
	Watch *Watch
	// Crash is for tests: see journal.OpenToCrash.
	Crash func(point string)
}

// Coordinator is a study's coordinator: it holds no data.
type Coordinator struct {
	Serve
	hash    [32]byte
	journal *journal.File
	keys    *keys
	own     Entry
	secrets [][16]byte
	users   [][]byte    // seeds for a cluster, the coordinator's first
	pair    *pair       // nil with a certificate that was given
	server  *bus.Server // nil with a cluster
	conn    *bus.Conn
	pin     [32]byte

	mu       sync.Mutex
	entries  []Entry // of the other roles; without Signing if not enrolled
	enrolled int
	consents [][]byte
	// roster is that of all roles, once they have enrolled: from then on it stays, and is checked once.
	roster  func() (*Roster, error)
	done    map[protocol.Role]bool // that need nothing more
	ended   []protocol.Role        // whose programs have
	agreed  int
	changed chan struct{}
	end     *link.End
	ending  string // why the study was ended before it began
	kept    bool   // the journal has how the study ended
	// brief is link.Config.Brief; a test that wants every byte in the journal has none.
	brief func(body []byte) (head int)
}

// NewCoordinator begins a study, or goes on with one that its state folder has.
func NewCoordinator(c Serve) (*Coordinator, error) {
	hash, err := c.Study.Hash()
	if err != nil {
		return nil, err
	}
	if c.Watch == nil {
		c.Watch = NewWatch(c.Study)
	}
	others := len(c.Study.roles())
	o := &Coordinator{Serve: c, done: make(map[protocol.Role]bool), hash: hash, entries: make([]Entry, others),
		consents: make([][]byte, others), changed: make(chan struct{}, 1), brief: brief}
	o.roster = sync.OnceValues(func() (*Roster, error) {
		return newRoster(o.hash, len(o.Study.Parties), len(o.Study.Servers), o.all())
	})
	if o.journal, err = journal.OpenToCrash(filepath.Join(c.State, JournalName), c.Crash); err != nil {
		return nil, err
	}
	if err := o.recall(); err != nil {
		o.journal.Close()
		return nil, err
	}
	if c.NATS != "" {
		err = o.enlist()
	} else {
		err = o.listen()
	}
	if err == nil {
		err = o.conn.Answer(o.answer)
	}
	if err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// listen starts a server of the coordinator's own.
func (o *Coordinator) listen() error {
	certificate, err := o.certificate()
	if err == nil {
		o.pin, err = bus.Pin(certificate)
	}
	var long bool
	if err == nil {
		long, err = o.Study.long()
	}
	if err == nil {
		o.server, err = bus.Listen(o.Listen, o.Study.ID, certificate, o.own.Signing, long, o.admit, o.Log)
	}
	if err != nil {
		return err
	}
	if len(o.Study.Servers) > 0 || o.Study.ByColumns() { // messages that are not the coordinator's
		o.Watch.follow(o.carried)
	}
	d := bus.Dialer{Self: protocol.Server, Study: o.Study.ID, Server: o.server, Key: o.keys.signing, Frames: o.frames}
	o.conn, err = bus.Dial(context.Background(), d)
	return err
}

// carried is what the server has carried of each role, in their order.
func (o *Coordinator) carried() []bus.Carried {
	byKey := o.server.Carried()
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]bus.Carried, len(o.entries))
	for i, e := range o.entries {
		all[i] = byKey[e.Signing]
	}
	return all
}

// enlist connects to a cluster, whose users the roles are.
func (o *Coordinator) enlist() error {
	roles := append([]protocol.Role{protocol.Server}, o.Study.roles()...)
	if o.users == nil {
		for range roles {
			seed, err := bus.NewUser()
			if err != nil {
				return err
			}
			o.users = append(o.users, seed)
		}
		if err := o.note(recordUsers, encode(o.users)); err != nil {
			return err
		}
	}
	text, err := bus.Users(o.Study.ID, roles, o.users)
	if err == nil && o.Users != nil {
		err = o.Users(text)
	}
	if err != nil {
		return err
	}
	d := bus.Dialer{Self: protocol.Server, Study: o.Study.ID, URL: o.NATS, Key: o.keys.signing, Frames: o.frames,
		Cluster: &bus.Cluster{User: o.users[0], Authority: o.Authority},
		Away:    func(err error) { o.Log.Warn("the cluster is away", "why", err.Error()) },
		Back: func(error) {
			o.Log.Info("the cluster is back")
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.end != nil {
				o.end.Again()
			}
		}}
	o.conn, err = bus.Dial(context.Background(), d)
	return err
}

// recall reads the journal, or begins it.
func (o *Coordinator) recall() error {
	var id *identity
	var had []byte
	for _, r := range o.journal.Records() {
		b, err := o.journal.Read(r)
		if err != nil {
			return err
		}
		switch r.Kind {
		case recordIdentity:
			id = new(identity)
			err = json.Unmarshal(b, id)
		case recordStudy:
			had = b
		case recordSecrets:
			err = json.Unmarshal(b, &o.secrets)
		case recordCertificate:
			o.pair = new(pair)
			err = json.Unmarshal(b, o.pair)
		case recordUsers:
			err = json.Unmarshal(b, &o.users)
		case recordEntry:
			var e Entry
			if err = json.Unmarshal(b, &e); err == nil && o.Study.index(protocol.Role(e.Party)) >= 0 {
				o.entries[o.Study.index(protocol.Role(e.Party))] = e
				o.enrolled++
			}
		case recordEnded:
			o.ending = string(b)
		case recordConsent:
			if p := placeOf(b); len(b) > 2 && p < len(o.consents) {
				o.consents[p] = b[2:]
				o.agreed++
			}
		case recordStatus:
			o.kept = true
		case recordDone:
			if p := placeOf(b); p < len(o.entries) {
				o.done[o.Study.roles()[p]] = true
			}
		}
		if err != nil {
			return fault.Failed(o.State, "holds another study's journal", "name the folder of this study, or a new one", err)
		}
	}
	if id == nil {
		return o.begin()
	}
	text, err := o.Study.Encode()
	if err != nil {
		return err
	}
	if string(had) != string(text) {
		return fault.Request(o.State, "was begun with another study file", "name the folder of this study, or a new one")
	}
	return o.take(id)
}

// begin draws the coordinator's keys and the invitations' secrets.
func (o *Coordinator) begin() error {
	if len(o.journal.Records()) > 0 {
		return fault.Failed(o.State, "holds a journal without keys", "name a new folder", journal.ErrDamaged)
	}
	id, err := newIdentity(o.hash, protocol.Server)
	if err != nil {
		return err
	}
	o.secrets = make([][16]byte, len(o.entries))
	for i := range o.secrets {
		rand.Read(o.secrets[i][:]) // never fails since Go 1.24
	}
	text, err := o.Study.Encode()
	if err != nil {
		return err
	}
	for _, r := range []struct {
		kind byte
		body []byte
	}{{recordStudy, text}, {recordSecrets, encode(o.secrets)}, {recordIdentity, encode(id)}} {
		if _, err := o.journal.Append(r.kind, r.body); err != nil {
			return err
		}
	}
	if err := o.journal.Sync(); err != nil {
		return err
	}
	return o.take(id)
}

func (o *Coordinator) take(id *identity) (err error) {
	if o.keys, err = id.keys(); err != nil {
		return err
	}
	o.own, err = o.keys.entry(o.hash)
	return err
}

// certificate is the one that was given, or that of the journal, which is made once.
func (o *Coordinator) certificate() (tls.Certificate, error) {
	if o.Certificate != "" {
		chain, err := wholefile.Read(o.Certificate, wholefile.PEM)
		key, keyErr := wholefile.Read(o.Key, wholefile.PEM)
		if err = cmp.Or(err, keyErr); err == nil {
			var c tls.Certificate
			if c, err = tls.X509KeyPair(chain, key); err == nil {
				return c, nil
			}
		}
		return tls.Certificate{}, fault.Failed(o.Certificate, err.Error(), "name PEM files of a certificate and of its key",
			err)
	}
	if o.pair == nil {
		chain, key, err := bus.NewCertificate(time.Now())
		if err != nil {
			return tls.Certificate{}, err
		}
		o.pair = &pair{Chain: chain, Key: key}
		if err := o.note(recordCertificate, encode(o.pair)); err != nil {
			return tls.Certificate{}, err
		}
	}
	return tls.X509KeyPair(o.pair.Chain, o.pair.Key)
}

// pair is a certificate of the study's own, in PEM, and its key.
type pair struct{ Chain, Key []byte }

// String hides the key.
func (pair) String() string { return "study.pair(redacted)" }

// GoString hides the key.
func (p pair) GoString() string { return p.String() }

// Invitations are those of all parties, in their order, then of other servers.
func (o *Coordinator) Invitations() []Invitation {
	url := o.NATS
	switch {
	case url != "":
	case o.Reach != "":
		url = "tls://" + o.Reach
	default:
		url = "tls://" + o.server.Address()
	}
	var all []Invitation
	for i, r := range o.Study.roles() {
		v := Invitation{URL: url, Pin: o.pin, Study: o.hash, ID: o.Study.ID, Party: int(r), Secret: o.secrets[i]}
		if o.NATS != "" {
			v.User, v.Authority = o.users[i+1], o.Authority
		}
		all = append(all, v)
	}
	return all
}

// admit decides who may connect: who has a role's key, or its invitation while no key has
// been taken for it.
func (o *Coordinator) admit(l bus.Login) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.Study.index(l.Party)
	if at < 0 {
		return fmt.Errorf("there is no %v", l.Party)
	}
	switch key := o.entries[at].Signing; {
	case key == l.Key:
		return nil
	case key != "":
		return fmt.Errorf("the invitation of %v was used with another key", l.Party)
	case !o.invited(at, l.Key, l.Proof):
		return fmt.Errorf("the invitation of %v is another", l.Party)
	}
	return nil
}

// invited reports whether the owner of a key has shown that it has a role's invitation.
func (o *Coordinator) invited(at int, key, shown string) bool {
	return hmac.Equal([]byte(proof(o.secrets[at], o.hash, key)), []byte(shown))
}

// answer answers a party's request.
func (o *Coordinator) answer(from protocol.Role, body []byte) []byte {
	r, err := parseRequest(body)
	var a answer
	if err == nil {
		a, err = o.handle(from, r)
	}
	if err != nil {
		o.Log.Warn("a request was refused", "party", o.Study.Name(from), "why", err.Error())
		a = answer{Refused: o.told(err)}
	}
	a.Version = version
	return encode(a)
}

func (o *Coordinator) handle(from protocol.Role, r *request) (answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	others, at := len(o.entries), o.Study.index(from)
	if at < 0 {
		return answer{}, fmt.Errorf("there is no %v", from)
	}
	if o.ending != "" {
		o.done[from] = true
		return answer{}, errors.New("the study was ended: " + o.ending)
	}
	switch r.Ask {
	case askStudy:
		text, err := o.Study.Encode()
		return cut(text, r.Part), err
	case askEnrol:
		return answer{}, o.enrol(from, at, r.Entry, r.Proof)
	case askRoster:
		if o.enrolled < others {
			return answer{Wait: true, Here: o.enrolled, Parties: others}, nil
		}
		return cut(encode(o.all()), r.Part), nil
	case askAgree:
		return answer{}, o.agree(from, at, r.Signature)
	case askAgreed:
		if o.agreed < others {
			return answer{Wait: true, Here: o.agreed, Parties: others}, nil
		}
		return cut(encode(o.consents), r.Part), nil
	case askDone:
		if !o.done[from] {
			if err := o.note(recordDone, noted(at)); err != nil {
				return answer{}, err
			}
			o.done[from] = true
		}
		return answer{}, nil
	case askEnded:
		return cut(encode(o.ended), r.Part), nil
	}
	return answer{}, errors.New("an unknown request")
}

// all are the entries of the roster.
func (o *Coordinator) all() []Entry { return append([]Entry{o.own}, o.entries...) }

// enrol takes the entry of a role, which is at a place among the others, once.
func (o *Coordinator) enrol(from protocol.Role, at int, e *Entry, shown string) error {
	if e == nil || e.Party != int(from) {
		return errors.New("it has no entry of this party")
	}
	if err := e.check(o.hash); err != nil {
		return err
	}
	if had := o.entries[at]; had.Signing != "" {
		if had.Signing == e.Signing && string(had.Sealing) == string(e.Sealing) {
			return nil
		}
		return errors.New("this party has other keys")
	}
	if !o.invited(at, e.Signing, shown) {
		return errors.New("this is not its invitation")
	}
	if !o.keys.agrees(e) {
		return errors.New("nobody can agree on a secret with its key")
	}
	if err := o.note(recordEntry, encode(e)); err != nil {
		return err
	}
	o.entries[at] = *e
	o.enrolled++
	if o.server != nil {
		o.server.Only(from, e.Signing)
	}
	o.Log.Info("a party has enrolled", "party", o.Study.Name(from), "here", o.enrolled, "of", len(o.entries))
	o.tell()
	return nil
}

// agree takes a role's signature of the roster.
func (o *Coordinator) agree(from protocol.Role, at int, signature []byte) error {
	if o.enrolled < len(o.entries) {
		return errors.New("the roster is not complete")
	}
	if had := o.consents[at]; had != nil && bytes.Equal(had, signature) { // it asks again
		return nil
	}
	r, err := o.roster()
	if err != nil {
		return err
	}
	if !r.verify(from, r.consent(), signature) {
		return errors.New("this is no signature of the roster")
	}
	if o.consents[at] != nil {
		return nil
	}
	if err := o.note(recordConsent, append(noted(at), signature...)); err != nil {
		return err
	}
	o.consents[at] = signature
	o.agreed++
	o.Log.Info("a party has agreed", "party", o.Study.Name(from), "here", o.agreed, "of", len(o.entries))
	o.tell()
	return nil
}

// noted is how a record notes a role's place among the others, which placeOf reads.
func noted(at int) []byte { return []byte{byte(at), byte(at >> 8)} }

func placeOf(record []byte) int {
	if len(record) < 2 {
		return math.MaxInt
	}
	return int(record[0]) | int(record[1])<<8
}

// note makes a record durable. Once there is a link, the journal is the link's.
func (o *Coordinator) note(kind byte, body []byte) error {
	if o.end != nil {
		return o.end.Note(kind, body)
	}
	if _, err := o.journal.Append(kind, body); err != nil {
		return err
	}
	return o.journal.Sync()
}

func (o *Coordinator) tell() {
	o.Watch.gathered(o.entries, o.consents)
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// frames hands frames to the link, when there is one.
func (o *Coordinator) frames(from protocol.Role, b []byte) {
	o.mu.Lock()
	end := o.end
	o.mu.Unlock()
	if end != nil {
		end.Deliver(from, b)
	}
}

// gather waits until all parties have enrolled and agreed, or the study is ended: those who have enrolled
// are told then.
func (o *Coordinator) gather(ctx context.Context) (*Roster, error) {
	for {
		o.mu.Lock()
		ready, why, here := o.agreed == len(o.entries), o.ending, o.enrolled
		o.mu.Unlock()
		switch {
		case why != "":
			o.over(why)
			o.seeOff(ctx, here, settleTime)
			return nil, &ended{why}
		case ready:
			return o.roster()
		}
		select {
		case <-o.changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Run runs the study to its end. The result has no centroids where the coordinator
// learns none.
func (o *Coordinator) Run(ctx context.Context) (*engine.Result, error) {
	o.tell()
	roster, err := o.gather(ctx)
	if err != nil {
		return nil, err
	}
	runner, err := o.Study.runner(nil)
	if err != nil {
		return nil, err
	}
	o.Watch.began(roster)
	o.Log.Info("the study begins", "fingerprint", roster.Fingerprint())
	end, err := o.connect(roster)
	if err != nil {
		return nil, err
	}
	o.Watch.restarted(end.Replaying)
	end.Start()
	defer end.Close()
	box := newPostbox(end, protocol.Server, o.Study.Deadlines.message())
	box.parted = func(r protocol.Role) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ended = append(o.ended, r)
	}
	res, err := o.play(ctx, runner, roster, box)
	if err != nil {
		o.dismiss(ctx, box, err)
		return nil, err
	}
	box.settle(ctx, func() bool { return false }, settleTime)
	o.seeOff(ctx, len(box.left), o.Study.Deadlines.message()) // others have been waited for
	o.over("done")
	return res, nil
}

// connect makes the link, whose journal it is from then on. Requests are answered meanwhile, and may note something.
func (o *Coordinator) connect(r *Roster) (*link.End, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	quota, err := o.Study.quota()
	if err != nil {
		return nil, err
	}
	end, err := link.New(link.Config{Self: protocol.Server, Keys: o.keys.links(r), Journal: o.journal, Bus: o.conn,
		Most: mostMessage, Quota: quota, Brief: o.brief,
		Refused: func(from protocol.Role, err error) {
			o.Log.Warn("a frame was refused", "party", o.Study.Name(from), "why", err.Error())
			o.Watch.refused()
		}, Moved: o.Watch.moved})
	if err == nil {
		o.end = end
	}
	return end, err
}

// over says that the study has ended, and how, and keeps that for those who ask later.
func (o *Coordinator) over(how string) {
	o.Watch.ended(how)
	status, _ := o.Watch.Status()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept {
		return // a later life has nothing to tell but how it remembered
	}
	if err := o.note(recordStatus, encode(status)); err != nil {
		o.Log.Warn("the course of the study is not kept", "why", err.Error())
	}
}

// seeOff waits until so many roles have said that they need nothing more, at most until the limit, and all have
// gone: the last words of each to the others come by this server, and one that was killed
// at the end comes again, when its machine is up.
func (o *Coordinator) seeOff(ctx context.Context, roles int, limit time.Duration) {
	done := func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.done) >= roles
	}
	if soon := min(limit, settleTime); !await(ctx, soon, done) && soon < limit {
		o.Log.Warn("the study is done, and somebody who is away may have to come again", "waiting for", limit)
		await(ctx, limit-soon, done)
	}
	await(ctx, settleTime, func() bool { return o.server == nil || o.server.Clients() <= 1 })
}

// await waits until something is true, at most for a while, and reports whether it is.
func await(ctx context.Context, while time.Duration, is func() bool) bool {
	for end := time.Now().Add(while); !is(); {
		if time.Now().After(end) || pause(ctx, 10*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// settleTime is how long a role that has ended waits for acknowledgements.
const settleTime = 10 * time.Second

// mostMessage is the longest message: encrypted columns are the longest that there are.
const mostMessage = 1 << 30

// play is the coordinator's part of the run.
func (o *Coordinator) play(ctx context.Context, runner protocol.Runner, roster *Roster,
	box *postbox) (*engine.Result, error) {
	if o.Study.IDColumn != "" && o.Study.ByColumns() {
		if err := o.match(ctx, box); err != nil {
			return nil, err
		}
	}
	core := runner.Core()
	config := sum.Config{Study: roster.hash(), Parties: core.Parties, Threshold: o.Study.Threshold,
		Ring: core.Capacity.Ring, Plain: o.Study.PlainSums}
	h := newServerTransport(o.Study.overMail(box, protocol.Server, core, nil, o.Watch, o.Log), box, config,
		o.Study.Deadlines.step(), o.Log, o.Watch, o.Study.Name)
	options := protocol.Options{Seat: &protocol.Seat{Role: protocol.Server},
		Connect: func(protocol.Role) protocol.Transport { return h },
		Secrets: func(r protocol.Role) protocol.Secrets { return o.Study.secrets(r, o.keys, secret.Root{}) }}
	res, err := o.Engine.Run(ctx, &seated{runner, options})
	if err != nil {
		return nil, err
	}
	return res, h.linger(ctx, len(o.entries), time.Now().Add(o.Study.Deadlines.message()))
}

// dismiss tells all roles that the study has ended, and why: a reason that follows
// from public values and from who answered.
func (o *Coordinator) dismiss(ctx context.Context, box *postbox, why error) {
	if ctx.Err() != nil {
		o.Watch.ended(why.Error())
		return // interrupted: the same command goes on
	}
	o.over(why.Error())
	told := []byte(o.told(why))
	for _, r := range o.Study.roles() {
		if !box.left[r] {
			_ = box.send(ctx, r, mailEnd, told)
		}
	}
	box.settle(ctx, func() bool { return false }, settleTime)
	o.seeOff(ctx, 0, settleTime)
}

// told is how the parties hear of an error: one of this machine's own names its files, which are nobody else's
// business.
func (o *Coordinator) told(err error) string {
	const failed = "the coordinator's machine has failed: its log says how"
	if errors.As(err, new(*fs.PathError)) {
		return failed
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if f, is := cause.(*fault.Error); is && f.What == filepath.Join(o.State, JournalName) {
			return failed
		}
	}
	return err.Error()
}

// End ends the study, before it begins or later: all parties are told why, nothing is released any more.
func (o *Coordinator) End(why string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.end != nil:
		return o.end.Mark([]byte(markEnd + why))
	case o.agreed == len(o.entries):
		return fault.Failed("study", "begins just now", "try again", nil)
	case o.ending == "":
		if err := o.note(recordEnded, []byte(why)); err != nil {
			return err
		}
		o.ending = why
		o.tell()
	}
	return nil
}

// Close ends the coordinator's connections.
func (o *Coordinator) Close() {
	if o.conn != nil {
		o.conn.Close()
	}
	if o.server != nil {
		o.server.Close()
	}
	o.mu.Lock() // an answer to a request may be noting something yet
	defer o.mu.Unlock()
	o.journal.Close()
}
