// Package journal keeps what a role of a study must not forget: an append-only file
// whose records are chained by hash, written by its owner alone (mode 0600) and
// forced to the disk by [File.Sync] before what they say may have an effect outside.
//
// A process that is killed while it writes leaves a torn last record, which [Open]
// cuts off: it was not synced, so nothing left because of it. Any other damage is
// refused: a role that went on from a shortened past could release something twice.
package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cohort-engine/cohort/internal/fault"
	"github.com/cohort-engine/cohort/internal/filelock"
)

// ErrDamaged is wrapped by the refusal of a journal that was altered.
var ErrDamaged = errors.New("the journal is damaged")

const (
	magic     = "cohort journal 1\n"
	headBytes = 8 // length, kind and a check of both, so that a longer length is no torn record
	linkBytes = 16
	// maxRecord is the longest payload.
	maxRecord = 1<<31 - 1
	// gathered is how many bytes are written to the file at once; what is as long goes there
	// by itself.
	gathered = 1 << 14
)

// Record is an entry of a journal.
type Record struct {
	Kind byte
	// Offset and Length say where the payload is.
	Offset int64
	Length int
}

// File is a journal. Its methods are for one goroutine, but ReadAt.
type File struct {
	file    *os.File
	path    string
	w       *bufio.Writer
	chain   [linkBytes]byte
	hash    hash.Hash // scratch, as is room
	room    [sha256.Size + headBytes]byte
	end     int64
	records []Record
	dirty   bool
	err     error // of a write: nothing more is written
	crash   func(point string)
}

// Open opens or makes the journal at path and reads all its records. The file is
// locked until Close: a role runs once.
func Open(path string) (*File, error) { return OpenToCrash(path, nil) }

// OpenToCrash is Open for tests that kill the process: crash, if not nil, is called before,
// within and after each sync, from the one that makes the file on.
func OpenToCrash(path string, crash func(point string)) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fault.File(path, "name a folder that can be written", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.File(path, "name a file that can be written", err)
	}
	if err := hold(file); err != nil {
		file.Close()
		return nil, fault.Failed(path, "is in use by another process", "end that one first", err)
	}
	j := &File{file: file, path: path, w: bufio.NewWriterSize(file, gathered), hash: sha256.New(), crash: crash}
	if j.crash == nil {
		j.crash = func(string) {}
	}
	if err := j.load(); err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

// hold locks the file. Who looks whether a role has it ([Check]) shares it for an instant, which is waited for.
func hold(file *os.File) error {
	err := filelock.Try(file)
	for tries := 0; err != nil && tries < 20; tries++ {
		time.Sleep(5 * time.Millisecond)
		err = filelock.Try(file)
	}
	return err
}

// load reads the records, cuts off a torn one, and stands at the end.
func (j *File) load() error {
	info, err := j.file.Stat()
	if err != nil {
		return fault.File(j.path, "check the disk", err)
	}
	size := info.Size()
	if size < int64(len(magic)) {
		return j.create(size)
	}
	if err := j.scan(size); err != nil {
		return err
	}
	if j.end < size {
		if err := j.file.Truncate(j.end); err != nil {
			return fault.File(j.path, "check the disk", err)
		}
		j.dirty = true
	}
	_, err = j.file.Seek(j.end, io.SeekStart)
	if err != nil {
		return fault.File(j.path, "check the disk", err)
	}
	return j.Sync()
}

// scan reads the records of a file of a size, up to its end or to a torn one.
func (j *File) scan(size int64) error {
	r := bufio.NewReaderSize(j.file, 1<<16)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		return fault.Failed(j.path, "is no journal of this version",
			"name the folder that the study was begun with", ErrDamaged)
	}
	j.end = int64(len(magic))
	for whole := true; whole && j.end < size; {
		var err error
		if whole, err = j.next(r, size); err != nil {
			return err
		}
	}
	return nil
}

// Checked is what a journal is found to be.
type Checked struct {
	Records int
	// Head is the hash of the last record, which stands for all.
	Head [linkBytes]byte
	// Torn is how many bytes follow that record: of one that was cut off or, if a role has the journal
	// open (Written), of one that it has not written to its end.
	Torn    int64
	Written bool
}

// Check reads the journal at path to its end, and changes nothing: it may be one that a role
// writes meanwhile, or somebody else's.
func Check(path string) (*Checked, error) {
	c, err := check(path)
	if err != nil || c.Torn == 0 || c.Written {
		return c, err
	}
	return check(path) // the role may have written on and ended in between
}

func check(path string) (*Checked, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.File(path, "name a file that can be read", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fault.File(path, "check the disk", err)
	}
	j := &File{file: file, path: path, hash: sha256.New()}
	if err := j.scan(info.Size()); err != nil {
		return nil, err
	}
	c := &Checked{Records: len(j.records), Head: j.chain, Torn: info.Size() - j.end}
	c.Written = c.Torn > 0 && filelock.Held(file)
	return c, nil
}

// create begins a journal, also where the first write was cut short.
func (j *File) create(size int64) error {
	begun := make([]byte, size)
	if _, err := j.file.ReadAt(begun, 0); err != nil || string(begun) != magic[:size] {
		return fault.Failed(j.path, "is no journal", "name a new folder", ErrDamaged)
	}
	if _, err := j.file.WriteAt([]byte(magic), 0); err != nil {
		return fault.File(j.path, "check the disk", err)
	}
	j.end = int64(len(magic))
	if _, err := j.file.Seek(j.end, io.SeekStart); err != nil {
		return fault.File(j.path, "check the disk", err)
	}
	j.dirty = true
	if err := j.Sync(); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(j.path))
	if err != nil {
		return fault.File(j.path, "check the disk", err)
	}
	defer folder.Close()
	_ = folder.Sync() // not every file system has it
	return nil
}

