package latchkeyvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// LockLoop reports a defer in a loop that goes on: it gives back what the round takes, but only when the
// function returns. So holds pile up. If each round takes the same lock, the second round waits for the
// first, for ever.
//
// A loop that takes another lock in each round may mean to hold them all at the end. It is reported only if
// the rest of the round works with the context of its hold, or gives the hold to package fence.
var LockLoop = newAnalyzer("lockloop", "report a deferred Unlock or Release in a loop that goes on", runLockLoop, holds)

func runLockLoop(pass *analysis.Pass) {
	for _, a := range pass.ResultOf[holds].([]*acquired) {
		loop := a.loop()
		if a.hold == nil || loop == nil {
			continue
		}
		reported := false
		a.follow(pass.TypesInfo, func(n ast.Node) bool {
			if !a.defers(pass.TypesInfo, n) {
				return a.use(pass.TypesInfo, n) == unused && n != a.statement()
			}
			if !reported && a.loops(n) && (a.isSame(pass.TypesInfo, loop) || a.works(pass.TypesInfo, loop, n)) {
				reported = true
				w := a.words(pass.TypesInfo)
				pass.ReportRangef(n, "this %s runs when the function returns, and not at the end of the round: by then every round has taken %s. "+
					"Make the round a function, or use Do. To hold several locks at once use package multilock", w.release, w.what)
			}
			return false
		})
	}
}

// loop is the innermost one around the acquire, without that of its function; nil when there is none.
func (a *acquired) loop() ast.Node {
	for i := len(a.stack) - 1; i >= 0; i-- {
		switch a.stack[i].(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return a.stack[i]
		}
	}
	return nil
}

// isSame reports whether every round of a loop takes the same lock: the loop neither declares nor assigns the
// variables that it is made of, and calls nothing to get it.
func (a *acquired) isSame(info *types.Info, loop ast.Node) bool {
	same := true
	ast.Inspect(a.lock(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.IndexExpr:
			same = false
		case *ast.Ident:
			if v, ok := info.Uses[n].(*types.Var); ok && !v.IsField() {
				same = same && !within(loop, v.Pos())
				ast.Inspect(loop, func(n ast.Node) bool {
					_, isUse := n.(*ast.Ident)
					same = same && (isUse || !assigns(info, n, v))
					return same
				})
			}
		}
		return same
	})
	return same
}

// works reports whether the rest of a round, after a defer, hands the context of the hold to a function, or
// writes with the hold.
func (a *acquired) works(info *types.Info, loop, after ast.Node) (found bool) {
	ast.Inspect(loop, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || call.Pos() < after.End() {
			return !found
		}
		found = found || isFence(info, call) && mentions(info, call, a.hold)
		for _, argument := range call.Args {
			if context, ok := ast.Unparen(argument).(*ast.CallExpr); ok {
				selector, isMethod := context.Fun.(*ast.SelectorExpr)
				found = found || isMethod && selector.Sel.Name == "Context" && variable(info, selector.X) == a.hold
			}
		}
		return !found
	})
	return found
}
