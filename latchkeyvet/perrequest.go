package latchkeyvet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// PerRequest reports a client that is opened for each request, run or round. A client dials, subscribes, and
// lets the goroutines of its process pass locks on: a process needs one. It reports a client that is opened
// in a handler of net/http, gin or echo, in the function of a Do, or in a loop that closes it and opens it
// with the same arguments in each round.
var PerRequest = newAnalyzer("perrequest", "report clients that are opened for each request", runPerRequest)

func runPerRequest(pass *analysis.Pass) {
	for _, file := range pass.Files {
		if inTest(pass, file.Pos()) {
			continue
		}
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains([]string{".Open", ".New", ".Wrap"}, name(pass.TypesInfo, call)) {
				return true
			}
			if where := again(pass.TypesInfo, call, stack); where != "" {
				pass.ReportRangef(call, "this opens a client %s: open one when the process begins, and share it", where)
			}
			return true
		})
	}
}

// again says why a call is made again and again; empty where that is not known.
func again(info *types.Info, call *ast.CallExpr, stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.FuncDecl:
			if handles(info, n.Type) {
				return "for each request"
			}
			return ""
		case *ast.FuncLit:
			if handles(info, n.Type) {
				return "for each request"
			}
			if outer, ok := parent(stack[:i]).(*ast.CallExpr); ok && outer.Fun != n && isGuarded(info, outer, n) {
				return "for each run"
			}
		case *ast.ForStmt:
			if !variesIn(info, n, call) && closes(info, n.Body, call) {
				return "for each round"
			}
		case *ast.RangeStmt:
			if !variesIn(info, n, call) && closes(info, n.Body, call) {
				return "for each round"
			}
		}
	}
	return ""
}

// handles reports whether a function is given a request.
func handles(info *types.Info, f *ast.FuncType) bool {
	for _, field := range f.Params.List {
		t := info.TypeOf(field.Type)
		if p, ok := types.Unalias(t).(*types.Pointer); ok {
			t = p.Elem()
		}
		n, ok := types.Unalias(t).(*types.Named)
		if !ok || n.Obj().Pkg() == nil {
			continue
		}
		switch n.Obj().Pkg().Path() + "." + n.Obj().Name() {
		case "net/http.Request", "github.com/gin-gonic/gin.Context", "github.com/labstack/echo/v4.Context":
			return true
		}
	}
	return false
}

// variesIn reports whether a call is given something that a loop declares, as the address of another server.
func variesIn(info *types.Info, loop ast.Node, call *ast.CallExpr) bool {
	found := false
	for _, argument := range call.Args {
		ast.Inspect(argument, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				v, ok := info.Uses[id].(*types.Var)
				found = found || ok && !v.IsField() && within(loop, v.Pos())
			}
			return !found
		})
	}
	return found
}

// closes reports whether the round of a loop that opens a client also closes it.
func closes(info *types.Info, body *ast.BlockStmt, call *ast.CallExpr) bool {
	client := types.Object(nil)
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.AssignStmt); ok && len(s.Rhs) == 1 && ast.Unparen(s.Rhs[0]) == ast.Expr(call) {
			if v := variable(info, s.Lhs[0]); v != nil {
				client = v
			}
		}
		return client == nil
	})
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && client != nil {
			v := variable(info, selector.X)
			found = found || v != nil && types.Object(v) == client && (selector.Sel.Name == "Close" || selector.Sel.Name == "Shutdown")
		}
		return !found
	})
	return found
}