// next reads a record. whole is false for a torn one, which ends the file.
func (j *File) next(r *bufio.Reader, size int64) (whole bool, err error) {
	left := size - j.end
	if left < headBytes {
		return false, nil
	}
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return false, j.shorter(err)
	}
	if head == ([headBytes]byte{}) { // room that was never written
		return false, j.zeros(r)
	}
	length := int64(binary.LittleEndian.Uint32(head[:]))
	if !bytes.Equal(head[:], j.head(int(length), head[4])) || length > maxRecord {
		return false, j.damaged()
	}
	if left < headBytes+length+linkBytes {
		return false, nil
	}
	j.begin(head[:])
	if _, err := io.CopyN(j.hash, r, length); err != nil {
		return false, j.shorter(err)
	}
	var link [linkBytes]byte
	if _, err := io.ReadFull(r, link[:]); err != nil {
		return false, j.shorter(err)
	}
	if link != j.link() {
		return false, j.damaged()
	}
	j.chain = link
	j.records = append(j.records, Record{Kind: head[4], Offset: j.end + headBytes, Length: int(length)})
	j.end += headBytes + length + linkBytes
	return true, nil
}

// shorter is what an error of a read says: nothing where the file ends before its size, since a role that
// begins again has cut off a torn record meanwhile.
func (j *File) shorter(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return fault.File(j.path, "check the disk", err)
}

// head is how the next record begins, valid until the next call.
func (j *File) head(length int, kind byte) []byte {
	head := j.room[sha256.Size:]
	binary.LittleEndian.PutUint32(head, uint32(length))
	head[4] = kind
	j.hash.Reset()
	j.hash.Write([]byte("head"))
	j.hash.Write(j.chain[:])
	j.hash.Write(head[:5])
	copy(head[5:], j.hash.Sum(j.room[:0]))
	return head
}

// begin begins the hash of a record with its head, and link ends it.
func (j *File) begin(head []byte) {
	j.hash.Reset()
	j.hash.Write(j.chain[:])
	j.hash.Write(head)
}

func (j *File) link() [linkBytes]byte { return [linkBytes]byte(j.hash.Sum(j.room[:0])) }

// zeros checks that nothing but zeros follows.
func (j *File) zeros(r *bufio.Reader) error {
	for {
		b, err := r.ReadByte()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fault.File(j.path, "check the disk", err)
		case b != 0:
			return j.damaged()
		}
	}
}

func (j *File) damaged() error {
	return fault.Failed(j.path, fmt.Sprintf("was altered at byte %d", j.end),
		"restore it from a copy, or leave this study: going on could release something twice", ErrDamaged)
}

// Records lists what the journal held when it was opened.
func (j *File) Records() []Record { return j.records }

// Append writes a record whose payload is parts one after the other, and returns it.
// It is durable after the next Sync.
func (j *File) Append(kind byte, parts ...[]byte) (Record, error) {
	if j.err != nil {
		return Record{}, j.err
	}
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	if length > maxRecord {
		return Record{}, fault.Range("journal record", length, fmt.Sprintf("at most %d bytes", maxRecord))
	}
	head := j.head(length, kind)
	j.begin(head)
	_, err := j.w.Write(head)
	for _, p := range parts {
		j.hash.Write(p)
		if err == nil && len(p) >= gathered {
			err = j.w.Flush()
		}
		if err == nil {
			_, err = j.w.Write(p) // not copied if it is long
		}
	}
	j.chain, j.dirty = j.link(), true
	if err == nil {
		_, err = j.w.Write(j.chain[:])
	}
	if err != nil {
		return Record{}, j.failed(err)
	}
	r := Record{Kind: kind, Offset: j.end + headBytes, Length: length}
	j.end += headBytes + int64(length) + linkBytes
	return r, nil
}

// failed remembers that a write failed: what it left behind is not appended to.
func (j *File) failed(err error) error {
	j.err = fault.File(j.path,
		"make room on the disk and start the same command again: nothing left that is not in the journal", err)
	return j.err
}

// Sync forces what was appended to the disk.
func (j *File) Sync() error {
	if j.err != nil || !j.dirty {
		return j.err
	}
	j.crash("before sync")
	if err := j.w.Flush(); err != nil {
		return j.failed(err)
	}
	j.crash("between write and sync")
	if err := j.file.Sync(); err != nil {
		return j.failed(err)
	}
	j.dirty = false
	j.crash("after sync")
	return nil
}

// Read returns the payload of a record that was flushed. It may be called from
// several goroutines.
func (j *File) Read(r Record) ([]byte, error) {
	b := make([]byte, r.Length)
	if _, err := j.file.ReadAt(b, r.Offset); err != nil {
		return nil, fault.File(j.path, "check the disk", err)
	}
	return b, nil
}

// Flush hands what was appended to the operating system, so that Read finds it.
func (j *File) Flush() error {
	if j.err != nil {
		return j.err
	}
	if err := j.w.Flush(); err != nil {
		return j.failed(err)
	}
	return nil
}

// Abandon closes the file and writes no more, as the death of the process does.
func (j *File) Abandon() { j.file.Close() }

// Close syncs and closes the file.
func (j *File) Close() error {
	err := j.Sync()
	return errors.Join(err, j.file.Close())
}
