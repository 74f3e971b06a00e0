package bus

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Cluster is a NATS cluster that somebody else runs: a role is one of its users, by an
// nkey, and its permissions are of that user. It carries frames as the coordinator's own
// server does, and has no part in who enrols: it can lose and delay messages.
type Cluster struct {
	// User is the seed of the role's key there.
	User []byte
	// Authority is the certificate, in DER, that those of the cluster's servers lead to;
	// nil for one of the machine's own authorities.
	Authority []byte
}

// String hides the seed.
func (Cluster) String() string { return "bus.Cluster(redacted)" }

// GoString hides the seed.
func (c Cluster) GoString() string { return c.String() }

// NewUser draws the seed of a role's key.
func NewUser() ([]byte, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	return pair.Seed()
}

// Authority reads the first certificate of a PEM file.
func Authority(text []byte) ([]byte, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fault.Request("--nats-ca", "has no certificate", "give the PEM file of the cluster's authority")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return nil, fault.Request("--nats-ca", err.Error(), "give the PEM file of the cluster's authority")
	}
	return block.Bytes, nil
}

// options are those of a connection.
func (c *Cluster) options() ([]nats.Option, error) {
	pair, err := nkeys.FromSeed(c.User)
	if err != nil {
		return nil, errors.New("bus: no key for the cluster")
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true}
	if c.Authority != nil {
		authority, err := x509.ParseCertificate(c.Authority)
		if err != nil {
			return nil, errors.New("bus: no certificate of the cluster's authority")
		}
		secure.RootCAs = x509.NewCertPool()
		secure.RootCAs.AddCert(authority)
	}
	return []nats.Option{nats.Nkey(public, pair.Sign), nats.Secure(secure)}, nil
}

// refused says why there is no connection.
func (c *Cluster) refused(url string, err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case final(err):
		return fault.Failed("connection to "+url, "the cluster does not know this study's users",
			"have the file of --nats-users included as it says there, and reloaded, then start the same command again", err)
	case errors.As(err, &unknown), errors.As(err, &name):
		return fault.Failed("connection to "+url, "its certificate is not of the cluster's authority: "+err.Error(),
			"check the address, and --nats-ca of the coordinator", err)
	}
	return fault.Failed("connection to "+url, err.Error(),
		"check the address and the network, and that the cluster runs with TLS", err)
}

// Users is the part of a cluster's configuration that lets the roles of a study in, each
// with its key. It is for an account of the study's own: a second authorization of the file that includes it
// would take the place of the cluster's, whose users would be locked out.
func Users(study string, roles []protocol.Role, seeds [][]byte) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Users of cohort study %s, for an account in the configuration of every server of the cluster:\n"+
		"#   accounts { cohort { include \"nats-users.conf\" } }\n", study)
	b.WriteString("users = [\n")
	for i, seed := range seeds {
		pair, err := nkeys.FromSeed(seed)
		if err != nil {
			return "", err
		}
		public, err := pair.PublicKey()
		if err != nil {
			return "", err
		}
		publish, subscribe := subjects(study, roles[i])
		fmt.Fprintf(&b, "  { nkey: %s, permissions: { publish: { allow: [%s] }, subscribe: { allow: [%s] } } }\n",
			public, quoted(publish), quoted(subscribe))
	}
	b.WriteString("]\n")
	return b.String(), nil
}

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }
