package protocol

import (
	"fmt"

	"github.com/cohort-engine/cohort/engine/privacy"
	"github.com/cohort-engine/cohort/internal/fault"
)

// NoiseBy is who adds the noise of the sums of several parties.
type NoiseBy string

// The places of noise.
const (
	// ByServer adds the whole noise once, to masked values.
	ByServer NoiseBy = "server"
	// ByEach lets each party add the whole noise.
	ByEach NoiseBy = "local"
	// InShares lets each party add a share; the shares of all parties but those that
	// may collude make up the whole noise (Thesis-H §7.3.3; THEOREMS.md T10).
	InShares NoiseBy = "split"
	// AmongServers lets each of several servers add a share; the shares of all servers but
	// those that may collude make up the whole noise (Thesis-H §7.3.2; THEOREMS.md T10).
	AmongServers NoiseBy = "servers"
)

// DefaultNoise is who adds the noise where nothing else is asked for: under Proven no
// single role may know it, so each of several parties adds a share, or the whole
// where too few stay to the end for one to be left. The papers let the server add it, or each
// party where there is no server.
func DefaultNoise(c privacy.Calibration, parties, stay, colluders int, server bool) NoiseBy {
	switch {
	case c == privacy.Proven && parties > 1 && stay > max(colluders, 1):
		return InShares
	case c == privacy.Proven && parties > 1 || !server:
		return ByEach
	}
	return ByServer
}

// Makers are those who draw the noise.
func (n NoiseBy) Makers() Makers {
	switch n {
	case ByEach:
		return EachWhole
	case InShares:
		return EachShare
	case AmongServers:
		return ServerShares
	}
	return ServerAlone
}

// shared tells whether the noise is drawn in shares: by the parties, or by the servers,
// which are then counted in place of the parties in the functions below.
func (n NoiseBy) shared() bool { return n == InShares || n == AmongServers }

// Shares is how many of the parties' draws make up the whole noise where they draw
// shares, 0 where a draw is the whole.
func (n NoiseBy) Shares(parties, colluders int) int {
	if n.shared() {
		return parties - colluders
	}
	return 0
}

// Excess is the variance of the noise of a sum in units of the variance that its
// budget asks for.
func (n NoiseBy) Excess(parties, colluders int) float64 {
	switch n {
	case ByEach:
		return float64(parties)
	case InShares, AmongServers:
		return float64(parties) / float64(parties-colluders)
	}
	return 1
}

// Known tells the ledger who knows how much of the noise.
func (n NoiseBy) Known(parties, colluders int) *privacy.Noise {
	switch n {
	case ByEach:
		return privacy.Shared(parties, 1, 1, privacy.Clients)
	case InShares, AmongServers:
		return privacy.Shared(parties, parties-colluders, colluders, privacy.Clients, privacy.Server, privacy.Outsider)
	}
	return privacy.DrawnBy(privacy.Server)
}

// Condition says in the ledger what the parties do; parties of the run, of which
// stay take part to the end. It is empty where the server adds the noise.
func (n NoiseBy) Condition(parties, stay, colluders int) string {
	switch n {
	case ByEach:
		return fmt.Sprintf("every client adds the whole noise, so the release carries %d times its variance", parties)
	case InShares:
		return fmt.Sprintf("every client adds a share of the noise, of which %d make up the whole; "+
			"so many of the clients other than the viewer keep theirs secret", stay-colluders)
	case AmongServers:
		return fmt.Sprintf("every one of %d servers adds a share of the noise, of which any %d make up the whole; "+
			"at most "+
			"%d of "+
			"them pool what they draw with a viewer", parties, stay-colluders, colluders)
	}
	return ""
}

// Check refuses shares of which none is left: stay is the number of parties that take
// part to the end.
func (n NoiseBy) Check(stay, colluders int) error {
	if n == AmongServers && stay <= colluders {
		return fault.Request("colluders", fmt.Sprintf("%d of %d servers may collude: no share of the noise is left",
			colluders, stay),
			"assume fewer, or take more servers")
	}
	if n == InShares && stay <= colluders {
		return fault.Request("colluders",
			fmt.Sprintf("%d of %d clients that stay may collude: no share of the noise is left", colluders, stay),
			"assume fewer, take more clients, or use --noise local")
	}
	return nil
}
