package protocol_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cohort-engine/cohort/engine/dataset"
	"github.com/cohort-engine/cohort/engine/protocol"
	"github.com/cohort-engine/cohort/engine/protocol/protocoltest"
	"github.com/cohort-engine/cohort/internal/secret"
)

// Two roles have nothing secret in common, with a seed and without.
func TestRolesHaveRootsOfTheirOwn(t *testing.T) {
	seed := uint64(5)
	for _, s := range []*uint64{nil, &seed} {
		for _, makers := range []protocol.Makers{protocol.ServerAlone, ring} {
			plan, r, groups := summing(t, 4, 1, makers, s)
			plan.PublicSeed = protocol.NewPublicSeed(s)
			var sums [4][][]int64
			var programs []protocol.Program
			for id := range sums {
				programs = append(programs, party(r, groups, 1, -1)(id, &sums[id]))
			}
			var server protocol.Program
			if makers != ring {
				server = protocol.Serve
			}
			var roles protocoltest.Roles
			run := protocol.Start(runtime(t), plan, programs, server, protocol.Options{Joined: roles.Join})
			if err := run.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			want := 4
			if server != nil {
				want++
			}
			roles.Check(t, want)
		}
	}
	if one, other := protocol.NewPublicSeed(nil), protocol.NewPublicSeed(nil); one == other {
		t.Error("two runs without a seed have one public seed")
	}
}

// A role that is alone in its process, with its own secrets, the plan and mail,
// reaches what it reaches beside the others. Its result has its own traffic.
func TestOneRoleAlone(t *testing.T) {
	const parties, rounds = 3, 4
	seed := uint64(7)
	for _, makers := range []protocol.Makers{protocol.ServerAlone, protocol.EachWhole, ring} {
		var together, alone [parties][][]int64
		plan, r, groups := summing(t, parties, rounds, makers, &seed)
		var programs []protocol.Program
		for id := range parties {
			programs = append(programs, party(r, groups, rounds, -1)(id, &together[id]))
		}
		roles := []protocol.Role{0, 1, 2}
		var server protocol.Program
		if makers != ring {
			server, roles = protocol.Serve, append(roles, protocol.Server)
		}
		whole := protocol.Start(runtime(t), plan, programs, server, protocol.Options{})
		all, err := whole.Finish(context.Background(), dataset.Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		connect := protocoltest.Apart(plan).Connect
		var running sync.WaitGroup
		for _, role := range roles {
			// a process of its own has a plan of its own, and no seed
			own, r, groups := summing(t, parties, rounds, makers, nil)
			own.PublicSeed = protocol.NewPublicSeed(&seed)
			programs := make([]protocol.Program, parties)
			if role != protocol.Server {
				programs[role] = party(r, groups, rounds, -1)(int(role), &alone[role])
			}
			s := protocol.Start(runtime(t), own, programs, server,
				protocol.Options{Seat: &protocol.Seat{Role: role}, Connect: connect,
					Secrets: func(r protocol.Role) protocol.Secrets { return protocol.SimulatedSecrets(seed, r) }})
			running.Go(func() {
				res, err := s.Finish(context.Background(), dataset.Bounds{})
				if err != nil {
					t.Errorf("makers %d, %v: %v", makers, role, err)
				} else if role == protocol.Server {
					return
				} else if res.Comm.BytesSent[0] != all.Comm.BytesSent[role] ||
					res.Comm.BytesReceived[0] != all.Comm.BytesReceived[role] {
					t.Errorf("makers %d, %v alone sent %d and received %d bytes, beside the others %v and %v", makers,
						role,
						res.Comm.BytesSent[0], res.Comm.BytesReceived[0], all.Comm.BytesSent, all.Comm.BytesReceived)
				}
			})
		}
		running.Wait()
		for id := range parties {
			if !slices.EqualFunc(together[id], alone[id], slices.Equal) {
				t.Errorf("makers %d: party %d got %v beside the others, %v alone", makers, id+1, together[id],
					alone[id])
			}
		}
	}
}

// A role that is alone does not begin without secrets, nor with those of nobody.
func TestRoleAloneNeedsSecrets(t *testing.T) {
	group := protocol.SimulatedSecrets(1, 0).Group
	for why, secrets := range map[string]func(protocol.Role) protocol.Secrets{
		"no root of its own": nil,
		"lacks the root that the parties share": func(protocol.Role) protocol.Secrets {
			return protocol.Secrets{Own: secret.New()}
		},
		"states no public seed": func(protocol.Role) protocol.Secrets {
			return protocol.Secrets{Own: secret.New(), Group: group}
		},
	} {
		plan, r, groups := summing(t, 2, 1, protocol.ServerAlone, nil)
		programs := []protocol.Program{party(r, groups, 1, -1)(0, new([][]int64)), nil}
		o := protocoltest.Apart(plan)
		o.Seat, o.Secrets = &protocol.Seat{Role: 0}, secrets
		if err := protocol.Start(runtime(t), plan, programs, protocol.Serve,
			o).Run(context.Background()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// A public seed has one text form.
func TestPublicSeedText(t *testing.T) {
	s := protocol.NewPublicSeed(nil)
	var back protocol.PublicSeed
	if text, err := s.MarshalText(); err != nil || back.UnmarshalText(text) != nil || back != s ||
		string(text) != s.String() {
		t.Errorf("%v becomes %v", s, back)
	}
	for _, bad := range []string{"", "00", s.String() + "0", s.String() + "00", "g" + s.String()[1:]} {
		if back.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is taken for a public seed", bad)
		}
	}
}

// No method has a source of randomness beside the roots that its roles are given.
// (What searches among released values, in synopsis, is handed a stream.)
func TestMethodsDrawFromRoots(t *testing.T) {
	files := 0
	for _, room := range []string{"../method", "../step"} {
		err := filepath.WalkDir(room, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			for _, i := range f.Imports {
				if name := strings.Trim(i.Path.Value, `"`); name == "crypto/rand" ||
					strings.HasPrefix(name, "math/rand") {
					t.Errorf("%s imports %s: randomness comes from a role's root or the public seed", path, name)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "NewStreams" {
					t.Errorf("%v makes streams of its own: randomness comes from a role's root or the public seed",
						set.Position(n.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}
