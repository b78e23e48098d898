package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/analysis"
)

// WaitTimeout reports a deadline that is made for the wait, and bounds the work as well: the hold's context,
// and the context of a Do's function, are derived from it. TryLockFor, TryAcquireFor and TryDoFor bound the
// wait alone.
//
// A deadline for both may be meant. So it is reported only if the context is used for this call alone, and
// something says that it is for the wait: its name; the context before it, which the work is given; an end of
// the deadline that is taken for a lock that was not acquired; or a cancel while the lock is held.
var WaitTimeout = newAnalyzer("waittimeout", "report a deadline for the wait that bounds the work as well", runWaitTimeout)

func runWaitTimeout(pass *analysis.Pass) {
	for _, file := range pass.Files {
		if inTest(pass, file.Pos()) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					waitTimeout(pass, n.Body)
				}
			case *ast.FuncLit:
				waitTimeout(pass, n.Body)
			}
			return true
		})
	}
}

// limited is a context with a deadline that a function makes.
type limited struct {
	ctx, cancel *types.Var
	parent      *types.Var // nil: it is no variable
}

func waitTimeout(pass *analysis.Pass, body *ast.BlockStmt) {
	for _, l := range limits(pass.TypesInfo, body) {
		call := l.onlyCall(pass.TypesInfo, body)
		if call == nil {
			continue
		}
		method := ast.Unparen(call.Fun).(*ast.SelectorExpr).Sel.Name
		instead := map[string]string{"Lock": "TryLockFor", "Acquire": "TryAcquireFor", "Do": "TryDoFor"}[method]
		switch {
		case method != "Do" && l.cancelled(pass.TypesInfo, body, call):
			pass.ReportRangef(call, "%s ends the context of what is held here: %s bounds the wait alone, and needs no %s",
				l.cancel.Name(), instead, l.cancel.Name())
		case l.isForWait(pass.TypesInfo, body, call):
			pass.ReportRangef(call.Args[0], "the deadline of %s bounds what is done with the lock as well: %s bounds the wait alone",
				l.ctx.Name(), instead)
		}
	}
}

// limits finds the contexts with a deadline that a function makes under another name, without the functions in it.
func limits(info *types.Info, body *ast.BlockStmt) (all []limited) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		s, ok := n.(*ast.AssignStmt)
		if !ok || len(s.Lhs) != 2 || len(s.Rhs) != 1 {
			return true
		}
		call, ok := ast.Unparen(s.Rhs[0]).(*ast.CallExpr)
		if !ok || !calls(info, call, "context", "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause") {
			return true
		}
		l := limited{variable(info, s.Lhs[0]), variable(info, s.Lhs[1]), variable(info, call.Args[0])}
		if l.ctx != nil && l.cancel != nil && l.ctx != l.parent && (l.parent == nil || l.ctx.Name() != l.parent.Name()) {
			all = append(all, l)
		}
		return true
	})
	return all
}

// onlyCall returns the call that waits with the context, if that is its only use.
func (l limited) onlyCall(info *types.Info, body *ast.BlockStmt) (only *ast.CallExpr) {
	uses := 0
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if info.Uses[n] == l.ctx {
				uses++
			}
		case *ast.CallExpr:
			if len(n.Args) > 0 && variable(info, n.Args[0]) == l.ctx && waitsForOurs(info, n) {
				only = n
			}
		}
		return true
	})
	if uses != 1 {
		return nil
	}
	return only
}

// waitsForOurs reports whether a call waits for a lock or permits as long as its context lets it.
func waitsForOurs(info *types.Info, call *ast.CallExpr) bool {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Lock", "Acquire":
		return acquires(info, call)
	case "Do":
		in, name := named(info.TypeOf(selector.X))
		return name == "Lock" && (in == "" || in == "multilock") || name == "Semaphore" && in == "semaphore"
	}
	return false
}

// cancelled reports whether the context is cancelled after a call, by no defer, and the hold's context is used after
// that.
func (l limited) cancelled(info *types.Info, body *ast.BlockStmt, call *ast.CallExpr) bool {
	cancelled := token.NoPos
	for _, s := range body.List { // only where it is plain: in the statements of the function itself
		if s, ok := s.(*ast.ExprStmt); ok && s.Pos() > call.End() && cancelled == token.NoPos {
			if c, ok := s.X.(*ast.CallExpr); ok && variable(info, c.Fun) == l.cancel {
				cancelled = c.Pos()
			}
		}
	}
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && cancelled != token.NoPos && n.Pos() > cancelled {
			found = found || selector.Sel.Name == "Context" && isHold(info.TypeOf(selector.X))
		}
		return !found
	})
	return found
}

// forWait is a name of a context that is for a wait.
var forWait = regexp.MustCompile(`(?i)wait|acquir|lock`)

// isForWait reports whether something says that the deadline is for the wait alone.
func (l limited) isForWait(info *types.Info, body *ast.BlockStmt, call *ast.CallExpr) bool {
	if forWait.MatchString(l.ctx.Name()) {
		return true
	}
	isDo := ast.Unparen(call.Fun).(*ast.SelectorExpr).Sel.Name == "Do"
	ended, notRun, given := false, false, false // the end is taken for not acquired, ErrNotRun is known, the work is given the other
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if calls(info, n, "errors", "Is") && len(n.Args) == 2 && n.Pos() > call.Pos() {
				ended = ended || isVar(info, n.Args[1], "context", "DeadlineExceeded")
			}
			if n.Pos() > call.Pos() && l.parent != nil && !releases(info, n) && !calls(info, n, "log/slog") && !calls(info, n, "context") {
				for _, argument := range n.Args {
					given = given || variable(info, argument) == l.parent && (!isDo || within(call, n.Pos()))
				}
			}
		case *ast.SelectorExpr:
			notRun = notRun || isVar(info, n, module, "ErrNotRun")
		}
		return true
	})
	return given || ended && (!isDo || !notRun)
}

// isVar reports whether an expression is a variable of another package.
func isVar(info *types.Info, e ast.Expr, path, name string) bool {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	v, ok := info.Uses[selector.Sel].(*types.Var)
	return ok && v.Name() == name && v.Pkg() != nil && v.Pkg().Path() == path
}
