// Package bus carries the frames of a study over NATS: a server inside the
// coordinator's process, and a connection of each party to it, over TLS 1.3 with a
// pinned certificate and a key pair (nkey) of each party. A party may publish under
// its own name and receive what is for it, and nothing else.
//
// Subjects are c.STUDY.FROM.TO, where FROM and TO are "s" for the coordinator, "p1",
// "p2" and so on for the parties and "s2" and "s3" for further servers, and
// c.STUDY.FROM.ctl for requests to the coordinator before the roles know each other.
package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/link"
	"github.com/cohort-engine/cohort/internal/fault"
)

// MostParties is the largest number of parties of a study, MostServers that of its
// servers, the coordinator among them.
const MostParties, mostServers = 10000, 3

// Known reports whether a study may have a role that connects with an invitation: a party,
// or a server besides the coordinator.
func Known(r protocol.Role) bool {
	return r >= protocol.ServerAt(mostServers-1) && r < MostParties && r != protocol.Server
}

// mostRequest is the longest request or answer: a message on the bus.
const mostRequest = link.FrameBytes

// Login is what somebody who connects shows.
type Login struct {
	Party protocol.Role
	// Key is the public nkey, whose owner has signed the server's nonce.
	Key string
	// Proof is what Proof of the invitation's secret gives for the key; empty for a
	// party that is known.
	Proof string
	// Address is where it comes from.
	Address string
}

// pass is the JSON of a login's token: the role's number from 1, those of further servers
// below 0.
type pass struct {
	Party int    `json:"party"`
	Proof string `json:"proof,omitempty"`
}

// name is a role in subjects.
func name(r protocol.Role) string {
	switch {
	case r == protocol.Server:
		return "s"
	case r.Serves():
		return "s" + strconv.Itoa(int(protocol.Server-r)+1)
	}
	return "p" + strconv.Itoa(int(r)+1)
}

// parseName reads a role in a subject.
func parseName(s string) (protocol.Role, bool) {
	if s == "s" {
		return protocol.Server, true
	}
	if s == "" {
		return 0, false
	}
	n, err := strconv.Atoi(s[1:])
	if err != nil || n < 1 || n > MostParties {
		return 0, false
	}
	r := protocol.Role(n - 1)
	if s[0] == 's' {
		r = protocol.ServerAt(n - 1)
	}
	return r, Known(r) && name(r) == s
}

// Server is a NATS server within this process.
type Server struct {
	server *server.Server
	front  *front // nil where NATS listens itself
	study  string
	admit  func(Login) error
	log    *slog.Logger
	own    string // the coordinator's public nkey

	mu   sync.Mutex
	keys map[protocol.Role][]string // that were let in
}

// Listen starts a server. admit decides who may connect as which party; own is the
// coordinator's public nkey. long says that messages are mostly longer than a TLS record (LongMessage): a front
// speaks TLS then, which each message passes once more, and leaves in one write.
func Listen(address, study string, certificate tls.Certificate, own string, long bool, admit func(Login) error,
	log *slog.Logger) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fault.Request("--listen", err.Error(), "give HOST:PORT, such as 0.0.0.0:4222")
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return nil, fault.Range("--listen", address, "HOST:PORT with a port from 0 to 65535")
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	// The server does not say why it cannot listen, but to its log, and is waited for long.
	probe, err := net.Listen("tcp", address)
	if err != nil {
		return nil, unheard(address, err)
	}
	_ = probe.Close()
	b := &Server{study: study, admit: admit, log: log, own: own, keys: make(map[protocol.Role][]string)}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13,
		DynamicRecordSizingDisabled: true}
	b.server, err = server.NewServer(&server.Options{
		ServerName: "cohort", Host: host, Port: number, NoSigs: true, NoLog: true, AlwaysEnableNonce: true,
		// With a front clients hear that there is TLS, and have it with that.
		DontListen: long, ProxyProtocol: long, TLSConfig: config, TLS: !long, TLSHandshakeFirst: !long, TLSTimeout: 20,
		DisableShortFirstPing: true, AuthTimeout: 30,
		MaxPayload: link.FrameBytes + 1024, MaxPending: 256 << 20, MaxSubs: mostSubjects, WriteDeadline: writing,
		PingInterval: 20 * time.Second, MaxPingsOut: 2, CustomClientAuthentication: b,
	})
	if err != nil {
		return nil, fault.Failed("--listen "+address, err.Error(), "choose another address", err)
	}
	go b.server.Start()
	switch {
	case !b.server.ReadyForConnections(20 * time.Second):
		err = errors.New("nobody can connect")
	case long:
		b.front, err = newFront(address, config, b.server, log)
	}
	if err != nil {
		b.server.Shutdown()
		return nil, unheard(address, err)
	}
	return b, nil
}

