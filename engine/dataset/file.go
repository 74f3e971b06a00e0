package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cohort-engine/cohort/internal/fault"
)

// file is a file, or a stream, that is read from its beginning.
type file struct {
	name     string
	path     string                        // empty for a stream
	open     func() (io.ReadCloser, error) // the bytes as they are stored
	once     bool                          // open can be called once
	size     int64                         // bytes stored, or 0 if unknown
	gzip     bool
	identity string  // of the file as it is now; empty for a stream
	kept     *reader // of a stream whose beginning has been looked at
}

// openFile looks at the path of a file.
func openFile(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.File(path, "check the path", err)
	}
	f := &file{name: path, path: path, size: info.Size(), once: !info.Mode().IsRegular()}
	if !f.once {
		f.identity = FileIdentity(path, info)
	}
	f.open = func() (io.ReadCloser, error) {
		r, err := os.Open(path)
		if err != nil {
			return nil, fault.File(path, "check the path", err)
		}
		if f.once {
			return r, nil
		}
		if err := Same(path, r, info); err != nil {
			r.Close()
			return nil, err
		}
		return &steady{r, path, info}, nil
	}
	return f, nil
}

// Same refuses an open file that is not, or is no more, what it was when info was asked for: each pass over the records
// of a run is over the same ones. What is not the file's content may change.
func Same(path string, f *os.File, info fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return fault.File(path, "check the path", err)
	}
	if os.SameFile(info, now) && info.Size() == now.Size() && info.ModTime().Equal(now.ModTime()) {
		return nil
	}
	return fault.Failed(path, "the file was changed while it was read", "run again once nothing writes to it", nil)
}

// steady is an open file that is the same at its end as before it was opened.
type steady struct {
	file *os.File
	path string
	info fs.FileInfo
}

// Close implements io.Closer.
func (s *steady) Close() error { return s.file.Close() }

// Read implements io.Reader.
func (s *steady) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	if err == io.EOF {
		if e := Same(s.path, s.file, s.info); e != nil {
			err = e
		}
	}
	return n, err
}

// until opens a stream, whose next byte may never come, for reading until ctx ends. What is being waited for then is
// left to itself.
func until(ctx context.Context, open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		opened := make(chan error, 1)
		stop := context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
		go func() {
			defer stop()
			src, err := open()
			opened <- err
			if err == nil { // a buffer as large as this is faster than a file's own way to write itself
				_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{src}, make([]byte, 1<<20))
				w.CloseWithError(err)
				src.Close()
			}
		}()
		select {
		case err := <-opened:
			return r, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// FileIdentity tells a file, as it is now, from others: by its path, size and time of change, and by the time that the
// system notes of each change where it does, since any program may set the former.
func FileIdentity(path string, info fs.FileInfo) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return fmt.Sprintf("%s %d %d %d", path, info.Size(), info.ModTime().UnixNano(), statusTime(path))
}

// stream makes a file of a reader, which is read once.
func stream(name string, r io.Reader) *file {
	return &file{name: name, once: true, open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
}

// reader reads a file from its beginning, decompressed and in UTF-8.
func (f *file) reader() (*reader, error) {
	if r := f.kept; r != nil {
		f.kept = nil
		return r, nil
	}
	raw, err := f.open()
	if err != nil {
		return nil, err
	}
	r := &reader{src: raw, closer: raw}
	head, err := r.peek(2)
	if err != nil && err != io.EOF {
		r.Close()
		return nil, readFault(f.name, 0, err)
	}
	if bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(&reader{src: raw, head: r.head})
		if err != nil {
			r.Close()
			return nil, readFault(f.name, 0, err)
		}
		f.gzip = true
		r = &reader{src: z, closer: raw}
		if _, err = r.peek(2); err != nil && err != io.EOF {
			r.Close()
			return nil, readFault(f.name, 1, err)
		}
	}
	head, _ = r.peek(4)
	if text := utf16Text(&reader{src: r.src, head: r.head}, head); text != nil {
		r = &reader{src: text, closer: raw}
	}
	return r, nil
}

// keep ends looking at the beginning of a file: a stream is kept for the pass over
// it.
func (f *file) keep(r *reader) {
	if f.once {
		r.at = 0
		f.kept = r
		return
	}
	r.Close()
}

// reader is a stream whose beginning can be looked at before it is read.
type reader struct {
	src    io.Reader
	closer io.Closer
	head   []byte // read from src
	at     int    // read from head
	err    error  // what src ended with
}

// peek returns the first n bytes of the stream, or those that there are and the
// error that ends them. It comes before the first Read.
func (r *reader) peek(n int) ([]byte, error) {
	for len(r.head) < n && r.err == nil {
		if cap(r.head) < n {
			r.head = append(make([]byte, 0, n), r.head...)
		}
		var m int
		m, r.err = r.src.Read(r.head[len(r.head):n])
		r.head = r.head[:len(r.head)+m]
	}
	if len(r.head) < n {
		return r.head, r.err
	}
	return r.head[:n], nil
}

// Read reads on.
func (r *reader) Read(p []byte) (int, error) {
	if r.at < len(r.head) {
		n := copy(p, r.head[r.at:])
		r.at += n
		return n, nil
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.src.Read(p)
}

// discard leaves out the next n bytes.
func (r *reader) discard(n int) error {
	_, err := io.CopyN(io.Discard, r, int64(n))
	return unexpected(err)
}

// Close closes the file.
func (r *reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// unexpected turns a clean end of file, where more was promised, into
// io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
