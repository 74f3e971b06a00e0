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

// Drawers are those who draw the noise of a sum of several parties: the parties, or the
// servers that share sums.
type Drawers struct {
	By NoiseBy
	// All may draw. At least Stay of them take part in a sum; Colluders may pool what they
	// draw with a viewer.
	All, Stay, Colluders int
}

// NewDrawers are those of a run under Proven with a server, whose noise is DefaultNoise's if
// by is empty, and 0 colluders mean 1. It refuses shares of which none is left.
func NewDrawers(by NoiseBy, all, stay, colluders int) (Drawers, error) {
	if by == "" {
		by = DefaultNoise(privacy.Proven, all, stay, colluders, true)
	}
	d := Drawers{by, all, stay, max(colluders, 1)}
	return d, d.Check()
}

// shared tells whether the noise is drawn in shares.
func (d Drawers) shared() bool { return d.By == InShares || d.By == AmongServers }

// Shares is how many draws make up the whole noise where shares are drawn, 0 where a draw
// is the whole.
func (d Drawers) Shares() int {
	if d.shared() {
		return d.Stay - d.Colluders
	}
	return 0
}

// Excess is the variance of the noise of a sum in which all take part, in units of the
// variance that its budget asks for.
func (d Drawers) Excess() float64 {
	switch {
	case d.By == ByEach:
		return float64(d.All)
	case d.shared():
		return float64(d.All) / float64(d.Shares())
	}
	return 1
}

// Known tells the ledger who knows how much of the noise of a sum of those who stay.
func (d Drawers) Known() *privacy.Noise {
	switch {
	case d.By == ByEach:
		return privacy.Shared(d.Stay, 1, 1, privacy.Clients)
	case d.shared():
		return privacy.Shared(d.Stay, d.Shares(), d.Colluders, privacy.Clients, privacy.Server, privacy.Outsider)
	}
	return privacy.DrawnBy(privacy.Server)
}

// Condition says in the ledger what they do. It is empty where the server adds the noise.
func (d Drawers) Condition() string {
	switch d.By {
	case ByEach:
		return fmt.Sprintf("every client adds the whole noise, so the release carries %d times its variance", d.All)
	case InShares:
		if d.Shares() == 1 {
			return "every client adds a share of the noise, each of which is the whole; one of the clients other than the " +
				"viewer keeps its share secret"
		}
		return fmt.Sprintf("every client adds a share of the noise, of which %d make up the whole; "+
			"so many of the clients other than the viewer keep theirs secret", d.Shares())
	case AmongServers:
		whole := fmt.Sprintf("of which any %d make up the whole", d.Shares())
		if d.Shares() == 1 {
			whole = "each of which is the whole"
		}
		return fmt.Sprintf("every one of %d servers adds a share of the noise, %s; at most %d of them pool what they draw "+
			"with a viewer", d.All, whole, d.Colluders)
	}
	return ""
}

// Enter completes the entry of a sum that the parties unmask.
func (d Drawers) Enter(e *privacy.Entry) {
	e.Viewers, e.Noise = []string{privacy.Clients, privacy.Outsider}, d.Known()
	if c := d.Condition(); c != "" {
		e.Conditions = append(e.Conditions, c)
	}
}

// Check refuses shares of which none is left.
func (d Drawers) Check() error {
	switch {
	case !d.shared() || d.Shares() > 0:
		return nil
	case d.By == AmongServers:
		return fault.Request("colluders", fmt.Sprintf("%d of %d servers may collude: no share of the noise is left",
			d.Colluders, d.Stay), "assume fewer, or take more servers")
	}
	return fault.Request("colluders",
		fmt.Sprintf("%d of %d clients that stay may collude: no share of the noise is left", d.Colluders, d.Stay),
		"assume fewer, take more clients, or use --noise local")
}
