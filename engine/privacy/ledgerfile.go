package privacy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/filelock"
	"github.com/cohort-engine/cohort/internal/wholefile"
)

var (
	// ErrBudget is wrapped by the refusal of a run that its budget, or what a ledger file has left of
	// one, cannot pay for.
	ErrBudget = errors.New("the budget cannot pay")
	// ErrCorrupt is wrapped by the refusal of a ledger file whose lines are torn, altered or cut off.
	ErrCorrupt = errors.New("the ledger file is damaged")
	// ErrDataset is wrapped by the refusal of a ledger file that belongs to other data.
	ErrDataset = errors.New("the ledger file belongs to another data set")
)

// LedgerFile is a budget for one set of people that several runs, in any processes, spend from: a privacy filter (T11).
// The file only ever grows: a header with the terms, fixed when it is made, a line when a run starts, which pays
// for it in full, and a line when it ends. Lines are chained by hash, written with the file locked, and
// synced to the disk before the run goes on; a run that fails stays paid for. A run that is killed while it writes
// leaves a torn last line, which later runs refuse with how to mend it.
//
// The data are known by a keyed digest of each column that depends on no order of rows or columns: a table that shares
// a column with an earlier one is of the same people. Another table of the same people that shares none
// cannot be told from other people's. Without a Key whoever reads the file has that of the digests, too, and can try
// guesses of a column: it is as secret as the records then.
type LedgerFile struct {
	Path string
	// Key, if not empty, keys the chain and the digests; without it whoever can write the file can write a
	// chain that is whole.
	Key []byte
	// Anchor, if not empty, is what State gave earlier: lines that were cut off since are noticed.
	Anchor string
}

// The bytes that the key of a ledger file may have. A device of random bytes has other ones each time, and no end.
const (
	minKey = 16
	maxKey = 1 << 20
)

// ReadKey reads the key of a ledger file from a file of 16 bytes to 1 MiB; name is what gave its path, for errors.
func ReadKey(name, path string) ([]byte, error) {
	key, err := wholefile.Read(path, maxKey)
	switch {
	case errors.Is(err, wholefile.ErrLarge):
		return nil, fault.Request(name, fmt.Sprintf("%s holds more than %d bytes", path, maxKey),
			"give a file that keeps its bytes, such as 32 of a random device")
	case err != nil:
		return nil, fault.Failed(name, err.Error(), "name a file that can be read", err)
	case len(key) < minKey:
		return nil, fault.Request(name, fmt.Sprintf("%s holds %d bytes", path, len(key)),
			fmt.Sprintf("give a file of at least %d random bytes", minKey))
	}
	return key, nil
}

// Salt is what keys the digests of columns, together with Key: that of the file, or a new one for a new file.
func (f LedgerFile) Salt() (string, error) {
	s, err := f.look()
	if err != nil {
		return "", err
	}
	if s != nil {
		return s.header.Salt, nil
	}
	var b [16]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:]), nil
}

// DigestKey is the key of the columns' digests for a salt.
func (f LedgerFile) DigestKey(salt string) [16]byte {
	h := hmac.New(sha256.New, f.Key)
	io.WriteString(h, "cohort columns "+salt)
	return [16]byte(h.Sum(nil))
}

// update locks the file, hands its state to f and appends what f returns.
func (f LedgerFile) update(change func(*ledgerState) ([]byte, error)) (err error) {
	file, err := f.openLocked()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := file.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("ledger file %s: %w", f.Path, cerr)
		}
	}()
	s, err := f.read(file)
	if err != nil {
		return err
	}
	out, err := change(s)
	if err != nil {
		if s.empty { // leave nothing behind; whoever waits for the lock will look again
			os.Remove(f.Path)
		}
		return err
	}
	if err := appendWhole(file, out); err != nil {
		if s.empty {
			os.Remove(f.Path)
		}
		if named := (*fs.PathError)(nil); errors.As(err, &named) { // it names the file, too
			err = named.Err
		}
		return fmt.Errorf("ledger file %s: %w: free some space, or make it one that can be written", f.Path, err)
	}
	if s.empty { // the name of a new file must last, too
		dir, err := os.Open(filepath.Dir(f.Path))
		if err != nil {
			return fmt.Errorf("ledger file %s: %w", f.Path, err)
		}
		defer dir.Close()
		if err := dir.Sync(); err != nil {
			return fmt.Errorf("ledger file %s: %w", f.Path, err)
		}
	}
	return nil
}

// appendWhole appends to a file, on the disk, or leaves it as it was: a line that a full disk has cut short would be
// in the way of those that follow.
func appendWhole(file *os.File, out []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err = file.Write(out); err != nil {
		return errors.Join(err, file.Truncate(info.Size()))
	}
	return file.Sync()
}

// openLocked opens and locks the file, making it if need be, until it is closed. A file that was
// removed while this process waited for the lock is left for the new one.
func (f LedgerFile) openLocked() (*os.File, error) {
	for {
		file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("ledger file: %w: name one in a folder that can be written", err)
		}
		if err := filelock.Wait(file); err != nil {
			file.Close()
			return nil, fmt.Errorf("ledger file %s: lock: %w", f.Path, err)
		}
		held, err := file.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Stat(f.Path); err == nil && os.SameFile(held, named) {
				return file, nil
			}
		}
		file.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("ledger file: %w", err)
		}
	}
}
