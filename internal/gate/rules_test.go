package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// finding is one way around the gate.
type finding struct {
	rule, at, what string
}

func (f finding) String() string { return fmt.Sprintf("%s: %s (%s)", f.at, f.what, f.rule) }

// walk applies the rules to one package.
type walk struct {
	*program
	*source
	name     string // of the package: its folder in the module
	within   string // the function that is read
	found    []finding
	results  *types.Tuple // of the innermost function
	exitsHit map[string]bool
	followed map[types.Object]bool
}

// inspect finds all ways around the gate in a package.
func (p *program) inspect(s *source) *walk {
	w := &walk{program: p, source: s, name: strings.TrimPrefix(strings.TrimPrefix(s.path, module), "/"),
		exitsHit: map[string]bool{}}
	w.surface()
	for _, f := range s.files {
		for _, i := range f.Imports {
			w.imports(i)
		}
		for _, d := range f.Decls {
			w.within, w.results = "", nil
			if fd, ok := d.(*ast.FuncDecl); ok {
				w.within, w.results = functionName(fd), s.info.Defs[fd.Name].Type().(*types.Signature).Results()
			}
			ast.Walk(visitor{w, w.results}, d)
		}
	}
	return w
}

func (w *walk) report(rule string, pos token.Pos, format string, args ...any) {
	w.found = append(w.found, finding{rule, w.at(pos), fmt.Sprintf(format, args...)})
}

// functionName is Type.method or function.
func functionName(fd *ast.FuncDecl) string {
	if fd.Recv == nil || len(fd.Recv.List) == 0 {
		return fd.Name.Name
	}
	t := fd.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
			continue
		case *ast.IndexExpr:
			t = u.X
			continue
		case *ast.Ident:
			return u.Name + "." + fd.Name.Name
		}
		return fd.Name.Name
	}
}

// visitor reads syntax, with the results of the function around it.
type visitor struct {
	*walk
	results *types.Tuple
}

// Visit implements ast.Visitor.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.FuncLit:
		return visitor{v.walk, v.info.Types[n].Type.(*types.Signature).Results()}
	case *ast.CallExpr:
		v.call(n)
	case *ast.ReturnStmt:
		if v.results != nil {
			v.each(n.Results, v.results.Len(), func(i int) types.Type { return v.results.At(i).Type() })
		}
	case *ast.AssignStmt:
		v.each(n.Rhs, len(n.Lhs), func(i int) types.Type { return v.typeOf(n.Lhs[i]) })
	case *ast.ValueSpec:
		if n.Type != nil {
			v.each(n.Values, len(n.Names), func(int) types.Type { return v.typeOf(n.Type) })
		}
	case *ast.SendStmt:
		if c, ok := v.typeOf(n.Chan).Underlying().(*types.Chan); ok {
			v.becomes(n.Value, c.Elem())
		}
	case *ast.CompositeLit:
		v.composite(n)
	case *ast.SelectorExpr:
		v.selector(n)
	case *ast.Ident:
		v.instance(n)
	}
	return v
}

func (w *walk) typeOf(x ast.Expr) types.Type {
	if t := w.info.TypeOf(x); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}

// each looks at values that become so many of other types: one by one, or all of a
// call.
func (w *walk) each(values []ast.Expr, of int, t func(i int) types.Type) {
	if len(values) == of {
		for i, x := range values {
			w.becomes(x, t(i))
		}
		return
	}
	for _, x := range values {
		if from, ok := w.typeOf(x).(*types.Tuple); ok && from.Len() == of {
			for i := range of {
				w.converts(x.Pos(), from.At(i).Type(), t(i))
			}
		}
	}
}

// becomes looks at a value that is assigned, passed or returned as a type: nothing
// sealed becomes an any, an error or what encoders look for.
func (w *walk) becomes(x ast.Expr, t types.Type) {
	w.converts(x.Pos(), w.typeOf(x), t)
}

func (w *walk) converts(pos token.Pos, from, t types.Type) {
	if t == nil || !opens(t) || types.IsInterface(from) && opens(from) {
		return
	}
	if held := w.holds(from); held != "" {
		w.report("sealed", pos, "a %s, which holds a %s, becomes %s: it could be printed or encoded",
			types.TypeString(from, types.RelativeTo(w.types)), held, types.TypeString(t, types.RelativeTo(w.types)))
	}
}

