package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/cohort-engine/cohort/engine/study"
)

// The suite network gives the coordinator a process of its own, so that its memory and its
// processor time are told apart from its parties'. They talk by lines of JSON.

// word is what a coordinator's process says: where it listens, or what a round took, or at
// its end how much memory it had at most.
type word struct {
	Place json.RawMessage `json:"place,omitempty"`
	// Took is the time of a round, Work the processor time of the process so far.
	Took   time.Duration `json:"took,omitempty"`
	Work   time.Duration `json:"work,omitempty"`
	Memory int64         `json:"memory,omitempty"`
}

// Coordinate is the program of a coordinator's process: it reads an order from in and
// answers on out.
func Coordinate(ctx context.Context, in io.Reader, out io.Writer) error {
	var order json.RawMessage
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	say := json.NewEncoder(out)
	err := study.CoordinateSums(ctx, order, func(place []byte) error { return say.Encode(word{Place: place}) },
		func(took time.Duration) error { return say.Encode(word{Took: took, Work: processTime()}) })
	if err != nil {
		return err
	}
	return say.Encode(word{Memory: peakMemory()})
}

// sumsMeasured is what rounds of sums took.
type sumsMeasured struct {
	rounds []time.Duration
	// work is processor time of the coordinator's process in a round, parties that of all
	// parties' process; 0 where they share one. memory is the most that the coordinator had.
	work, parties []time.Duration
	memory        int64
}

// measureSums measures sums with a coordinator in a process of its own, whose command line
// is command; in this process if that is empty.
func measureSums(ctx context.Context, m *study.Sums, command []string) (*sumsMeasured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, ended := &sumsMeasured{}, make(chan error, 2)
	err := m.Measure(ctx, func(order []byte) ([]byte, error) {
		hear, words := io.Pipe()
		go func() {
			err := coordinate(ctx, command, bytes.NewReader(order), words)
			words.CloseWithError(err)
			ended <- err
		}()
		listen := json.NewDecoder(hear)
		var w word
		if err := listen.Decode(&w); err != nil {
			return nil, errors.Join(err, <-ended)
		}
		go func() {
			err := r.hear(listen, len(command) > 0)
			if err != nil {
				cancel(err) // nobody answers the parties
			}
			ended <- err
		}()
		return w.Place, nil
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	return r, errors.Join(<-ended, <-ended)
}

// coordinate runs a coordinator.
func coordinate(ctx context.Context, command []string, in io.Reader, out io.Writer) error {
	if len(command) == 0 {
		return Coordinate(ctx, in, out)
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Stdin, process.Stdout, process.Stderr = in, out, os.Stderr
	if err := process.Run(); err != nil {
		return fmt.Errorf("bench: the coordinator's process: %w", err)
	}
	return nil
}

// hear reads what the coordinator says of rounds; apart says that its process is another.
func (r *sumsMeasured) hear(words *json.Decoder, apart bool) error {
	var work, parties time.Duration
	for {
		var w word
		if err := words.Decode(&w); err != nil {
			return err
		}
		if w.Memory > 0 || w.Took == 0 {
			r.memory = w.Memory
			return nil
		}
		r.rounds = append(r.rounds, w.Took)
		if apart {
			now := processTime()
			r.work, r.parties = append(r.work, w.Work-work), append(r.parties, now-parties)
			work, parties = w.Work, now
		}
	}
}
