package study

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/study/bus"
	"github.com/cohort-engine/cohort/internal/fault"
)

// Invitation is all that a party needs to find its coordinator and be known there: one
// token, to be given to that party alone. It admits one key; whoever has the token
// first takes the place, and the party notices.
type Invitation struct {
	// URLs are where the coordinator listens.
	URL string
	// Pin is the hash of the certificate's authority.
	Pin [32]byte
	// Study is the study's hash and ID its name in subjects.
	Study [32]byte
	ID    string
	// Party is the role that it is for: a party, counted from 0, or a server besides the
	// coordinator.
	Party  int
	Secret [16]byte
	// User, if not nil, is the seed of the party's key at a cluster that is at URL, in
	// place of the coordinator, and Authority what its certificates lead to (nil: one of
	// the party's machine's own authorities); there is no Pin then.
	User, Authority []byte
}

// A token is the prefix and, in base64url, the JSON of a wireInvitation and its check.
const (
	tokenPrefix = "cohort2-"
	checkBytes  = 4
)

// check is what a token ends with, so that one that was not copied whole is not taken for another.
func check(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:checkBytes]
}

// wireInvitation is the JSON within a token.
type wireInvitation struct {
	URL    string `json:"u"`
	Pin    []byte `json:"p"`
	Study  []byte `json:"s"`
	ID     string `json:"i"`
	Party  int    `json:"n"`
	Secret []byte `json:"k"`
	User   []byte `json:"b,omitempty"`
	CA     []byte `json:"c,omitempty"`
}

// Token is the invitation in one word.
func (v *Invitation) Token() string {
	w := wireInvitation{v.URL, v.Pin[:], v.Study[:], v.ID, v.Party + 1, v.Secret[:], v.User, v.Authority}
	b, err := json.Marshal(w)
	if err != nil {
		panic("study: " + err.Error()) // strings and bytes can be encoded
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(b, check(b)...))
}

// cluster is the party's place at a cluster, nil where the coordinator has its own server.
func (v *Invitation) cluster() *bus.Cluster {
	if v.User == nil {
		return nil
	}
	return &bus.Cluster{User: v.User, Authority: v.Authority}
}

// String hides the secret.
func (v Invitation) String() string { return "study.Invitation(redacted)" }

// GoString hides the secret.
func (v Invitation) GoString() string { return v.String() }

// ParseToken reads a token.
func ParseToken(token string) (*Invitation, error) {
	const whole = "give the whole token that cohort serve printed for this party"
	wrong := fault.Request("--invite", "is no invitation of this version", whole)
	text, ok := strings.CutPrefix(strings.TrimSpace(token), tokenPrefix)
	if !ok || len(text) > 1<<14 {
		return nil, wrong
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if end := len(b) - checkBytes; err != nil || end < 0 || !bytes.Equal(check(b[:end]), b[end:]) {
		return nil, fault.Request("--invite", "is damaged: some of it is missing or has changed", whole)
	}
	v, ok := readInvitation(b[:len(b)-checkBytes])
	if !ok {
		return nil, wrong
	}
	return v, nil
}

// readInvitation reads the JSON within a token.
func readInvitation(b []byte) (v *Invitation, ok bool) {
	var w wireInvitation
	if json.Unmarshal(b, &w) != nil || len(w.Pin) != 32 || len(w.Study) != 32 || len(w.Secret) != 16 ||
		!bus.Known(protocol.Role(w.Party-1)) || w.User != nil && len(w.User) == 0 || w.CA != nil && len(w.CA) == 0 {
		return nil, false
	}
	if id, err := hex.DecodeString(w.ID); err != nil || len(id) != 8 {
		return nil, false
	}
	return &Invitation{w.URL, [32]byte(w.Pin), [32]byte(w.Study), w.ID, w.Party - 1, [16]byte(w.Secret), w.User,
		w.CA}, true
}

// proof shows that the owner of a key knows an invitation's secret, and cannot be used
// for another key.
func proof(secret [16]byte, study [32]byte, key string) string {
	mac := hmac.New(sha256.New, secret[:])
	mac.Write([]byte("cohort invitation\x00"))
	mac.Write(study[:])
	mac.Write([]byte(key))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