// call looks at the arguments of a call, and at who may call what.
func (w *walk) call(n *ast.CallExpr) {
	fun := ast.Unparen(n.Fun)
	tv := w.info.Types[fun]
	if tv.IsType() {
		if len(n.Args) == 1 {
			w.becomes(n.Args[0], tv.Type)
		}
		return
	}
	if id, ok := fun.(*ast.Ident); ok && tv.IsBuiltin() {
		switch {
		case id.Name == "print" || id.Name == "println":
			w.report("sealed", n.Pos(), "%s prints beside all results", id.Name)
		case id.Name == "panic":
			w.becomes(n.Args[0], types.Universe.Lookup("any").Type())
		case id.Name == "append" && !n.Ellipsis.IsValid():
			if s, ok := w.typeOf(n.Args[0]).Underlying().(*types.Slice); ok {
				for _, x := range n.Args[1:] {
					w.becomes(x, s.Elem())
				}
			}
		}
		return
	}
	sig, ok := w.typeOf(fun).Underlying().(*types.Signature)
	if !ok {
		return
	}
	for i, x := range n.Args {
		last := sig.Params().Len() - 1
		switch {
		case sig.Variadic() && i >= last && !n.Ellipsis.IsValid():
			w.becomes(x, sig.Params().At(last).Type().(*types.Slice).Elem())
		case i <= last:
			w.becomes(x, sig.Params().At(i).Type())
		}
	}
	w.exits(n, fun)
}

func (w *walk) composite(n *ast.CompositeLit) {
	t := w.typeOf(n)
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i, x := range n.Elts {
			kv, keyed := x.(*ast.KeyValueExpr)
			if !keyed {
				w.becomes(x, u.Field(i).Type())
				continue
			}
			if f, ok := w.info.Uses[kv.Key.(*ast.Ident)].(*types.Var); ok {
				w.becomes(kv.Value, f.Type())
			}
		}
	case *types.Map:
		for _, x := range n.Elts {
			w.becomes(x.(*ast.KeyValueExpr).Key, u.Key())
			w.becomes(x.(*ast.KeyValueExpr).Value, u.Elem())
		}
	case interface{ Elem() types.Type }:
		for _, x := range n.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				x = kv.Value
			}
			w.becomes(x, u.Elem())
		}
	}
	switch nameOf(t) {
	case "engine/protocol.Outcome":
		w.exit("Outcome", n.Pos())
	case "engine/protocol.Views":
		w.watches(n.Pos())
	}
}

// watches refuses views and replays, which hold exact values, outside audits.
func (w *walk) watches(pos token.Pos) {
	if w.name != "engine/audit" && w.name != "engine/protocol" {
		w.report("views", pos, "makes a protocol.Views, which records exact values, outside engine/audit")
	}
}

// ofGroup is what all parties of a group share: they may compute once for all from it.
var ofGroup = map[string]bool{"engine/method/sketch.Secret": true}

// instance looks at what generic functions are made for: protocol.Once hands a
// value from role to role.
func (w *walk) instance(n *ast.Ident) {
	of, ok := w.info.Instances[n]
	f, isFunc := w.info.Uses[n].(*types.Func)
	if !ok || !isFunc || f.Pkg() == nil || f.Pkg().Path() != module+"/engine/protocol" {
		return
	}
	for t := range of.TypeArgs.Types() {
		if held := w.holds(t); held != "" && !ofGroup[held] {
			w.report("sealed", n.Pos(), "protocol.%s hands a %s, which holds a %s, to other roles", n.Name,
				types.TypeString(t, types.RelativeTo(w.types)), held)
		}
	}
}

