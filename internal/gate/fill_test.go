package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// fill looks at what writes into a private vector: it neither keeps the slice nor
// lets a number of it out.
func (w *walk) fill(n *ast.CallExpr) {
	if !w.writer(w.source, n.Args[0], map[types.Object]bool{}) {
		w.report("fill", n.Pos(), "%s: what fills this private vector cannot be read here: pass a function", w.within)
	}
}

// writer follows an expression to the functions it may be, and reads them.
func (w *walk) writer(s *source, x ast.Expr, seen map[types.Object]bool) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.FuncLit:
		w.leaks(s, x.Type, x.Body, 0)
		return true
	case *ast.CallExpr: // a function that returns one
		f := callee(s, x)
		fd := w.bodies[f]
		if fd == nil {
			return false
		}
		return w.returned(w.owner[fd], fd, seen)
	case *ast.Ident:
		return w.object(s.info.Uses[x], seen)
	case *ast.SelectorExpr:
		return w.object(s.info.Uses[x.Sel], seen)
	}
	return false
}

// returned reads the functions that a function returns.
func (w *walk) returned(s *source, fd *ast.FuncDecl, seen map[types.Object]bool) bool {
	some, all := false, true
	ast.Inspect(fd.Body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			some = true
			all = w.writer(s, r.Results[0], seen) && all
		}
		return true
	})
	return some && all
}

// object reads the functions that a variable, field or parameter may be.
func (w *walk) object(o types.Object, seen map[types.Object]bool) bool {
	if seen[o] {
		return true
	}
	seen[o] = true
	if f, ok := o.(*types.Func); ok {
		fd := w.bodies[f]
		if fd == nil {
			return false
		}
		w.leaks(w.owner[fd], fd.Type, fd.Body, 0)
		return true
	}
	some, all := false, true
	for _, s := range w.sources() {
		for _, f := range s.files {
			ast.Inspect(f, func(n ast.Node) bool {
				for _, x := range assigned(s, n, o) {
					some = true
					all = w.writer(s, x, seen) && all
				}
				return true
			})
		}
	}
	return some && all
}

// sources are the packages of the program and the one that is read.
func (w *walk) sources() []*source {
	for _, s := range w.packages {
		if s == w.source {
			return w.packages
		}
	}
	return append(w.packages[:len(w.packages):len(w.packages)], w.source)
}

// assigned are the expressions that a node makes the value of a variable: by
// assignment, as a field, or as an argument.
func assigned(s *source, n ast.Node, o types.Object) []ast.Expr {
	is := func(x ast.Expr) bool {
		switch x := x.(type) {
		case *ast.Ident:
			return s.info.Uses[x] == o || s.info.Defs[x] == o
		case *ast.SelectorExpr:
			return s.info.Uses[x.Sel] == o
		}
		return false
	}
	var all []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, x := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) && is(x) {
				all = append(all, n.Rhs[i])
			}
		}
	case *ast.KeyValueExpr:
		if is(n.Key) {
			all = append(all, n.Value)
		}
	case *ast.CallExpr:
		f := callee(s, n)
		if f == nil {
			return nil
		}
		for i := range min(f.Signature().Params().Len(), len(n.Args)) {
			if f.Signature().Params().At(i) == o {
				all = append(all, n.Args[i])
			}
		}
	}
	return all
}

// callee is the function or method that a call names, nil for others.
func callee(s *source, n *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	case *ast.IndexExpr:
		id, _ = fun.X.(*ast.Ident)
	}
	if id == nil {
		return nil
	}
	f, _ := s.info.Uses[id].(*types.Func)
	if f != nil {
		f = f.Origin()
	}
	return f
}

// leak follows one parameter through a function.
type leak struct {
	*walk
	s       *source
	body    *ast.BlockStmt
	tainted map[types.Object]bool
}

// leaks reads a function whose parameter i is the words of a private vector.
func (w *walk) leaks(s *source, t *ast.FuncType, body *ast.BlockStmt, i int) {
	at := 0
	for _, field := range t.Params.List {
		for _, name := range field.Names {
			if at == i {
				w.follow(s, body, s.info.Defs[name])
			}
			at++
		}
	}
}

// follow reads a body in which an object is private, once.
func (w *walk) follow(s *source, body *ast.BlockStmt, o types.Object) {
	if o == nil || body == nil {
		return
	}
	if w.followed == nil {
		w.followed = map[types.Object]bool{}
	}
	if w.followed[o] {
		return
	}
	w.followed[o] = true
	l := &leak{walk: w, s: s, body: body, tainted: map[types.Object]bool{o: true}}
	for before := 0; before != len(l.tainted); { // until no further variable turns out to be private
		before = len(l.tainted)
		ast.Inspect(body, func(n ast.Node) bool { l.spread(n); return true })
	}
	ast.Inspect(body, func(n ast.Node) bool { l.look(n); return true })
}

