package latchkeyvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// SelfLock reports a Lock, or a Do, of a lock that the function holds already, with a context that does not
// say so: the context that the first call was given, or a new one. It waits for itself until its context
// ends. Only the context of the hold re-enters. A reader waits for itself as soon as a writer has come in
// between.
var SelfLock = newAnalyzer("selflock", "report a lock that is taken again without the context of its hold", runSelfLock, holds)

func runSelfLock(pass *analysis.Pass) {
	for _, a := range pass.ResultOf[holds].([]*acquired) {
		lock, key := locked(pass.TypesInfo, a.call)
		if a.hold == nil || lock == nil || a.shared(pass.TypesInfo) {
			continue
		}
		reported := map[*ast.CallExpr]bool{}
		a.follow(pass.TypesInfo, func(n ast.Node) bool {
			for _, call := range callsIn(n) {
				other, sameKey := locked(pass.TypesInfo, call)
				if call == a.call || other != lock || sameKey != key || reported[call] || !a.waits(pass.TypesInfo, call) {
					continue
				}
				reported[call] = true
				pass.ReportRangef(call, "%s is held here, so this waits for itself until its context ends. Pass %s.Context(): it re-enters",
					key, a.hold.Name())
			}
			if n == a.statement() || changes(pass.TypesInfo, n, lock, key) ||
				assigns(pass.TypesInfo, n, variable(pass.TypesInfo, a.call.Args[0])) {
				return false // another round, another lock, or another context
			}
			return a.defers(pass.TypesInfo, n) || a.use(pass.TypesInfo, n) == unused
		})
	}
}

// locked returns the variable that the lock of a call is, or that it is a field of, and how it is written;
// nil when it is no lock that excludes its own goroutine, or is computed.
func locked(info *types.Info, call *ast.CallExpr) (v *types.Var, key string) {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return nil, ""
	}
	if in, name := named(info.TypeOf(selector.X)); name != "Lock" || in != "" && in != "multilock" {
		return nil, ""
	}
	for e := selector.X; ; {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.Ident:
			return variable(info, x), types.ExprString(selector.X)
		default:
			return nil, ""
		}
	}
}

// changes reports whether a node makes another lock of what a variable is, or of a field that is written so.
func changes(info *types.Info, n ast.Node, lock *types.Var, key string) bool {
	if s, ok := n.(*ast.AssignStmt); ok {
		for _, left := range s.Lhs {
			if strings.HasPrefix(key, types.ExprString(left)) {
				return true
			}
		}
	}
	return assigns(info, n, lock)
}

// waits reports whether a call of a lock waits with a context that knows nothing of the hold.
func (a *acquired) waits(info *types.Info, call *ast.CallExpr) bool {
	if method := ast.Unparen(call.Fun).(*ast.SelectorExpr).Sel.Name; method != "Lock" && method != "Do" {
		return false
	}
	if fresh, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr); ok {
		return calls(info, fresh, "context", "Background", "TODO")
	}
	v := variable(info, call.Args[0])
	return v != nil && v == variable(info, a.call.Args[0])
}

// callsIn are the calls of a node that are made when it runs: not those of functions inside it, nor one
// that is deferred or has a goroutine of its own.
func callsIn(n ast.Node) (all []*ast.CallExpr) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.DeferStmt, *ast.GoStmt:
			return false
		case *ast.CallExpr:
			all = append(all, n)
		}
		return true
	})
	return all
}
