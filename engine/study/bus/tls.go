package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	"github.com/cohort-engine/cohort/internal/fault"
)

// errPin says that a server's certificate is not the one of the invitation.
var errPin = errors.New("the certificate is another")

// NewCertificate makes an authority for one study and a server's certificate of it, in
// PEM. The authority's own key is thrown away.
func NewCertificate(now time.Time) (chain, key []byte, err error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial := func() *big.Int {
		b := make([]byte, 16)
		rand.Read(b) // never fails since Go 1.24
		return new(big.Int).SetBytes(b)
	}
	from, to := now.Add(-24*time.Hour), now.AddDate(5, 0, 0)
	authority := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "cohort study authority"},
		NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "cohort coordinator"},
		NotBefore: from, NotAfter: to,
		DNSNames: []string{"cohort"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, serverKey.Public(), authorityKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return nil, nil, err
	}
	chain = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})...)
	return chain, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// Pin is what invitations have of a chain: the hash of its last certificate.
func Pin(chain tls.Certificate) ([32]byte, error) {
	if len(chain.Certificate) == 0 {
		return [32]byte{}, fault.Request("certificate", "has none",
			"give a PEM file with the server's certificate and its authority's")
	}
	return sha256.Sum256(chain.Certificate[len(chain.Certificate)-1]), nil
}

// pinned accepts a chain that leads to the certificate with the hash, and no other.
func pinned(pin [32]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true,
		// The system's authorities and host names say nothing here: the chain is
		// checked below, down to the hash that came with the invitation.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errPin
			}
			last := s.PeerCertificates[len(s.PeerCertificates)-1]
			if sha256.Sum256(last.Raw) != pin {
				return errPin
			}
			roots := x509.NewCertPool()
			roots.AddCert(last)
			// This machine's clock may be slow: a certificate that is not valid yet is.
			now := time.Now()
			for _, c := range s.PeerCertificates {
				if now.Before(c.NotBefore) {
					now = c.NotBefore
				}
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
			if err != nil {
				return errPin
			}
			return nil
		},
	}
}