// spread makes variables of the function private that private numbers are assigned to.
func (l *leak) spread(n ast.Node) {
	mark := func(x ast.Expr) {
		if id, ok := x.(*ast.Ident); ok {
			if o := l.s.info.Defs[id]; o != nil {
				l.tainted[o] = true
			} else if o := l.s.info.Uses[id]; o != nil && l.inside(o) {
				l.tainted[o] = true
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, x := range n.Rhs {
			if !l.private(x) {
				continue
			}
			if len(n.Lhs) == len(n.Rhs) {
				mark(n.Lhs[i])
				continue
			}
			for _, y := range n.Lhs {
				mark(y)
			}
		}
	case *ast.RangeStmt:
		if l.private(n.X) && n.Value != nil {
			mark(n.Value)
		}
	}
}

// inside tells whether a variable is declared in the function that is read.
func (l *leak) inside(o types.Object) bool { return l.body.Pos() <= o.Pos() && o.Pos() < l.body.End() }

// private tells whether an expression has a private number: lengths have none, and
// calls only have what they get.
func (l *leak) private(x ast.Node) bool {
	if x == nil {
		return false
	}
	found := false
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "len" || id.Name == "cap") {
				return false
			}
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "copy" {
				return false // how many: public
			}
			if f := callee(l.s, n); f != nil && errorOnly(f) {
				return false // what it returns is looked at where it is made
			}
		case *ast.Ident:
			found = found || l.tainted[l.s.info.Uses[n]]
		}
		return !found
	})
	return found
}

// errorOnly tells whether a function returns an error or nothing.
func errorOnly(f *types.Func) bool {
	r := f.Signature().Results()
	return r.Len() == 0 || r.Len() == 1 && types.Identical(r.At(0).Type(), types.Universe.Lookup("error").Type())
}

// look reports private numbers that leave the function.
func (l *leak) look(n ast.Node) {
	switch n := n.(type) {
	case *ast.ReturnStmt:
		for _, x := range n.Results {
			if l.private(x) {
				l.out(x.Pos(), "returns")
			}
		}
	case *ast.SendStmt:
		if l.private(n.Value) {
			l.out(n.Pos(), "sends")
		}
	case *ast.AssignStmt:
		for i, x := range n.Lhs {
			y := n.Rhs[min(i, len(n.Rhs)-1)]
			if l.private(y) && !l.ours(x) {
				l.out(x.Pos(), "keeps")
			}
		}
	case *ast.CallExpr:
		l.pass(n)
	}
}

// ours tells whether what is assigned to belongs to the function or the vector.
func (l *leak) ours(x ast.Expr) bool {
	for {
		switch y := ast.Unparen(x).(type) {
		case *ast.IndexExpr:
			x = y.X
		case *ast.SliceExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		case *ast.SelectorExpr:
			x = y.X
		case *ast.Ident:
			o := l.s.info.Uses[y]
			if o == nil {
				o = l.s.info.Defs[y]
			}
			return y.Name == "_" || l.tainted[o] || o != nil && l.inside(o)
		default:
			return false
		}
	}
}

func (l *leak) out(pos token.Pos, how string) {
	l.report("fill", pos, "what fills a private vector %s a number of it", how)
}

// pass looks at a call that gets private numbers: a function of the module is read
// in its turn, others may compute but not print.
func (l *leak) pass(n *ast.CallExpr) {
	if tv := l.s.info.Types[ast.Unparen(n.Fun)]; tv.IsType() {
		return
	}
	if id, ok := n.Fun.(*ast.Ident); ok && l.s.info.Types[n.Fun].IsBuiltin() {
		if id.Name == "copy" && l.private(n.Args[1]) && !l.ours(n.Args[0]) || id.Name == "panic" && l.private(n.Args[0]) {
			l.out(n.Pos(), "gives "+id.Name)
		}
		return
	}
	for i, x := range n.Args {
		if !l.private(x) {
			continue
		}
		f := callee(l.s, n)
		switch fd := l.bodies[f]; {
		case f == nil:
			l.out(x.Pos(), "gives a function that cannot be read")
		case fd != nil && fd.Body != nil:
			l.leaks(l.owner[fd], fd.Type, fd.Body, min(i, f.Signature().Params().Len()-1))
		case fd != nil: // assembly
		case !computes(f):
			l.out(x.Pos(), "gives "+f.FullName())
		}
	}
}

// computes tells whether a function of another module only computes.
func computes(f *types.Func) bool {
	if f.Pkg() == nil {
		return false
	}
	path := f.Pkg().Path()
	return path == "math" || path == "slices" || path == "sort" || path == "cmp" || strings.HasPrefix(path, "math/")
}
