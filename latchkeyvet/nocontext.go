package latchkeyvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// NoContext reports work in the function of a Do that cannot end when the lock is lost. It sleeps, or asks a
// network, a database or a program without a context, or with context.Background(), and the function uses its
// own context nowhere.
var NoContext = newAnalyzer("nocontext", "report work under a lock that goes on when the lock is lost", runNoContext)

func runNoContext(pass *analysis.Pass) {
	for _, file := range pass.Files {
		if inTest(pass, file.Pos()) {
			continue
		}
		eachGuarded(pass, file, func(call *ast.CallExpr, f *ast.FuncLit) {
			if g := newGuarded(pass, call, f); !g.used && !g.usesHold() {
				g.deaf()
			}
		})
	}
}

// usesHold reports whether the function asks its hold whether it is held, or for its context, or hands it on.
func (g *guarded) usesHold() bool {
	found := false
	ast.Inspect(g.f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if _, name := named(g.pass.TypesInfo.TypeOf(n.X)); isGuardedBy(name) {
				found = found || n.Sel.Name == "Context" || n.Sel.Name == "Err" || n.Sel.Name == "Held"
				return false
			}
		case *ast.Ident:
			if v, ok := g.pass.TypesInfo.Uses[n].(*types.Var); ok {
				_, name := named(v.Type())
				found = found || isGuardedBy(name)
			}
		}
		return !found
	})
	return found
}

// deaf reports the calls that cannot end when the lock is lost.
func (g *guarded) deaf() {
	ast.PreorderStack(g.f.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !g.runs(stack) {
			return true
		}
		if instead := contextless(g.pass.TypesInfo, call); instead != "" {
			g.pass.ReportRangef(call, "%s goes on when what is held here is lost: use %s, with the context that this function is given",
				types.ExprString(call.Fun), instead)
			return false
		}
		if fresh, ok := parent(stack).(*ast.CallExpr); ok && calls(g.pass.TypesInfo, call, "context", "Background", "TODO") && !g.mayOutlive(fresh) {
			g.pass.ReportRangef(call, "%s does not end when what is held here is lost: pass the context that this function is given",
				types.ExprString(call))
		}
		return true
	})
}

// contextless returns what to call with a context in the place of a call that has none; empty for all that is quick,
// or not known.
func contextless(info *types.Info, call *ast.CallExpr) string {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || f.Pkg() == nil {
		return ""
	}
	method := f.Signature().Recv() != nil
	switch f.Pkg().Path() {
	case "net/http":
		switch f.Name() {
		case "Get", "Head", "Post", "PostForm":
			return "http.NewRequestWithContext"
		}
	case "database/sql":
		switch f.Name() {
		case "Exec", "Query", "QueryRow", "Prepare", "Ping":
			return f.Name() + "Context"
		case "Begin":
			return "BeginTx"
		}
	case "os/exec":
		if f.Name() == "Command" {
			return "exec.CommandContext"
		}
	case "net":
		if !method && (f.Name() == "Dial" || f.Name() == "DialTimeout") {
			return "net.Dialer.DialContext"
		}
	case "time":
		if f.Name() == "Sleep" {
			return "a select on time.After"
		}
	}
	return ""
}
