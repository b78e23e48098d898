package latchkeyvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// LostUnlock reports a hold, or permits, that some way through the function does not give back. If you return
// it, store it, pass it on or use it in a closure, other code gives it back. It says nothing of tests: their
// holds end with their clients.
var LostUnlock = newAnalyzer("lostunlock", "report holds and permits that are not given back on every path", runLostUnlock, holds)

func runLostUnlock(pass *analysis.Pass) {
	for _, a := range pass.ResultOf[holds].([]*acquired) {
		if !inTest(pass, a.call.Pos()) {
			lostUnlock(pass, a)
		}
	}
}

func lostUnlock(pass *analysis.Pass, a *acquired) {
	w := a.words(pass.TypesInfo)
	switch s := a.statement().(type) {
	case *ast.DeferStmt:
		pass.ReportRangef(s, "this defer takes %s when the function returns, and nobody gives it back: was %s meant?", w.what, w.release)
		return
	case *ast.ExprStmt, *ast.GoStmt:
		pass.ReportRangef(s, "what %s returns is dropped, so nobody can give it back, and %s. Keep it and call %s, or use Do",
			a.method(), w.harm, w.release)
		return
	case *ast.AssignStmt:
		if len(s.Lhs) == 2 && isBlank(s.Lhs[0]) {
			reportBlank(pass, a, w, s.Lhs[0])
			return
		}
	case *ast.ValueSpec:
		if len(s.Names) == 2 && isBlank(s.Names[0]) {
			reportBlank(pass, a, w, s.Names[0])
			return
		}
	}
	if a.hold == nil || a.shared(pass.TypesInfo) {
		return
	}
	var lost *ast.ReturnStmt
	again, ever := false, false
	a.follow(pass.TypesInfo, func(n ast.Node) bool {
		if assigns(pass.TypesInfo, n, a.hold) {
			again = again || n == a.statement()
			return false
		}
		switch a.use(pass.TypesInfo, n) {
		case released, escaped:
			ever = true
			return false
		}
		s, ok := n.(*ast.ReturnStmt)
		if ok && (len(s.Results) > 0 || !a.isResult(pass.TypesInfo)) && (lost == nil || s.Pos() < lost.Pos()) {
			lost = s
		}
		return !ok
	})
	switch {
	case again:
		pass.ReportRangef(a.call, "%s comes here again before %s has been given back, and %s. Call %s.%s at the end of each round, or use Do",
			"the loop", a.hold.Name(), w.harm, a.hold.Name(), w.release)
	case lost != nil:
		d := analysis.Diagnostic{
			Pos: a.call.Pos(), End: a.call.End(),
			Message: fmt.Sprintf("%s is not given back on the way to the return on line %d, and %s. Write defer %s.%s(ctx) after the check of the error, or use Do",
				a.hold.Name(), pass.Fset.Position(lost.Pos()).Line, w.harm, a.hold.Name(), w.release),
		}
		if !ever {
			d.SuggestedFixes = a.deferred(pass.TypesInfo, w.release)
		}
		pass.Report(d)
	}
}

func reportBlank(pass *analysis.Pass, a *acquired, w words, blank ast.Expr) {
	pass.ReportRangef(blank, "what %s returns is assigned to _, so nobody can give it back, and %s. Keep it and call %s, or use Do. "+
		"To see whether it is taken use Inspect", a.method(), w.harm, w.release)
}

// words are how a message speaks of what is acquired.
type words struct{ what, release, harm string }

func (a *acquired) words(info *types.Info) words {
	if results, ok := info.TypeOf(a.call).(*types.Tuple); ok && isPermits(results.At(0).Type()) {
		return words{"permits", "Release", "they stay taken for as long as the process lives"}
	}
	return words{"the lock", "Unlock", "the lock stays taken for as long as the process lives"}
}

// isResult reports whether a return without values returns the hold.
func (a *acquired) isResult(info *types.Info) bool {
	var f *ast.FuncType
	switch n := a.function.(type) {
	case *ast.FuncDecl:
		f = n.Type
	case *ast.FuncLit:
		f = n.Type
	}
	return f.Results != nil && within(f.Results, a.hold.Pos()) && info.Defs != nil
}

// deferred is the fix: a defer after the check of the error, which is the next statement. There is none
// where that is not as plain: in a loop, or when ctx is more than a variable.
func (a *acquired) deferred(info *types.Info, release string) []analysis.SuggestedFix {
	if len(a.call.Args) == 0 || variable(info, a.call.Args[0]) == nil || len(a.stack) < 2 || a.loops(a.statement()) {
		return nil
	}
	block, ok := a.stack[len(a.stack)-2].(*ast.BlockStmt)
	if !ok {
		return nil
	}
	for i, s := range block.List[:len(block.List)-1] {
		check, ok := block.List[i+1].(*ast.IfStmt)
		if s != a.statement() || !ok || check.Else != nil || check.Init != nil {
			continue
		}
		is, ok := check.Cond.(*ast.BinaryExpr)
		if !ok || is.Op != token.NEQ || variable(info, is.X) != a.err || !info.Types[is.Y].IsNil() {
			continue
		}
		text := fmt.Sprintf("\ndefer %s.%s(%s)", a.hold.Name(), release, a.call.Args[0].(*ast.Ident).Name)
		return []analysis.SuggestedFix{{
			Message:   "give it back when the function returns",
			TextEdits: []analysis.TextEdit{{Pos: check.End(), End: check.End(), NewText: []byte(text)}},
		}}
	}
	return nil
}