func unheard(address string, err error) error {
	return fault.Failed("--listen "+address, "cannot be listened on: "+err.Error(),
		"choose another address or end the program that uses it", err)
}

// mostSubjects is how many a connection may listen to at once: a role has three at most, and what comes on one goes to
// all that it matches.
const mostSubjects = 8

// LongMessage is more than a TLS record has.
const LongMessage = 16 << 10

// Address is where the server listens.
func (b *Server) Address() string {
	if b.front != nil {
		return b.front.listener.Addr().String()
	}
	return b.server.Addr().String()
}

// Clients is how many roles are connected.
func (b *Server) Clients() int { return b.server.NumClients() }

// Carried is what the connections of one key have carried: bytes from its owner and to it,
// with the frames' heads.
type Carried struct {
	From, To int64
	// Here says that it is connected.
	Here bool
}

// Carried is what was carried for each key, by its public nkey.
func (b *Server) Carried() map[string]Carried {
	all := make(map[string]Carried)
	list, err := b.server.Connz(&server.ConnzOptions{State: server.ConnAll, Username: true, Limit: 1 << 20})
	if err != nil {
		return all // its options are never wrong
	}
	for _, c := range list.Conns {
		x := all[c.AuthorizedUser]
		all[c.AuthorizedUser] = Carried{x.From + c.InBytes, x.To + c.OutBytes, x.Here || c.Stop == nil}
	}
	return all
}

// Close ends the server and all connections.
func (b *Server) Close() {
	if b.front != nil {
		b.front.close()
		defer b.front.work.Wait()
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// Check implements server.Authentication.
func (b *Server) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	address := ""
	if a := c.RemoteAddress(); a != nil {
		address = a.String()
	}
	role, err := b.check(o.Nkey, o.Sig, o.Token, address, c.GetNonce())
	if err != nil {
		b.log.Warn("a connection was refused", "address", address, "why", err.Error())
		return false
	}
	user := &server.User{Username: name(role)}
	if o.Nkey != b.own { // which is this process: what it may do is not looked up for each of its messages
		publish, subscribe := subjects(b.study, role)
		user.Permissions = &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}
	}
	c.RegisterUser(user)
	if o.Nkey != b.own {
		b.entered(role, o.Nkey, address)
	}
	return true
}

// entered notes that a role was let in from an address, and ends the connections that it had before: of many at once
// each would have all that is for the role, and the role itself knows of one.
func (b *Server) entered(r protocol.Role, key, address string) {
	b.mu.Lock()
	again := slices.Contains(b.keys[r], key)
	if !again {
		b.keys[r] = append(b.keys[r], key)
	}
	b.mu.Unlock()
	if again {
		b.end(func(of, at string) bool { return of == key && at != address })
	}
}

// Only ends the connections of a role with all other keys than one: its invitation lets several in until it is used.
func (b *Server) Only(r protocol.Role, key string) {
	b.mu.Lock()
	had := b.keys[r]
	b.keys[r] = []string{key}
	b.mu.Unlock()
	if slices.ContainsFunc(had, func(k string) bool { return k != key }) {
		b.end(func(of, _ string) bool { return of != key && slices.Contains(had, of) })
	}
}

// end ends the connections that are to: by the owner's key and the address.
func (b *Server) end(is func(key, address string) bool) {
	list, err := b.server.Connz(&server.ConnzOptions{Username: true, Limit: 1 << 20})
	if err != nil {
		return // its options are never wrong
	}
	for _, c := range list.Conns {
		if is(c.AuthorizedUser, net.JoinHostPort(c.IP, strconv.Itoa(c.Port))) {
			_ = b.server.DisconnectClientByID(c.Cid) // it may have ended
		}
	}
}

// parsePass reads a login's token.
func parsePass(token string) (*pass, error) {
	p := new(pass)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, p)
	}
	if err != nil || !Known(protocol.Role(p.Party-1)) {
		return nil, errors.New("its token is none")
	}
	return p, nil
}

