package cohort

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/filelock"
	"github.com/cohort-engine/cohort/internal/secret"
)

// pending is the root of a run's randomness in a file beside the ledger file, from before the run is paid for until
// its result has been delivered. A run that was interrupted is done again from it, to the same bits, without
// another charge. It is bound to the plan and to the records: the same noise on other records would show how they
// differ.
type pending struct {
	file  *os.File
	state pendingState
	found bool // by this run, of an earlier one
}

type pendingState struct {
	Cohort string `json:"cohort"` // pendingVersion
	// Plan is a digest of what was asked for and planned, Data a keyed one of the records.
	Plan string `json:"plan"`
	Data string `json:"data"`
	Root string `json:"root"`
}

const pendingVersion = "pending 1"

// Unfinished tells whether results of runs that were paid for from a ledger file wait to be delivered.
func Unfinished(ledger string) bool {
	found, err := filepath.Glob(escapeGlob.Replace(ledger) + ".*.pending")
	return err == nil && len(found) > 0
}

var escapeGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// root is the run's.
func (p *pending) root() (secret.Root, error) {
	b, err := hex.DecodeString(p.state.Root)
	if err != nil || len(b) != 32 {
		return secret.Root{}, errors.New("no root")
	}
	return secret.Of([32]byte(b)), nil
}

// mark names the root in the ledger file without telling it.
func (p *pending) mark() string {
	h := sha256.Sum256([]byte("cohort pending " + p.state.Root))
	return hex.EncodeToString(h[:8])
}

// openPending finds the file of a plan on such records beside the ledger file, or makes it with a fresh root. The
// file stays locked against other processes.
func openPending(ledger, plan, data string) (p *pending, err error) {
	path := pendingPath(ledger, plan)
	what := "state file " + path
	f, err := lockPending(what, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := f.Chmod(0o600); err != nil {
		return nil, fault.Failed(what, err.Error(), "", err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fault.Failed(what, err.Error(), "", err)
	}
	p = &pending{file: f}
	if len(bytes.Trim(b, "\x00")) == 0 { // new, or of a run that was killed while it erased what was delivered
		key := secret.New().Key()
		p.state = pendingState{pendingVersion, plan, data, hex.EncodeToString(key[:])}
		return p, p.write()
	}
	remove := "give the run that it is of, or remove the file: what was paid for it is then lost"
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p.state); err != nil || p.state.Cohort != pendingVersion {
		return nil, fault.Request(what, "is damaged, or of another version", remove)
	}
	if _, err := p.root(); err != nil {
		return nil, fault.Request(what, "is damaged", remove)
	}
	switch {
	case p.state.Plan != plan:
		return nil, fault.Request(what, "belongs to another plan", remove)
	case p.state.Data != data:
		return nil, fault.Request(what, "belongs to other records", remove)
	}
	p.found = true
	return p, nil
}

// lockPending opens or makes the file, locked. One that was erased before it was locked is left for a new one.
func lockPending(what, path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fault.Failed(what, err.Error(), "make its folder one that can be written to", err)
		}
		if err := filelock.Try(f); err != nil {
			f.Close()
			return nil, fault.Failed(what, "the same run is under way, here or in another process", "wait for it to end", err)
		}
		held, err := f.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Stat(path); err == nil && os.SameFile(held, named) {
				return f, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Failed(what, err.Error(), "", err)
		}
	}
}

// pendingPath is where the root of a plan waits.
func pendingPath(ledger, plan string) string { return ledger + "." + plan[:16] + ".pending" }

// waits tells whether the root of a plan does.
func waits(ledger, plan string) bool {
	_, err := os.Stat(pendingPath(ledger, plan))
	return err == nil
}

// write puts the state on the disk.
func (p *pending) write() error {
	b, err := json.Marshal(p.state)
	if err == nil {
		_, err = p.file.WriteAt(append(b, '\n'), 0)
	}
	if err = errors.Join(err, p.file.Sync()); err != nil {
		p.erase()
		if full := (*fs.PathError)(nil); errors.As(err, &full) { // it names the file, too
			err = full.Err
		}
		return fault.Failed("state file "+p.file.Name(), err.Error(), "free some space", err)
	}
	return nil
}

// erase overwrites and removes the file.
func (p *pending) erase() error {
	info, err := p.file.Stat()
	if err == nil {
		_, err = p.file.WriteAt(make([]byte, info.Size()), 0)
	}
	return errors.Join(err, p.file.Sync(), os.Remove(p.file.Name()), p.file.Close())
}

// planDigest binds a request and its plan: the numbers of a run do not follow from its releases alone.
func planDigest(key [16]byte, request string, o *engine.Outline) (string, error) {
	planned := *o
	planned.PublicSeed = "" // drawn anew for each plan
	b, err := json.Marshal(planned)
	if err != nil {
		return "", fmt.Errorf("plan: %w", err)
	}
	h := hmac.New(sha256.New, key[:])
	fmt.Fprintf(h, "plan %s %d %s", engine.Version, len(request), request)
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)), nil
}
