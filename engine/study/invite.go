package study

import (
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

const tokenPrefix = "cohort1-"

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
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
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
	wrong := fault.Request("--invite", "is no invitation", "give the whole token that cohort serve printed for this party")
	text, ok := strings.CutPrefix(strings.TrimSpace(token), tokenPrefix)
	if !ok || len(text) > 1<<14 {
		return nil, wrong
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, wrong
	}
	var w wireInvitation
	if json.Unmarshal(b, &w) != nil || len(w.Pin) != 32 || len(w.Study) != 32 || len(w.Secret) != 16 ||
		!bus.Known(protocol.Role(w.Party-1)) {
		return nil, wrong
	}
	if id, err := hex.DecodeString(w.ID); err != nil || len(id) != 8 {
		return nil, wrong
	}
	return &Invitation{w.URL, [32]byte(w.Pin), [32]byte(w.Study), w.ID, w.Party - 1, [16]byte(w.Secret), w.User, w.CA}, nil
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