// check tells who connects.
func (b *Server) check(key, signature, token, address string, nonce []byte) (protocol.Role, error) {
	if len(key) > 100 || len(signature) > 200 || len(token) > 1000 {
		return 0, errors.New("its login is too long")
	}
	public, err := nkeys.FromPublicKey(key)
	if err != nil {
		return 0, errors.New("its key is none")
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(nonce) == 0 || public.Verify(nonce, sig) != nil {
		return 0, errors.New("it has not signed with its key")
	}
	if key == b.own {
		return protocol.Server, nil
	}
	p, err := parsePass(token)
	if err != nil {
		return 0, err
	}
	l := Login{Party: protocol.Role(p.Party - 1), Key: key, Proof: p.Proof, Address: address}
	return l.Party, b.admit(l)
}

// subjects are those that a role may publish to and receive from.
func subjects(study string, r protocol.Role) (publish, subscribe []string) {
	at := "c." + study + "."
	if r == protocol.Server {
		return []string{at + "s.>", at + "in.>"}, []string{at + "*.s", at + "*.ctl"}
	}
	return []string{at + name(r) + ".>"}, []string{at + "*." + name(r), at + "in." + name(r) + ".>"}
}

// Dialer is what a role connects with.
type Dialer struct {
	Self protocol.Role
	// Study is the id of the study in subjects.
	Study string
	// URL and Pin are where the coordinator is and the hash of its certificate's
	// authority; Server takes their place within the coordinator's process.
	URL    string
	Pin    [32]byte
	Server *Server
	// Cluster, if not nil, says that at URL is a cluster of somebody else.
	Cluster *Cluster
	// Key signs for the role; Proof is for a first connection.
	Key   nkeys.KeyPair
	Proof string
	// Once says that it is not tried again where nobody answers.
	Once bool
	// Frames hears of frames; Away and Back of the connection's end and return. They are called
	// from a goroutine of the connection.
	Frames     func(from protocol.Role, frame []byte)
	Away, Back func(error)
}

// Conn is a role's connection. It reconnects by itself until Close.
type Conn struct {
	nc    *nats.Conn
	self  protocol.Role
	study string

	mu   sync.Mutex
	lost chan struct{} // closed when the connection is
}

// broken returns what is closed when the connection, as it is now, is lost.
func (c *Conn) broken() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// breaks says that the connection is lost.
func (c *Conn) breaks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.lost)
	c.lost = make(chan struct{})
}

// Dial connects a role.
func Dial(ctx context.Context, d Dialer) (*Conn, error) {
	public, err := d.Key.PublicKey()
	if err != nil {
		return nil, err
	}
	token, err := json.Marshal(pass{Party: int(d.Self) + 1, Proof: d.Proof})
	if err != nil {
		return nil, err
	}
	c := &Conn{self: d.Self, study: d.Study, lost: make(chan struct{})}
	options := []nats.Option{
		nats.Name(name(d.Self)), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 250*time.Millisecond), nats.ReconnectBufSize(-1),
		nats.IgnoreDiscoveredServers(),
		nats.Timeout(10 * time.Second), nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.CustomInboxPrefix("c." + d.Study + ".in." + name(d.Self)), nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.breaks()
			if d.Away != nil && err != nil { // else this end has closed it
				d.Away(err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			if d.Back != nil {
				d.Back(nil)
			}
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // what is lost is sent again
	}
	if d.Cluster == nil {
		options = append(options, nats.Nkey(public, func(nonce []byte) ([]byte, error) { return d.Key.Sign(nonce) }),
			nats.Token(base64.RawURLEncoding.EncodeToString(token)))
	}
	switch {
	case d.Cluster != nil:
		more, err := d.Cluster.options()
		if err != nil {
			return nil, err
		}
		options = append(options, more...)
	case d.Server != nil:
		options = append(options, nats.InProcessServer(d.Server.server))
		d.URL = "" // a name would ask for TLS
	default:
		options = append(options, overTLS(pinned(d.Pin))...)
	}
	nc, err := connect(ctx, d, options)
	switch {
	case err != nil:
		return nil, err
	case nc.MaxPayload() < link.FrameBytes:
		nc.Close()
		return nil, fault.Failed("connection to "+d.URL, fmt.Sprintf("takes messages of at most %d bytes", nc.MaxPayload()),
			fmt.Sprintf("set max_payload of the cluster to %d or more", link.FrameBytes), nil)
	}
	c.nc = nc
	if d.Frames == nil {
		return c, nil
	}
	sub, err := nc.Subscribe("c."+d.Study+".*."+name(d.Self), d.hear())
	if err == nil {
		err = sub.SetPendingLimits(-1, 512<<20)
	}
	if err == nil {
		err = subscribed(ctx, nc)
	}
	if err != nil {
		nc.Close()
		return nil, fault.Failed("connection", err.Error(), "check the network", err)
	}
	return c, nil
}

// hear returns what takes messages to a role, one at a time.
func (d *Dialer) hear() nats.MsgHandler {
	known := make(map[string]protocol.Role) // by subject: who has sent before
	prefix := "c." + d.Study + "."
	return func(m *nats.Msg) {
		r, ok := known[m.Subject]
		if !ok {
			from, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, prefix), ".")
			if r, ok = parseName(from); !ok || r == d.Self {
				return
			}
			known[m.Subject] = r
		}
		d.Frames(r, m.Data)
	}
}

