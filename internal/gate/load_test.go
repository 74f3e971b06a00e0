package gate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the path of this module.
const module = "github.com/cohort-engine/cohort"

// source is a package of the module with its syntax and types.
type source struct {
	path  string
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// program is the module: its packages in the order of their imports.
type program struct {
	fset     *token.FileSet
	packages []*source
	importer types.Importer
	// bodies has the declaration of each function of the module, and where it stands.
	bodies map[*types.Func]*ast.FuncDecl
	owner  map[*ast.FuncDecl]*source
	named  []*types.Named // all defined types of the module
	held   map[types.Type]string
}

// listed is what `go list` says about a package.
type listed struct {
	ImportPath, Export, Dir string
	GoFiles                 []string
	Standard                bool
	Module                  *struct{ Main bool }
}

// load reads all packages of the module, without their tests. Packages of others
// come from the compiler's export data; the bypasses of the tests want two that the
// module itself need not have.
func load() (*program, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,Standard,Module", "./...",
		"encoding/gob", "log")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	p := &program{fset: token.NewFileSet(), bodies: map[*types.Func]*ast.FuncDecl{}, owner: map[*ast.FuncDecl]*source{},
		held: map[types.Type]string{}}
	replaced, err := overlay()
	if err != nil {
		return nil, err
	}
	exports, own := map[string]string{}, map[string]*types.Package{}
	others := importer.ForCompiler(p.fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	p.importer = importerFunc(func(path string) (*types.Package, error) {
		if pkg := own[path]; pkg != nil {
			return pkg, nil
		}
		return others.Import(path)
	})
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if l.Module == nil || !l.Module.Main {
			exports[l.ImportPath] = l.Export
			continue
		}
		var files []*ast.File
		for _, name := range l.GoFiles {
			name = filepath.Join(l.Dir, name)
			text, err := os.ReadFile(cmp.Or(replaced[name], name))
			if err != nil {
				return nil, err
			}
			f, err := parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		s, err := p.check(l.ImportPath, files)
		if err != nil {
			return nil, err
		}
		own[l.ImportPath] = s.types
		p.add(s)
	}
	return p, nil
}

// overlay is what GOFLAGS replaces sources by: mutants (scripts/mutants) are read as
// they are built.
func overlay() (map[string]string, error) {
	_, path, ok := strings.Cut(os.Getenv("GOFLAGS"), "-overlay=")
	if !ok {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var o struct{ Replace map[string]string }
	return o.Replace, json.Unmarshal(b, &o)
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

// check finds the types of a package.
func (p *program) check(path string, files []*ast.File) (*source, error) {
	s := &source{path: path, files: files, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{},
	}}
	var err error
	s.types, err = (&types.Config{Importer: p.importer, Sizes: types.SizesFor("gc", "amd64")}).Check(path, p.fset,
		files, s.info)
	return s, err
}

// add makes a package part of the program.
func (p *program) add(s *source) {
	p.packages = append(p.packages, s)
	for _, f := range s.files {
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok {
				if f, ok := s.info.Defs[fd.Name].(*types.Func); ok {
					p.bodies[f], p.owner[fd] = fd, s
				}
			}
		}
	}
	for _, name := range s.types.Scope().Names() {
		if t, ok := s.types.Scope().Lookup(name).(*types.TypeName); ok && !t.IsAlias() {
			if named, ok := t.Type().(*types.Named); ok {
				p.named = append(p.named, named)
			}
		}
	}
}

// at is a position for a reader: file:line.
func (p *program) at(pos token.Pos) string {
	at := p.fset.Position(pos)
	name := filepath.ToSlash(at.Filename)
	if root, err := filepath.Abs(filepath.Join("..", "..")); err == nil {
		name = strings.TrimPrefix(name, filepath.ToSlash(root)+"/")
	}
	return fmt.Sprintf("%s:%d", name, at.Line)
}
