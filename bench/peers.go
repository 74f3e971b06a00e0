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
	"strconv"
	"strings"
)

// peersScript runs scikit-learn and FAISS where a Python has them.
//
//go:embed peers.py
var peersScript []byte

// peers is a process that times iterations of other programs on the same points.
type peers struct {
	cmd    *exec.Cmd
	in     *os.File
	answer *bufio.Reader
	folder string
}

// pythons are the programs that are tried: Debian's packages belong to the first.
var pythons = []string{"/usr/bin/python3", "python3"}

// startPeers hands points and centroids, row by row, to a process that works with so
// many threads; it returns nil where there is no Python with numpy.
func startPeers(ctx context.Context, rows, centroids []float32, n, d, k, threads int) (*peers, error) {
	python := ""
	for _, name := range pythons {
		if exec.CommandContext(ctx, name, "-c", "import numpy").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		return nil, nil
	}
	folder, err := os.MkdirTemp("", "cohort-peers")
	if err != nil {
		return nil, err
	}
	p := &peers{folder: folder}
	path := func(name string) string { return filepath.Join(folder, name) }
	for name, x := range map[string][]float32{"points": rows, "centroids": centroids} {
		data := make([]byte, 4*len(x))
		if _, err := binary.Encode(data, binary.LittleEndian, x); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path(name), data, 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(path("peers.py"), peersScript, 0o600); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, python, path("peers.py"), path("points"), path("centroids"), strconv.Itoa(n),
		strconv.Itoa(d), strconv.Itoa(k), strconv.Itoa(threads))
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdin, p.in = read, write
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answer = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: peers: %w", err)
	}
	return p, read.Close()
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
	data, err := os.ReadFile(filepath.Join(p.folder, "fit"))
	if err != nil {
		return f, false, err
	}
	f = fitted{wall: times[0], cpu: times[1], centroids: make([]float64, k*d)}
	_, err = binary.Decode(data, binary.LittleEndian, f.centroids)
	return f, true, err
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
	if line = strings.TrimSpace(line); line == "absent" {
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
	p.in.Close()
	_ = p.cmd.Wait() // it has nothing more to say
	os.RemoveAll(p.folder)
}