// selector keeps the words of a private vector to the functions of engine/protocol
// that are named here.
func (w *walk) selector(n *ast.SelectorExpr) {
	s := w.info.Selections[n]
	if s == nil || s.Kind() != types.FieldVal {
		return
	}
	receiver := s.Recv()
	if p, ok := types.Unalias(receiver).(*types.Pointer); ok {
		receiver = p.Elem()
	}
	if !private[nameOf(receiver)] || openers[w.within] {
		return
	}
	w.report("openers", n.Pos(), "%s reads a %s, and is no release", w.within, nameOf(receiver))
}

// openers are the functions of engine/protocol that may touch the numbers of a
// private vector: those that write, and the releases, each of which asks the plan
// first (TestGate).
var openers = map[string]bool{
	"NewPrivate": true, "Private.len": true, "Private.Fill": true, "PrivateReals.len": true,
	"Party.Sum": true, "Party.Own": true, "Party.Open": true, "Party.OwnReals": true, "Party.Choose": true,
}

// networks are the packages that carry messages between machines: bytes that
// protocol.OverMail gives them, and no record; and those that show an operator the
// course of a study.
var networks = map[string]bool{"engine/study": true, "engine/study/bus": true, "engine/study/page": true,
	"engine/study/trace": true}

// imports keeps the network and encoders that read types to the packages that are
// for them.
func (w *walk) imports(i *ast.ImportSpec) {
	path := strings.Trim(i.Path.Value, `"`)
	if networks[w.name] {
		return
	}
	below := strings.HasPrefix(w.name, "engine") || strings.HasPrefix(w.name, "internal") ||
		strings.HasPrefix(w.name, "flow") || strings.HasPrefix(w.name, "kernels")
	switch {
	case !below:
	case path == "net" || strings.HasPrefix(path, "net/"), path == "log", path == "log/slog", path == "encoding/gob",
		path == "encoding/xml", path == "expvar", path == "plugin":
		w.report("imports", i.Pos(), "imports %s: what a party computes leaves by protocol.Transport only", path)
	}
}

// surface looks at what a package shows: no exported field, variable or result is
// a private vector, and no type that is encoded as JSON leads to what is sealed.
func (w *walk) surface() {
	scope := w.types.Scope()
	for _, name := range scope.Names() {
		switch o := scope.Lookup(name).(type) {
		case *types.Var:
			if held := w.holds(o.Type()); held != "" {
				w.report("surface", o.Pos(), "the variable %s of the package holds a %s", name, held)
			}
		case *types.Func:
			w.shows(o)
		case *types.TypeName:
			n, ok := o.Type().(*types.Named)
			if !ok {
				continue
			}
			for m := range n.Methods() {
				w.shows(m)
			}
			if s, ok := n.Underlying().(*types.Struct); ok {
				w.fields(n, s)
			}
		}
	}
}

// shows looks at the results of an exported function.
func (w *walk) shows(f *types.Func) {
	if !f.Exported() || w.name == "engine/protocol" {
		return
	}
	for r := range f.Signature().Results().Variables() {
		if isPrivate(r.Type()) {
			w.report("surface", f.Pos(), "%s returns a private vector", f.Name())
		}
	}
}

func (w *walk) fields(n *types.Named, s *types.Struct) {
	for i := range s.NumFields() {
		f, tag := s.Field(i), s.Tag(i)
		switch {
		case !f.Exported():
		case transports[nameOf(f.Type())] && w.name == "engine/protocol":
			w.report("surface", f.Pos(), "%s.%s hands a %s to methods", n.Obj().Name(), f.Name(), nameOf(f.Type()))
		case isPrivate(f.Type()) && w.name != "engine/protocol":
			w.report("surface", f.Pos(), "%s.%s shows a private vector", n.Obj().Name(), f.Name())
		case strings.Contains(tag, `json:`) && !strings.Contains(tag, `json:"-"`) && w.holds(f.Type()) != "":
			w.report("surface", f.Pos(), "%s.%s, encoded as JSON, holds a %s", n.Obj().Name(), f.Name(), w.holds(f.Type()))
		}
	}
}

// isPrivate tells whether a type is a private vector, or pointers or lists of them.
func isPrivate(t types.Type) bool {
	t = types.Unalias(t)
	if private[nameOf(t)] {
		return true
	}
	e, ok := t.(interface{ Elem() types.Type })
	return ok && isPrivate(e.Elem())
}
