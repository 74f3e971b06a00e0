package protocol

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine"
)

// Role is who takes part: a party, numbered from 0, or the [Server].
type Role int

// Server is the coordinator, which holds no records.
const Server Role = engine.Server

// String is the role's name for people, who count from 1: "party 1", "server".
func (r Role) String() string {
	if r == Server {
		return "server"
	}
	return fmt.Sprintf("party %d", int(r)+1)
}
