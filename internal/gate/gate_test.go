package gate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"sync"
	"testing"
)

var loaded = sync.OnceValues(load)

// TestGate reads the whole module.
func TestGate(t *testing.T) {
	p, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	hit := map[string]bool{}
	for _, s := range p.packages {
		w := p.inspect(s)
		for _, f := range w.found {
			t.Error(f)
		}
		for key := range w.exitsHit {
			hit[key] = true
		}
		for _, f := range s.files {
			if s.path == module+"/engine/protocol" {
				for _, name := range unasked(f) {
					t.Errorf("engine/protocol: %s opens a private vector before it asks the plan (admit)", name)
				}
			}
		}
	}
	for kind, list := range exits {
		for name := range list {
			if !hit[kind+" "+name] {
				t.Errorf("exits lists %s for %s, which no function of this name has: take the line out", name, kind)
			}
		}
	}
	for name := range sealed {
		at := strings.LastIndex(name, ".")
		path := name[:at]
		if !strings.HasPrefix(path, "github.com/") {
			path = module + "/" + path
		}
		if pkg, err := p.importer.Import(path); err != nil || pkg.Scope().Lookup(name[at+1:]) == nil {
			t.Errorf("sealed lists %s, which does not exist: name the type that took its place", name)
		}
	}
}

// unasked are the releases of a file that read a private vector before they ask the
// plan.
func unasked(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		fd, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(functionName(fd), "Party.") || !openers[functionName(fd)] {
			continue
		}
		asked, opened := token.Pos(0), token.Pos(0)
		ast.Inspect(fd.Body, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				switch name := s.Sel.Name; {
				case strings.HasPrefix(name, "admit") && asked == 0:
					asked = s.Pos()
				case (name == "words" || name == "values") && opened == 0:
					opened = s.Pos()
				}
			}
			return true
		})
		if asked == 0 || opened != 0 && opened < asked {
			names = append(names, functionName(fd))
		}
	}
	return names
}

// TestGateBroken puts ways around the gate into packages of the module, and looks
// whether each is found by its rule, and only by it.
func TestGateBroken(t *testing.T) {
	p, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bypasses {
		t.Run(b.name, func(t *testing.T) {
			text := "package broken\n\nimport (\n"
			for _, i := range strings.Fields(b.imports) {
				switch first, _, _ := strings.Cut(i, "/"); first {
				case "engine", "internal", "kernels":
					i = module + "/" + i
				}
				text += "\t\"" + i + "\"\n"
			}
			f, err := parser.ParseFile(p.fset, "broken.go", text+")\n\n"+b.code, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			before := len(p.named)
			s, err := p.check(module+"/engine/method/broken", []*ast.File{f})
			if err != nil {
				t.Fatal(err)
			}
			// What the snippet declares is known while it is read.
			packages := p.packages
			p.add(s)
			found := p.inspect(s).found
			p.packages, p.named = packages, p.named[:before]
			if b.rule == "" {
				for _, f := range found {
					t.Errorf("found %v where nothing is wrong", f)
				}
				return
			}
			rules := map[string]bool{}
			for _, f := range found {
				rules[f.rule] = true
				if !slices.Contains(strings.Fields(b.rule), f.rule) {
					t.Errorf("found %v, want the rule %q", f, b.rule)
				}
			}
			for _, rule := range strings.Fields(b.rule) {
				if !rules[rule] {
					t.Errorf("nothing found by the rule %q", rule)
				}
			}
		})
	}
}

// TestUnaskedRelease takes the question to the plan out of a release.
func TestUnaskedRelease(t *testing.T) {
	const release = `package protocol
func (p *Party) Own(r *Release, round int, own *Private) ([]int64, error) {
	%
	out := append([]int64(nil), own.words...)
	return out, nil
}`
	for ask, want := range map[string]int{"if err := p.admit(r, round); err != nil { return nil, err }": 0, "": 1,
		"defer p.admit(r, round); ": 0, "keep(own.words); p.admit(r, round)": 1} {
		f, err := parser.ParseFile(token.NewFileSet(), "own.go", strings.Replace(release, "%", ask, 1),
			parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := unasked(f); len(got) != want {
			t.Errorf("with %q: %v unasked, want %d", ask, got, want)
		}
	}
}
