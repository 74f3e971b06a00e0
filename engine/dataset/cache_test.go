package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// watched calls at before the chunk of that number, and counts the chunks that are
// decoded.
type watched struct {
	Source
	at      func(chunk int) error
	decoded *int
}

func (w watched) Chunks(ctx context.Context, yield func(Chunk) error) error {
	i := 0
	return w.Source.Chunks(ctx, func(c Chunk) error {
		if err := w.at(i); err != nil {
			return err
		}
		i++
		return yield(countedChunk{c, w.decoded})
	})
}

type countedChunk struct {
	Chunk
	decoded *int
}

func (c countedChunk) Decode(b *Block) error {
	*c.decoded++
	return c.Chunk.Decode(b)
}

// rowsTime is another time of change of a file.
var rowsTime = time.Unix(1e9, 0)

// caching prepares one file of records again and again, some of which lack a value.
type caching struct {
	t      *testing.T
	path   string
	bounds *Bounds // nil: the data's own, found in a pass before
}

// newCaching writes the file.
func newCaching(t *testing.T, bounds *Bounds) *caching {
	var text strings.Builder
	text.WriteString("# two\nx,y,class,key\n")
	rows := randomTable(3000, 2)
	for i := range rows.N {
		if i%100 == 50 {
			text.WriteString(",1,a,0\n")
		}
		fmt.Fprintf(&text, "%v,%v,%c,%d\n", rows.Row(i)[0], rows.Row(i)[1], 'a'+i*i%5, i)
	}
	c := &caching{t, filepath.Join(t.TempDir(), "a.csv"), bounds}
	if err := os.WriteFile(c.path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// prepare prepares the file in a folder, calls at before every chunk, and counts the chunks
// that it decoded.
func (c *caching) prepare(dir string, at func(int) error) (*Prepared, int, error) {
	ctx := context.Background()
	read := ReadOptions{LabelColumn: "class", Missing: DropRow, Workers: 1, chunkBytes: 4000}
	s, err := OpenSource(ctx, c.path, read)
	if err != nil {
		c.t.Fatal(err)
	}
	decoded := 0
	if at == nil {
		at = func(int) error { return nil }
	}
	key := [16]byte{7}
	p, err := Prepare(ctx, watched{s, at, &decoded},
		PrepareOptions{Read: read, Bounds: c.bounds, Cache: dir, DigestKey: &key, noteBytes: 2000})
	return p, decoded, err
}

// check prepares the file in a folder: it is what was wanted, and so many chunks were decoded.
func (c *caching) check(what, dir string, want *Prepared, least, most int) {
	c.t.Helper()
	p, decoded, err := c.prepare(dir, nil)
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	defer p.Close()
	if decoded < least || decoded > most {
		c.t.Errorf("%s: decoded %d chunks, want %d to %d", what, decoded, least, most)
	}
	if !p.Points.Mapped {
		c.t.Errorf("%s: the points are in memory", what)
	}
	if !slices.Equal(p.Points.Data, want.Points.Data) || p.Points.N != 3000 ||
		!slices.Equal(p.Digests, want.Digests) || p.Clamped != want.Clamped ||
		p.Bounds.FromData != (c.bounds == nil) {
		c.t.Errorf("%s: the points differ", what)
	}
	a, b := p.Table, want.Table
	if !slices.Equal(a.Labels, b.Labels) || !slices.Equal(a.Report.Dropped, b.Report.Dropped) ||
		a.Report.Comments != b.Report.Comments || !slices.Equal(a.Report.IDLike, b.Report.IDLike) {
		c.t.Errorf("%s: the table is %v and %+v, want %+v", what, a.N, a.Report, b.Report)
	}
}

// TestCacheResumes interrupts a preparation with an error, and by taking a copy of
// the folder at some moment, as a crash would leave it: the next one decodes the rest
// only and ends with the same points, labels and report.
func TestCacheResumes(t *testing.T) {
	broken := errors.New("the cable is out")
	for _, bounds := range []*Bounds{nil, {Lo: []float64{-2, -2, 0}, Hi: []float64{2, 2, 4000}}} {
		c := newCaching(t, bounds)
		want, perPass, err := c.prepare("", nil)
		if err != nil {
			t.Fatal(err)
		}
		passes := 1
		if bounds == nil {
			passes = 2
		}
		dir, copied := t.TempDir(), t.TempDir()
		seen := 0
		_, _, err = c.prepare(dir, func(chunk int) error {
			if chunk == 0 {
				seen++
			}
			if seen == passes && chunk == perPass/2 {
				if err := os.CopyFS(filepath.Join(copied, "c"), os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
			}
			if seen == passes && chunk == perPass/2+3 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) {
			t.Fatalf("error is %v", err)
		}
		c.check("after an error", dir, want, perPass-perPass/2-3, perPass-perPass/2-3)
		c.check("after it was done", dir, want, 0, 0)
		c.check("after a crash", filepath.Join(copied, "c"), want, perPass-perPass/2, perPass-perPass/2+3)
		c.check("afresh", t.TempDir(), want, passes*perPass, passes*perPass)
		for what, change := range map[string]func(s *cacheState, text []byte) []byte{
			"another number of chunks": func(_ *cacheState, text []byte) []byte {
				return bytes.Replace(text, []byte(`"Chunks":`), []byte(`"Chunks":1`), 1)
			},
			"a digest of other chunks": func(s *cacheState, _ []byte) []byte {
				s.Chunks = -1
				changed, _ := s.text() // has no error
				return changed
			},
			"other records": func(s *cacheState, _ []byte) []byte {
				s.N = -17
				changed, _ := s.text()
				return changed
			},
			"half a state": func(_ *cacheState, text []byte) []byte { return text[:len(text)/2] },
		} {
			changeState(t, dir, change)
			c.check(what, dir, want, passes*perPass, passes*perPass)
		}
		// Other bytes in the file are another source.
		if err := os.Chtimes(c.path, rowsTime, rowsTime); err != nil {
			t.Fatal(err)
		}
		c.check("touched", dir, want, passes*perPass, passes*perPass)
	}
}

// Other records of the same size and time of change are not taken for those before.
func TestCacheOfReplacedFile(t *testing.T) {
	if !mapsFiles {
		t.Skip("this system notes no time of each change")
	}
	c := newCaching(t, &Bounds{Lo: []float64{-2, -2, 0}, Hi: []float64{2, 2, 4000}})
	dir := t.TempDir()
	for _, x := range []string{"x,y,class,key\n1,2,a,3\n", "x,y,class,key\n2,1,a,3\n"} {
		time.Sleep(20 * time.Millisecond) // a tick of the clock that the system notes changes by
		if err := errors.Join(os.WriteFile(c.path, []byte(x), 0o600), os.Chtimes(c.path, rowsTime, rowsTime)); err != nil {
			t.Fatal(err)
		}
		want, _, err := c.prepare("", nil)
		if err != nil {
			t.Fatal(err)
		}
		p, decoded, err := c.prepare(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if decoded != 1 || !slices.Equal(p.Points.Data, want.Points.Data) {
			t.Errorf("%d chunks were decoded, and the records are %v, want %v", decoded, p.Points.Data, want.Points.Data)
		}
	}
}

// TestCacheFilesThatChanged changes the files of a cache that is complete, or was interrupted, as a disk, a crash or
// somebody would: the next preparation has the records of the source all the same.
func TestCacheFilesThatChanged(t *testing.T) {
	c := newCaching(t, &Bounds{Lo: []float64{-2, -2, 0}, Hi: []float64{2, 2, 4000}})
	want, perPass, err := c.prepare("", nil)
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(text []byte) []byte{
		"the first byte": func(text []byte) []byte { text[0] ^= 64; return text },
		"the last byte":  func(text []byte) []byte { text[len(text)-1] ^= 1; return text },
		"half":           func(text []byte) []byte { return text[:len(text)/2] },
		"nothing":        func([]byte) []byte { return nil },
	}
	for _, stop := range []int{perPass / 2, perPass} {
		for _, ending := range []string{".panels", ".labels"} {
			for what, change := range changes {
				dir := t.TempDir()
				c.interrupt(dir, stop)
				changeFile(t, dir, ending, change)
				c.check(fmt.Sprintf("%s of %s after %d of %d", what, ending, stop, perPass), dir, want, perPass, perPass)
			}
			// What follows is of a note that a crash has cut short.
			dir := t.TempDir()
			c.interrupt(dir, stop)
			changeFile(t, dir, ending, func(text []byte) []byte { return append(text, make([]byte, 400)...) })
			for range 2 {
				c.check(fmt.Sprintf("zeros behind %s after %d", ending, stop), dir, want, 0, perPass-stop)
			}
		}
	}
	for what, change := range map[string]func(*cacheState){
		"digests":          func(s *cacheState) { s.Digests = nil },
		"last values":      func(s *cacheState) { s.Last = s.Last[:1] },
		"records left out": func(s *cacheState) { s.Report.Dropped[0] = 1 << 40 },
		"classes":          func(s *cacheState) { s.Classes = s.Classes[:1] },
		"records":          func(s *cacheState) { s.N, s.Seen = s.N+16<<20, s.Seen+16<<20 },
		"files":            func(s *cacheState) { s.Files = []int{1, 2} },
	} {
		dir := t.TempDir()
		c.interrupt(dir, perPass)
		changeState(t, dir, func(s *cacheState, _ []byte) []byte {
			change(s)
			text, _ := s.text() // has no error
			return text
		})
		c.check("a state of other "+what, dir, want, perPass, perPass)
	}
}

// interrupt ends the preparation of the file in a folder before a chunk.
func (c *caching) interrupt(dir string, before int) {
	c.t.Helper()
	broken := errors.New("the cable is out")
	p, _, err := c.prepare(dir, func(chunk int) error {
		if chunk == before {
			return broken
		}
		return nil
	})
	if err == nil {
		p.Close()
	} else if !errors.Is(err, broken) {
		c.t.Fatal(err)
	}
}

// changeFile changes the one file of a cache that has a name of such an ending.
func changeFile(t *testing.T, dir, ending string, change func(text []byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	text, err := os.ReadFile(names[0])
	if err == nil {
		err = os.WriteFile(names[0], change(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCacheIsPreparedByOne prepares a cache twice at once: who comes second waits, or is told to end, and finds all
// records there.
func TestCacheIsPreparedByOne(t *testing.T) {
	c := newCaching(t, &Bounds{Lo: []float64{-2, -2, 0}, Hi: []float64{2, 2, 4000}})
	want, perPass, err := c.prepare("", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, begun, goOn, done := t.TempDir(), make(chan bool), make(chan bool), make(chan error)
	go func() {
		p, _, err := c.prepare(dir, func(chunk int) error {
			if chunk == perPass/2 {
				begun <- true
				<-goOn
			}
			return nil
		})
		if err == nil {
			p.Close()
		}
		done <- err
	}()
	<-begun
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	s, err := OpenSource(ctx, c.path, ReadOptions{LabelColumn: "class", Missing: DropRow})
	if err != nil {
		t.Fatal(err)
	}
	key := [16]byte{7}
	if _, err := Prepare(ctx, s, PrepareOptions{Read: ReadOptions{LabelColumn: "class", Missing: DropRow},
		Bounds: c.bounds, Cache: dir, DigestKey: &key}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who does not wait is told %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { close(goOn) })
	c.check("while another prepares it", dir, want, 0, 0)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// changeState writes a cache's state anew, as change makes it of what it is and its text.
func changeState(t *testing.T, dir string, change func(s *cacheState, text []byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	s := readState(text)
	if s.N == 0 {
		t.Fatal("the state is not as it was written")
	}
	if err := os.WriteFile(names[0], change(&s, text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCacheFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := table(1, 1, 2).Source()
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSource(context.Background(), file, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		s   Source
		dir string
	}{"has no name": {m, t.TempDir()}, "check the folder": {s, filepath.Join(file, "sub")}} {
		if _, err := Prepare(context.Background(), c.s, PrepareOptions{Cache: c.dir}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// ramp is a source of n records of 8 values that costs nothing to make.
type ramp struct{ n int }

func (r ramp) Schema() Schema { return Schema{Name: "ramp", N: r.n, D: 8, Identity: "ramp"} }

func (r ramp) Chunks(_ context.Context, yield func(Chunk) error) error {
	for lo := 0; lo < r.n; lo += 4096 {
		if err := yield(rampChunk{lo, min(4096, r.n-lo)}); err != nil {
			return err
		}
	}
	return nil
}

type rampChunk struct{ first, n int }

func (c rampChunk) Decode(b *Block) error {
	b.Record = c.first
	rows := b.Grow(c.n, 8)
	for i := range rows {
		rows[i] = float64((c.first*8 + i) % 1001)
	}
	return nil
}

// TestCacheNeedsLittleMemory prepares 10^7 records, 320 MB of panels, and looks at
// them all with little memory that is not the file's.
func TestCacheNeedsLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped in short mode: prepares 10^7 records")
	}
	if fieldOf("/proc/self/status", "RssAnon:") == 0 {
		t.Skip("the system has no /proc with the memory of a process")
	}
	const n = 10_000_000
	before := fieldOf("/proc/self/status", "RssAnon:")
	b := Bounds{Lo: make([]float64, 8), Hi: slices.Repeat([]float64{1000}, 8)}
	p, err := Prepare(context.Background(), ramp{n}, PrepareOptions{Bounds: &b, Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	row := make([]float32, 8)
	for i := 0; i < n; i += 997 {
		p.Points.Point(i, row)
		for j, x := range row {
			if v := float64((i*8 + j) % 1001); x != Truncate((v-(1000-v))/1000, DefaultFractionBits) {
				t.Fatalf("coordinate %d of point %d is %v, made from %v", j, i, x, v)
			}
		}
	}
	if grown := fieldOf("/proc/self/status", "RssAnon:") - before; p.Points.N != n || grown > 100<<10 {
		t.Errorf("%d points took %d kB of memory beside the file", p.Points.N, grown)
	}
}
