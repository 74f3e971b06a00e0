package study

import (
	"encoding/json"
	"fmt"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Requests of parties to the coordinator, before and after their links: JSON, one answer
// each, and the same answer if they are asked again.
const (
	askStudy  = "study"  // the study file
	askEnrol  = "enrol"  // takes the party's entry
	askRoster = "roster" // the roster, once all have enrolled
	askAgree  = "agree"  // takes the party's signature of the roster
	askAgreed = "agreed" // all signatures, once all have agreed
	askDone   = "done"   // says that the party has all that it needs
	askEnded  = "ended"  // the roles whose programs have ended
)

// request is a party's request.
type request struct {
	Version int    `json:"version"`
	Ask     string `json:"ask"`
	// Part is which part of a long answer is wanted.
	Part  int    `json:"part,omitempty"`
	Entry *Entry `json:"entry,omitempty"`
	// Proof shows that the owner of the entry's key has the party's invitation.
	Proof     string `json:"proof,omitempty"`
	Signature []byte `json:"signature,omitempty"`
}

// answer is the coordinator's.
type answer struct {
	Version int `json:"version"`
	// Wait says that others are missing: so many of so many.
	Wait    bool `json:"wait,omitempty"`
	Here    int  `json:"here,omitempty"`
	Parties int  `json:"parties,omitempty"`
	// Refused says why.
	Refused string `json:"refused,omitempty"`
	// Body has a part of the answer; More says that others follow.
	Body []byte `json:"body,omitempty"`
	More bool   `json:"more,omitempty"`
}

// partBytes is the longest part of an answer.
const partBytes = 128 << 10

// mostAnswer is the longest answer that a party takes.
const mostAnswer = 64 << 20

// cut answers a part of a body.
func cut(body []byte, part int) answer {
	if part < 0 || part > len(body)/partBytes {
		return answer{Refused: "there is no such part"}
	}
	from := part * partBytes
	to := min(from+partBytes, len(body))
	return answer{Body: body[from:to], More: to < len(body)}
}

// encode encodes a request or an answer.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("study: " + err.Error()) // strings and bytes can be encoded
	}
	return b
}

// versionOf says of which version a message is that was refused.
func versionOf(b []byte) string {
	var head struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(b, &head) != nil || head.Version == 0 || head.Version == version {
		return "none of this version"
	}
	return fmt.Sprintf("of version %d, and this program knows version %d", head.Version, version)
}

// parseRequest reads a request of anybody.
func parseRequest(b []byte) (*request, error) {
	r := new(request)
	if err := strict(b, r); err != nil || r.Version != version {
		return nil, fault.Failed("request", "is "+versionOf(b), "use the same version everywhere", err)
	}
	return r, nil
}

// parseAnswer reads an answer, which may come from anybody.
func parseAnswer(b []byte) (*answer, error) {
	a := new(answer)
	if err := strict(b, a); err != nil || a.Version != version {
		return nil, fault.Failed("coordinator", "gave an answer that is "+versionOf(b),
			"use the same version everywhere", err)
	}
	if a.Refused != "" {
		return nil, fault.Failed("coordinator", "refused: "+a.Refused[:min(len(a.Refused), 300)], "ask who runs it",
			nil)
	}
	return a, nil
}