// dialFor is how long a connection is tried again where nobody answers: a coordinator
// that has just died is back by then.
const dialFor = 10 * time.Second

// connect connects, again and again where the network or the coordinator fails, not
// where either end refuses the other.
func connect(ctx context.Context, d Dialer, options []nats.Option) (*nats.Conn, error) {
	until := time.Now()
	if !d.Once {
		until = until.Add(dialFor)
	}
	for {
		nc, err := nats.Connect(d.URL, options...)
		var authority x509.UnknownAuthorityError
		switch {
		case err == nil:
			return nc, nil
		case !final(err) && !errors.As(err, &authority) && time.Now().Before(until):
		case d.Cluster != nil:
			return nil, d.Cluster.refused(d.URL, err)
		default:
			return nil, refused(d.URL, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// subscribed waits until the server knows the subscriptions. If the connection is lost meanwhile,
// a flush fails as on one that is closed, but it comes back, and its subscriptions with it.
func subscribed(ctx context.Context, nc *nats.Conn) error {
	until := time.Now().Add(dialFor)
	for {
		err := nc.FlushTimeout(10 * time.Second)
		if err == nil || nc.IsClosed() || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// final reports whether a server will not let this key in, however often it asks.
func final(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrNkeysNotSupported) || errors.Is(err, errPin)
}

// refused says why there is no connection.
func refused(url string, err error) error {
	do := "check the address and the network, and that the coordinator is running"
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fault.Failed("connection to "+url, "the coordinator refused this key or invitation",
			"ask for a new invitation, or use the folder that this party began with", err)
	case errors.Is(err, errPin):
		return fault.Failed("connection to "+url, "the certificate there is not the one of the invitation",
			"somebody may stand in between: do not go on before the coordinator has confirmed the invitation", err)
	}
	return fault.Failed("connection to "+url, err.Error(), do, err)
}

// Publish implements link.Bus.
func (c *Conn) Publish(to protocol.Role, frame []byte) error {
	if !c.nc.IsConnected() {
		return nats.ErrDisconnected
	}
	return c.nc.Publish("c."+c.study+"."+name(c.self)+"."+name(to), frame)
}

// Request asks the coordinator. It ends with an error when the connection is lost, as the answer is.
func (c *Conn) Request(ctx context.Context, body []byte) ([]byte, error) {
	if len(body) > mostRequest {
		return nil, fault.Range("request", len(body), "shorter")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broken := c.broken()
	go func() {
		select {
		case <-broken:
			cancel()
		case <-ctx.Done():
		}
	}()
	m, err := c.nc.RequestWithContext(ctx, "c."+c.study+"."+name(c.self)+".ctl", body)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Answer lets the coordinator answer requests.
func (c *Conn) Answer(answer func(from protocol.Role, body []byte) []byte) error {
	prefix := "c." + c.study + "."
	_, err := c.nc.Subscribe(prefix+"*.ctl", func(m *nats.Msg) {
		from, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, prefix), ".")
		if r, ok := parseName(from); ok && strings.HasPrefix(m.Reply, prefix+"in."+name(r)+".") {
			_ = m.Respond(answer(r, m.Data))
		}
	})
	if err == nil {
		err = c.nc.Flush()
	}
	return err
}

// Close ends the connection after what was published has left; on one that is lost nothing waits.
func (c *Conn) Close() {
	if c.nc.IsConnected() {
		_ = c.nc.FlushTimeout(2 * time.Second)
	}
	c.nc.Close()
}

// String says who is connected.
func (c *Conn) String() string { return fmt.Sprintf("connection of %v", c.self) }
