package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// path follows all ways that a function can go from where something is acquired, as long as it was: where
// the error is not nil, or the hold is, a way ends.
type path struct {
	*acquired
	info   *types.Info
	guards map[string]bool // conditions under which it is acquired, as they are written
	visit  func(ast.Node) (goOn bool)
	seen   map[place]bool
}

// place is where a way has come to, and whether the variable of the error still has that of the acquire.
type place struct {
	block *cfg.Block
	fresh bool
}

// follow calls visit with what comes after the acquire, in order, on every way. A way ends where visit says
// so. It also ends where the error, or whether there is a hold, is looked at in a manner that is not
// understood: better nothing is reported than something wrong.
func (a *acquired) follow(info *types.Info, visit func(ast.Node) bool) {
	p := &path{a, info, a.guards(info), visit, map[place]bool{}}
	for _, b := range a.graph.Blocks {
		for i, n := range b.Nodes {
			if n == a.statement() {
				p.walk(b, len(ranged(b))+i+1, a.err != nil)
				return
			}
		}
	}
}

func (p *path) walk(b *cfg.Block, start int, fresh bool) {
	decides := condition(b)
	for _, n := range append(ranged(b), b.Nodes...)[start:] {
		if !p.visit(n) {
			return
		}
		if n == decides {
			break
		}
		if p.obscure(n, fresh) {
			return
		}
		if assigns(p.info, n, p.err) {
			fresh = false
		}
	}
	is := unknown
	if decides != nil {
		is = p.evaluate(decides.(ast.Expr), fresh)
	}
	for i, next := range b.Succs {
		at := place{next, fresh}
		if is == unclear || decides != nil && (is == no && i == 0 || is == yes && i == 1) || p.seen[at] {
			continue
		}
		p.seen[at] = true
		p.walk(next, 0, fresh)
	}
}

// ranged are the variables that a round of a range begins with. The graph has them once, before the loop.
func ranged(b *cfg.Block) (all []ast.Node) {
	if s, ok := b.Stmt.(*ast.RangeStmt); ok && b.Kind == cfg.KindRangeBody {
		for _, e := range []ast.Expr{s.Key, s.Value} {
			if e != nil {
				all = append(all, e)
			}
		}
	}
	return all
}

// condition is the node that decides which way goes on from a block; nil when none does, as in a select.
func condition(b *cfg.Block) ast.Node {
	if len(b.Succs) != 2 || len(b.Nodes) == 0 || b.Kind == cfg.KindRangeLoop {
		return nil
	}
	if e, ok := b.Nodes[len(b.Nodes)-1].(ast.Expr); ok {
		return e
	}
	return nil
}

// truth is what is known of a condition.
type truth int

const (
	unknown truth = iota
	yes
	no
	unclear // it depends on the error in a manner that is not understood
)

func (t truth) not() truth {
	switch t {
	case yes:
		return no
	case no:
		return yes
	default:
		return t
	}
}

func known(is bool) truth {
	if is {
		return yes
	}
	return no
}

// both is what is known of two conditions together.
func both(a, b truth) truth {
	switch {
	case a == no || b == no:
		return no
	case a == unclear || b == unclear:
		return unclear
	case a == yes && b == yes:
		return yes
	default:
		return unknown
	}
}

// evaluate says what is known of a condition while the hold is held, and not lost.
func (p *path) evaluate(e ast.Expr, fresh bool) truth {
	e = ast.Unparen(e)
	if is, found := p.guards[types.ExprString(e)]; found {
		return known(is)
	}
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return p.evaluate(e.X, fresh).not()
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND:
			return both(p.evaluate(e.X, fresh), p.evaluate(e.Y, fresh))
		case token.LOR:
			return both(p.evaluate(e.X, fresh).not(), p.evaluate(e.Y, fresh).not()).not()
		case token.EQL, token.NEQ:
			if isNil, understood := p.isNil(e, fresh); understood {
				return known(isNil == (e.Op == token.EQL))
			}
		}
	case *ast.CallExpr:
		if p.isHoldMethod(e, "Held") {
			return yes
		}
		if fresh && calls(p.info, e, "errors", "Is", "As") && len(e.Args) == 2 && variable(p.info, e.Args[0]) == p.err {
			return no
		}
	}
	if fresh && mentions(p.info, e, p.err) {
		return unclear
	}
	return unknown
}

// isNil says whether what is compared with nil is nil.
func (p *path) isNil(e *ast.BinaryExpr, fresh bool) (is, understood bool) {
	x, y := ast.Unparen(e.X), ast.Unparen(e.Y)
	if p.info.Types[x].IsNil() {
		x, y = y, x
	}
	if !p.info.Types[y].IsNil() {
		return false, false
	}
	if call, ok := x.(*ast.CallExpr); ok {
		return true, p.isHoldMethod(call, "Err")
	}
	switch v := variable(p.info, x); v {
	case nil:
		return false, false
	case p.hold:
		return false, true
	default:
		return true, v == p.err && fresh
	}
}

func (p *path) isHoldMethod(call *ast.CallExpr, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == name && variable(p.info, selector.X) == p.hold
}

// obscure reports whether a statement, or what a switch is about, looks at whether there is a hold, so that
// what comes later depends on it.
func (p *path) obscure(n ast.Node, fresh bool) (found bool) {
	if e, ok := n.(ast.Expr); ok {
		return fresh && mentions(p.info, e, p.err) || variable(p.info, e) == p.hold
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			_, understood := p.isNil(n, fresh)
			found = found || understood
		case *ast.TypeAssertExpr:
			found = found || fresh && mentions(p.info, n.X, p.err)
		case *ast.CallExpr:
			found = found || fresh && calls(p.info, n, "errors", "Is", "As") && mentions(p.info, n, p.err)
		}
		return !found
	})
	return found
}

// guards are the conditions of the ifs around the acquire. One that is written again later is taken for the
// same, with the same value.
func (a *acquired) guards(info *types.Info) map[string]bool {
	all := map[string]bool{}
	var note func(e ast.Expr, is bool)
	note = func(e ast.Expr, is bool) {
		e = ast.Unparen(e)
		if both, ok := e.(*ast.BinaryExpr); ok && both.Op == token.LAND && is {
			note(both.X, is)
			note(both.Y, is)
		} else if not, ok := e.(*ast.UnaryExpr); ok && not.Op == token.NOT {
			note(not.X, !is)
		} else if !mentions(info, e, a.hold) && !mentions(info, e, a.err) {
			all[types.ExprString(e)] = is
		}
	}
	for i, n := range a.stack[:len(a.stack)-1] {
		if s, ok := n.(*ast.IfStmt); ok {
			switch a.stack[i+1] {
			case s.Body:
				note(s.Cond, true)
			case s.Else:
				note(s.Cond, false)
			}
		}
	}
	return all
}
