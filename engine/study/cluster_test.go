package study

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
)

// cluster is a NATS server that knows nothing of studies but its configuration file.
type cluster struct {
	dir, address string
	authority    []byte // DER
	server       *server.Server
}

// newCluster makes a cluster's certificates, of an authority of its own.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: t.TempDir(), address: "127.0.0.1:" + freePort(t)}
	write := func(name, kind string, der []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(c.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	until := time.Now().Add(time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an organisation"},
		NotAfter: until,
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	var err error
	if c.authority, err = x509.CreateCertificate(rand.Reader, ca, ca, keys[0].Public(), keys[0]); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, keys[1].Public(), keys[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(keys[1])
	if err != nil {
		t.Fatal(err)
	}
	write("server.pem", "CERTIFICATE", der)
	write("server.key", "PRIVATE KEY", key)
	chain := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.authority}))
	if err := os.WriteFile(filepath.Join(c.dir, "chain.pem"), chain, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the cluster with some users' part of its configuration.
func (c *cluster) start(t *testing.T, users string) {
	t.Helper()
	c.stop()
	if err := os.WriteFile(filepath.Join(c.dir, "users.conf"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\ntls { cert_file: %q, key_file: %q }\n"+
		"authorization { users = [ { user: a, password: b } ] }\naccounts { cohort { include users.conf } }\n", c.address,
		filepath.Join(c.dir, "server.pem"), filepath.Join(c.dir, "server.key"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.NoLog = true, true
	if c.server, err = server.NewServer(options); err != nil {
		t.Fatal(err)
	}
	go c.server.Start()
	if !c.server.ReadyForConnections(10 * time.Second) {
		t.Fatal("the cluster does not start")
	}
}

// knows fails unless the cluster lets its own user in.
func (c *cluster) knows(t *testing.T, user, password string) {
	t.Helper()
	nc, err := nats.Connect("tls://"+c.address, nats.UserInfo(user, password),
		nats.RootCAs(filepath.Join(c.dir, "chain.pem")))
	if err != nil {
		t.Fatalf("the cluster's own user: %v", err)
	}
	nc.Close()
}

func (c *cluster) stop() {
	if c.server != nil {
		c.server.Shutdown()
		c.server.WaitForShutdown()
	}
}

// A study over somebody else's NATS cluster has the bits of one process. The cluster is
// restarted in the middle; a study whose users it does not know is refused, as is a party
// with another authority, one with another's invitation, and a foreign subject.
func TestCluster(t *testing.T) {
	c := newCluster(t)
	c.start(t, "")
	defer func() { c.stop() }()
	n := newNetwork(t, newFixture(t, "sulloyd", 3, 240, method.Settings{"noise": "split", "mechanism": "gaussian",
		"iterations": "6"}))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var users string
	serve := Serve{Study: n.study, State: n.dirs[3], Log: n.log, Engine: newEngine(t), NATS: "tls://" + c.address,
		Authority: c.authority,
		Users:     func(text string) error { users = text; return nil }}
	if _, err := NewCoordinator(serve); err == nil || !strings.Contains(err.Error(), "does not know this study's users") {
		t.Fatalf("a cluster without the users: %v", err)
	}
	c.start(t, users)
	c.knows(t, "a", "b")
	o, err := NewCoordinator(serve)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	invitations := o.Invitations()
	c.strangers(ctx, t, n, invitations)
	results, errs := make([]*engine.Result, 4), make([]error, 4)
	var roles sync.WaitGroup
	var once sync.Once
	for p, v := range invitations {
		parsed, err := ParseToken(v.Token())
		if err != nil {
			t.Fatal(err)
		}
		j := n.join(t, *parsed)
		j.Step = func(round int, _ string) {
			if round == 2 {
				once.Do(func() { c.start(t, users) })
			}
		}
		roles.Go(func() { results[p], errs[p] = Take(ctx, j) })
	}
	results[3], errs[3] = o.Run(ctx)
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sameCentroids(t, "over a cluster", n.alone(t), results)
}

// A coordinator serves with certificates that it is given: the invitation has the hash of
// their authority's, and the study runs.
func TestGivenCertificate(t *testing.T) {
	c := newCluster(t)
	n := newNetwork(t, newFixture(t, "lloyd", 2, 60, nil))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := NewCoordinator(Serve{Study: n.study, State: n.dirs[2], Listen: n.address, Log: n.log, Engine: newEngine(t),
		Certificate: filepath.Join(c.dir, "chain.pem"), Key: filepath.Join(c.dir, "server.key")})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if want := sha256.Sum256(c.authority); o.Invitations()[0].Pin != want {
		t.Error("the invitation has another authority")
	}
	errs := make([]error, 3)
	var roles sync.WaitGroup
	for p, v := range o.Invitations() {
		roles.Go(func() { _, errs[p] = Take(ctx, n.join(t, v)) })
	}
	_, errs[2] = o.Run(ctx)
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// strangers are refused, by the party's own connection or by the cluster.
func (c *cluster) strangers(ctx context.Context, t *testing.T, n *network, all []Invitation) {
	t.Helper()
	other := newCluster(t)
	for what, x := range map[string]struct {
		want   string
		change func(*Invitation)
	}{
		"another authority":    {"not of the cluster's authority", func(v *Invitation) { v.Authority = other.authority }},
		"another's invitation": {"this is not its invitation", func(v *Invitation) { v.Secret[0] ^= 1 }},
		"another key":          {"does not know this study's users", func(v *Invitation) { v.User, _ = bus.NewUser() }},
	} {
		v := all[0]
		x.change(&v)
		j := n.join(t, v)
		j.State = folder(t)
		if _, err := Take(ctx, j); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v lacks %q", what, err, x.want)
		}
	}
	// Party 1's key at the cluster must not speak for party 2.
	id, err := newIdentity(all[0].Study, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := id.keys()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Dial(ctx, bus.Dialer{Self: protocol.Role(1), Study: all[0].ID, URL: all[0].URL, Key: k.signing,
		Cluster: all[0].cluster()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := conn.Request(short, encode(request{Version: version, Ask: askStudy})); err == nil {
		t.Error("party 1's key was answered as party 2")
	}
}

// A coordinator that moves to another address in the middle of a study goes on there: its
// parties are given new invitations, which have the same secrets and the new address.
func TestCoordinatorMoves(t *testing.T) {
	f := newFixture(t, "sulloyd", 3, 240, method.Settings{"noise": "split", "mechanism": "gaussian", "iterations": "6"})
	n := newNetwork(t, rounded(t, f))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results, errs := make([]*engine.Result, 4), make([]error, 4)
	var before string
	for life := range 2 {
		n.address = "127.0.0.1:" + freePort(t)
		if n.address == before {
			t.Fatal("the same address")
		}
		before = n.address
		living, leave := context.WithCancel(ctx)
		c := n.coordinator(t)
		var roles sync.WaitGroup
		for p, v := range c.Invitations() {
			j := n.join(t, v)
			j.Step = func(round int, _ string) {
				if life == 0 && round == 3 {
					leave() // all roles stop
				}
			}
			roles.Go(func() { results[p], errs[p] = Take(living, j) })
		}
		results[3], errs[3] = c.Run(living)
		roles.Wait()
		c.Close()
		leave()
		if life == 0 && errs[0] == nil {
			t.Fatal("nobody was interrupted")
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sameCentroids(t, "after a move", f.alone(t), results)
}
