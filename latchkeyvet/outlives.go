package latchkeyvet

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/analysis"
)

// Outlives reports a goroutine that the function of a Do begins and does not wait for. If it uses neither the
// function's context nor its hold, it goes on beside the next holder. If it uses them, it is reported only if
// nothing but a return follows: its context ends at once.
var Outlives = newAnalyzer("outlives", "report goroutines that outlive the lock under which they begin", runOutlives)

func runOutlives(pass *analysis.Pass) {
	for _, file := range pass.Files {
		eachGuarded(pass, file, func(call *ast.CallExpr, f *ast.FuncLit) {
			g := newGuarded(pass, call, f)
			ast.PreorderStack(f.Body, nil, func(n ast.Node, stack []ast.Node) bool {
				if _, ok := n.(*ast.FuncLit); ok && !g.runs(append(stack, n)) {
					return false
				}
				if s, ok := n.(*ast.GoStmt); ok && !g.awaits(s) {
					g.outlives(s)
				}
				return true
			})
		})
	}
}

func (g *guarded) outlives(s *ast.GoStmt) {
	switch {
	case !mentions(g.pass.TypesInfo, s, g.own) && !g.mentionsHold(s):
		g.pass.ReportRangef(s, "this goroutine goes on when the function has returned, beside the next holder: wait for it here, or begin it after that")
	case g.isLast(s):
		g.pass.ReportRangef(s, "the context of this goroutine ends as soon as the function returns, which is now: wait for it here")
	}
}

// mentionsHold reports whether a goroutine asks what is held.
func (g *guarded) mentionsHold(s *ast.GoStmt) bool {
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v := g.pass.TypesInfo.Uses[id]; v != nil && within(g.f.Type, v.Pos()) {
				found = true
			}
		}
		return !found
	})
	return found
}

// isLast reports whether nothing but a return follows in the function.
func (g *guarded) isLast(s *ast.GoStmt) bool {
	for i, one := range g.f.Body.List {
		if one != ast.Stmt(s) {
			continue
		}
		rest := g.f.Body.List[i+1:]
		if len(rest) == 0 {
			return true
		}
		end, ok := rest[0].(*ast.ReturnStmt)
		return ok && (len(end.Results) == 0 || g.pass.TypesInfo.Types[end.Results[0]].IsNil())
	}
	return false
}

// awaits reports whether the function waits for something after it has begun a goroutine: a method Wait, or a channel.
func (g *guarded) awaits(s *ast.GoStmt) bool {
	found := false
	ast.Inspect(g.f.Body, func(n ast.Node) bool {
		if n == nil || n == ast.Node(s) || found {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok {
				found = selector.Sel.Name == "Wait" && (n.Pos() > s.Pos() || isDeferred(g.f.Body, n))
			}
		case *ast.UnaryExpr:
			found = n.Op == token.ARROW && (n.Pos() > s.Pos() || isDeferred(g.f.Body, n))
		case *ast.RangeStmt:
			found = n.Pos() > s.Pos() && isChannel(g.pass.TypesInfo.TypeOf(n.X))
		}
		return true
	})
	return found
}

// isDeferred reports whether a node stands in a defer.
func isDeferred(body *ast.BlockStmt, n ast.Node) bool {
	found := false
	ast.Inspect(body, func(at ast.Node) bool {
		if d, ok := at.(*ast.DeferStmt); ok {
			found = found || within(d, n.Pos())
		}
		return !found
	})
	return found
}
