package protocol

import (
	"strconv"

	"github.com/cohort-engine/cohort/engine"
)

// Role is who takes part: a party, numbered from 0, or the [Server], or one of several.
type Role int

// Server is the coordinator, which holds no records.
const Server Role = engine.Server

// ServerAt is the i-th of several servers, counted from 0; the first is [Server].
func ServerAt(i int) Role { return Server - Role(i) }

// Serves tells whether the role is a server.
func (r Role) Serves() bool { return r <= Server }

// String is the role's name for people, who count from 1: "party 1", "server".
func (r Role) String() string {
	switch {
	case r == Server:
		return "server"
	case r.Serves():
		return "server " + strconv.Itoa(int(Server-r)+1)
	}
	return "party " + strconv.Itoa(int(r)+1)
}
