package bench

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// peersScript runs scikit-learn and FAISS where a Python has them.
//
//go:embed peers.py
var peersScript []byte

// peers is a process that times iterations of other programs on the same points.
type peers struct {
	python string
	cmd    *exec.Cmd
	in     *os.File
	answer *bufio.Reader
	folder string
	absent string // why the last request could not be answered
}

// pythons are the programs that are tried: Debian's packages belong to the first.
var pythons = []string{"/usr/bin/python3", "python3"}

// startPeers hands points and centroids, row by row, to a process that works with so
// many threads; it returns nil where there is no Python with numpy.
func startPeers(ctx context.Context, rows, centroids []float32, n, d, k, threads int) (*peers, error) {
	p, err := newPeers(ctx, pythons)
	if p == nil || err != nil {
		return nil, err
	}
	for name, x := range map[string][]float32{"points": rows, "centroids": centroids} {
		if err := p.hand(name, x); err != nil {
			return nil, err
		}
	}
	return p, p.start(ctx, peersScript, p.path("points"), p.path("centroids"), strconv.Itoa(n), strconv.Itoa(d),
		strconv.Itoa(k), strconv.Itoa(threads))
}

// newPeers makes the folder of a process, of the first of the Pythons that has numpy; it returns
// nil if none has.
func newPeers(ctx context.Context, pythons []string) (*peers, error) {
	at := slices.IndexFunc(pythons, func(name string) bool {
		return exec.CommandContext(ctx, name, "-c", "import numpy").Run() == nil
	})
	if at < 0 {
		return nil, ctx.Err()
	}
	folder, err := os.MkdirTemp("", "cohort-peers")
	return &peers{python: pythons[at], folder: folder}, err
}

func (p *peers) path(name string) string { return filepath.Join(p.folder, name) }

// hand writes numbers to a file of the folder.
func (p *peers) hand(name string, x []float32) error {
	data := make([]byte, 4*len(x))
	if _, err := binary.Encode(data, binary.LittleEndian, x); err != nil {
		return err
	}
	return os.WriteFile(p.path(name), data, 0o600)
}

// start runs a script.
func (p *peers) start(ctx context.Context, script []byte, args ...string) error {
	if err := os.WriteFile(p.path("peers.py"), script, 0o600); err != nil {
		return err
	}
	p.cmd = exec.CommandContext(ctx, p.python, append([]string{p.path("peers.py")}, args...)...)
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdin, p.in = read, write
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.answer = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("bench: peers: %w", err)
	}
	return read.Close()
}

// fitted is what a whole run gave: wall and CPU time in nanoseconds, and the centroids, row by row.
type fitted struct {
	wall, cpu float64
	centroids []float64
}

// fit runs scikit-learn's k-means from one start; ok is false where it is not installed.
func (p *peers) fit(seed, k, d int) (f fitted, ok bool, err error) {
	times, err := p.ask("fit " + strconv.Itoa(seed))
	if times == nil || err != nil {
		return f, false, err
	}
	if len(times) != 2 {
		return f, false, fmt.Errorf("bench: peer sklearn answers %v", times)
	}
	f = fitted{wall: times[0], cpu: times[1]}
	f.centroids, err = p.kept(k, d)
	return f, true, err
}

// kept are the centroids that the peer wrote last, row by row.
func (p *peers) kept(k, d int) ([]float64, error) {
	data, err := os.ReadFile(p.path("fit"))
	if err != nil {
		return nil, err
	}
	centroids := make([]float64, k*d)
	_, err = binary.Decode(data, binary.LittleEndian, centroids)
	return centroids, err
}

// faiss returns the centroids of FAISS after so many iterations, row by row, nil where it is not installed.
func (p *peers) faiss(iterations, k, d int) ([]float64, error) {
	times, err := p.ask("faiss " + strconv.Itoa(iterations))
	if times == nil || err != nil {
		return nil, err
	}
	return p.kept(k, d)
}

// iteration returns the CPU time of one iteration of a peer in nanoseconds; ok is
// false where that peer is not installed.
func (p *peers) iteration(name string) (ns float64, ok bool, err error) {
	times, err := p.ask(name)
	if times == nil || err != nil {
		return 0, false, err
	}
	return times[0], true, nil
}

// ask sends a request and returns the nanoseconds that answer it, nil where the peer is not installed.
func (p *peers) ask(name string) ([]float64, error) {
	if _, err := fmt.Fprintln(p.in, name); err != nil {
		return nil, fmt.Errorf("bench: peer %s: %w", name, err)
	}
	line, err := p.answer.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("bench: peer %s ended early: %w", name, err)
	}
	if why, absent := strings.CutPrefix(strings.TrimSpace(line), "absent"); absent {
		p.absent = strings.TrimSpace(why)
		return nil, nil
	}
	var times []float64
	for _, text := range strings.Fields(line) {
		ns, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("bench: peer %s answers %q", name, line)
		}
		times = append(times, ns)
	}
	if times == nil {
		return nil, fmt.Errorf("bench: peer %s answers nothing", name)
	}
	return times, nil
}

// close ends the process and removes its files.
func (p *peers) close() {
	if p == nil {
		return
	}
	if p.cmd != nil && p.cmd.Process != nil {
		p.in.Close()
		_ = p.cmd.Wait() // it has nothing more to say
	}
	os.RemoveAll(p.folder)
}
