package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/engine/method"
)

// asRoot skips a test where it cannot have what only root has.
func asRoot(t *testing.T, what string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped without root: " + what)
	}
}

// command runs a program that only root may run; it skips the test where that is refused
// all the same.
func command(t *testing.T, what string, args ...string) {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Skipf("skipped where there is none: %s: %v: %s", what, err, strings.TrimSpace(string(out)))
	}
}

// A party whose disk is full ends with an error that says so, and when there is room goes
// on by the same command; the others wait for it, and all have the bits of one process.
func TestDiskFull(t *testing.T) {
	asRoot(t, "a small disk")
	f := newFixture(t, "sulloyd", 3, 240, method.Settings{"noise": "split", "mechanism": "gaussian", "iterations": "8"})
	f.study.Threshold, f.study.Deadlines = 3, Deadlines{Step: 60, Message: 60}
	if err := f.study.Complete(); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, f)
	disk := t.TempDir()
	if err := syscall.Mount("cohort-test", disk, "tmpfs", 0, "size=8k"); err != nil {
		t.Skip("skipped where there is none: a small disk: " + err.Error())
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	n.dirs[1] = disk
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := n.coordinator(t)
	defer c.Close()
	results, errs := make([]*engine.Result, 4), make([]error, 4)
	var roles sync.WaitGroup
	for p, v := range c.Invitations() {
		j := n.join(t, v)
		roles.Go(func() {
			results[p], errs[p] = Take(ctx, j)
			if p != 1 {
				return
			}
			if !errors.Is(errs[p], syscall.ENOSPC) || !strings.Contains(errs[p].Error(), "make room on the disk") {
				t.Errorf("a full disk: %v", errs[p])
			}
			if err := syscall.Mount("cohort-test", disk, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
				t.Error(err)
			}
			results[p], errs[p] = Take(ctx, n.join(t, v))
		})
	}
	results[3], errs[3] = c.Run(ctx)
	roles.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sameCentroids(t, "after a full disk", f.alone(t), results)
}

// padded makes a study whose rounds take a while.
func padded(t *testing.T, parties int) *fixture {
	t.Helper()
	f := newFixture(t, "sulloyd", parties, 120, method.Settings{"noise": "split", "mechanism": "gaussian",
		"iterations": "20"})
	f.study.PadRounds = 150
	return rounded(t, f)
}

// A coordinator and two parties, each in a network namespace of its own, go on when their
// links go down and come up again.
func TestLinksDownAndUp(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it takes links down for seconds")
	}
	asRoot(t, "network namespaces")
	t.Parallel()
	s := newStage(t, padded(t, 2))
	name := func(role string) string { return fmt.Sprintf("cohort-test-%d-%s", os.Getpid(), role) }
	ip := func(args ...string) {
		t.Helper()
		command(t, "network namespaces", append([]string{"ip"}, args...)...)
	}
	add := func(space string) {
		ip("netns", "add", space)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", space).Run() })
	}
	add(name("hub"))
	ip("-n", name("hub"), "link", "add", "hub", "type", "bridge")
	ip("-n", name("hub"), "link", "set", "hub", "up")
	roles := []string{"serve", "0", "1"}
	for i, role := range roles {
		space := name(role)
		add(space)
		port := fmt.Sprint("port", i)
		ip("-n", name("hub"), "link", "add", port, "type", "veth", "peer", "name", "wire", "netns", space)
		ip("-n", name("hub"), "link", "set", port, "master", "hub", "up")
		ip("-n", space, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "wire")
		ip("-n", space, "link", "set", "wire", "up")
		ip("-n", space, "link", "set", "lo", "up")
	}
	s.address = "10.77.0.1:4222"
	s.wrap = func(role string) []string { return []string{"ip", "netns", "exec", name(role)} }
	done, downs := make(chan struct{}), 0
	var toggler sync.WaitGroup
	toggler.Go(func() {
		for i := 0; ; i++ {
			for _, how := range []string{"down", "up"} {
				select {
				case <-done:
					return
				case <-time.After(700 * time.Millisecond):
				}
				if exec.Command("ip", "-n", name(roles[i%3]), "link", "set", "wire", how).Run() == nil {
					downs++
				}
			}
		}
	})
	s.run(t, func(string, int) string { return "" })
	close(done)
	toggler.Wait()
	if downs < 4 {
		t.Errorf("links went down and up %d times: the test has not tested anything", downs)
	}
}

// Clocks that jump do no harm: every life of a role has another time since the machine was
// started, by days, forth and back.
func TestClockJumps(t *testing.T) {
	if os.Getenv("COHORT_NETWORK") == "" {
		t.Skip("run make test-network: it kills processes for seconds")
	}
	asRoot(t, "time namespaces")
	command(t, "time namespaces", "unshare", "--time", "--monotonic", "100", "true")
	t.Parallel()
	s := newStage(t, padded(t, 2))
	var mu sync.Mutex
	life := 0
	s.wrap = func(string) []string {
		mu.Lock()
		defer mu.Unlock()
		life++
		offset := fmt.Sprint((life * 7919 % 13) * 86400)
		return []string{"unshare", "--time", "--monotonic", offset, "--boottime", offset}
	}
	s.run(t, func(_ string, life int) string {
		if life > 5 {
			return ""
		}
		return fmt.Sprint("after sync:", 3+7*life)
	})
	if _, err := os.Stat(filepath.Join(s.place, "result0")); err != nil || life < 10 {
		t.Errorf("%d lives: the test has not tested anything: %v", life, err)
	}
}
