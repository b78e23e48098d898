package latchkeyvet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// OuterContext reports a call in the function of a Do that is given a context from around it: the work then
// goes on when the lock is lost. The function's own context is derived from the outer one, and ends with the
// lock.
//
// Some calls may well have the outer context: in a defer or a go statement, behind context.WithoutCancel, of
// log/slog, Unlock and Release, and of package fence, which looks at the hold. After a Lock the analyzer says
// nothing of work with ctx: the code does not show which work is guarded. After an Acquire of permits with a
// deferred Release all that follows is guarded, so there it reports.
var OuterContext = newAnalyzer("outerctx", "report the outer context where the hold's was meant", runOuterContext, holds)

func runOuterContext(pass *analysis.Pass) {
	for _, file := range pass.Files {
		eachGuarded(pass, file, func(call *ast.CallExpr, f *ast.FuncLit) { newGuarded(pass, call, f).check() })
	}
	for _, a := range pass.ResultOf[holds].([]*acquired) {
		if !inTest(pass, a.call.Pos()) {
			a.underPermits(pass)
		}
	}
}

// eachGuarded calls a function with each function of a file that is called while something is held, and the call that
// is given it.
func eachGuarded(pass *analysis.Pass, file *ast.File, do func(*ast.CallExpr, *ast.FuncLit)) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			for _, argument := range call.Args {
				if f, ok := ast.Unparen(argument).(*ast.FuncLit); ok && isGuarded(pass.TypesInfo, call, f) {
					do(call, f)
				}
			}
		}
		return true
	})
}

// underPermits reports work after an Acquire of permits that is given the context of the Acquire, where the permits
// are given back by a defer and asked for nothing: so all that follows is done under them, and none of it can hear
// that they are lost.
func (a *acquired) underPermits(pass *analysis.Pass) {
	info := pass.TypesInfo
	results, ok := info.TypeOf(a.call).(*types.Tuple)
	if !ok || a.hold == nil || !isPermits(results.At(0).Type()) || len(a.call.Args) == 0 {
		return
	}
	ctx := variable(info, a.call.Args[0])
	deferred, asked := false, 0
	ast.Inspect(a.body, func(n ast.Node) bool {
		if s, ok := n.(*ast.DeferStmt); ok && a.defers(info, s) {
			deferred = true
			return false
		}
		if id, ok := n.(*ast.Ident); ok && info.Uses[id] == a.hold {
			asked++
		}
		return !assigns(info, n, ctx) || n == a.statement()
	})
	if !deferred || asked > 0 || ctx == nil || info.Uses[firstIdent(a.call.Args[0])] != ctx {
		return
	}
	a.follow(info, func(n ast.Node) bool {
		for _, call := range callsIn(n) {
			if call == a.call || acquires(info, call) || releases(info, call) || calls(info, call, "log/slog") || calls(info, call, "context") {
				continue
			}
			for _, argument := range call.Args {
				if variable(info, argument) == ctx {
					pass.ReportRangef(argument, "%s does not end when the permits are lost: pass %s.Context(), which does", ctx.Name(), a.hold.Name())
				}
			}
		}
		return !assigns(info, n, ctx) && n != a.statement()
	})
}

func firstIdent(e ast.Expr) *ast.Ident {
	id, _ := ast.Unparen(e).(*ast.Ident)
	return id
}

// isGuarded reports whether a function is one that is called with the context of something that is held, or
// that ends for another reason of ours: it gets a context and a hold, or is given to a function of the
// module.
func isGuarded(info *types.Info, call *ast.CallExpr, f *ast.FuncLit) bool {
	sig, ok := info.TypeOf(f).(*types.Signature)
	if !ok || sig.Params().Len() == 0 || !isContext(sig.Params().At(0).Type()) {
		return false
	}
	if sig.Params().Len() > 1 {
		_, name := named(sig.Params().At(1).Type())
		return isGuardedBy(name)
	}
	callee, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok {
		return false
	}
	if receiver := callee.Signature().Recv(); receiver != nil {
		if _, name := named(receiver.Type()); name == "Counting" {
			return false // nothing ends the context of its function: no process owns its permits
		}
	}
	_, ours := room(callee.Pkg())
	return ours
}

// isGuardedBy reports whether a type of this name is what a function of Do is given beside its context.
func isGuardedBy(name string) bool {
	return slices.Contains([]string{"Hold", "Permits", "Run", "Term"}, name)
}

// guarded is a function that is called while something is held.
type guarded struct {
	pass  *analysis.Pass
	f     *ast.FuncLit
	own   *types.Var // its context; nil when it has no name
	used  bool       // own is
	given *types.Var // the context that the call of Do is given; nil: none, or one that is computed
	wrong []*ast.Ident
	fine  map[*types.Var]bool // outer contexts that are also used where that is right
}

func newGuarded(pass *analysis.Pass, call *ast.CallExpr, f *ast.FuncLit) *guarded {
	g := &guarded{pass: pass, f: f, fine: map[*types.Var]bool{}}
	if names := f.Type.Params.List[0].Names; len(names) > 0 && names[0].Name != "_" {
		g.own, _ = pass.TypesInfo.Defs[names[0]].(*types.Var)
		g.used = mentions(pass.TypesInfo, f.Body, g.own)
	}
	if isContext(pass.TypesInfo.TypeOf(call.Args[0])) {
		g.given = variable(pass.TypesInfo, call.Args[0])
	}
	return g
}

func (g *guarded) check() {
	ast.PreorderStack(g.f.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		if v := g.outer(n); v != nil {
			id := n.(*ast.Ident)
			if call, ok := parent(stack).(*ast.CallExpr); ok && g.isMistake(v) && g.runs(stack) && !g.mayOutlive(call) {
				g.wrong = append(g.wrong, id)
			} else {
				g.fine[v] = true
			}
		}
		return true
	})
	for _, id := range g.wrong {
		d := analysis.Diagnostic{Pos: id.Pos(), End: id.End(), SuggestedFixes: g.fix(id)}
		if g.own != nil {
			d.Message = id.Name + " does not end when what is held here is lost: pass " + g.own.Name() + ", which does"
		} else {
			d.Message = id.Name + " does not end when what is held here is lost: the context that this function is given does. Name it and pass it"
		}
		g.pass.Report(d)
	}
}

// outer returns the context from around the function that an identifier is; else nil.
func (g *guarded) outer(n ast.Node) *types.Var {
	id, ok := n.(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := g.pass.TypesInfo.Uses[id].(*types.Var)
	if !ok || v.IsField() || !isContext(v.Type()) || within(g.f, v.Pos()) {
		return nil
	}
	return v
}

// isMistake reports whether an outer context is hardly there on purpose: it is the one that Do was given.
// Another one may have a reason, as that it has no deadline for the wait. Where none is given to compare
// with, as to once.Every, the own one must be without a use.
func (g *guarded) isMistake(outer *types.Var) bool {
	return outer == g.given || g.given == nil && !g.used
}

// runs reports whether what stands at the end of a stack runs as a part of the function: not deferred, not
// beside it, and in no function that other code may call later.
func (g *guarded) runs(stack []ast.Node) bool {
	for i, n := range stack {
		switch n := n.(type) {
		case *ast.DeferStmt, *ast.GoStmt:
			return false
		case *ast.FuncLit:
			call, ok := parent(stack[:i]).(*ast.CallExpr)
			if !ok || call.Fun != n && !calls(g.pass.TypesInfo, call, "golang.org/x/sync/errgroup", "Go", "TryGo") {
				return false
			}
		}
	}
	return true
}

// mayOutlive reports whether a call may well go on when the hold is lost.
func (g *guarded) mayOutlive(call *ast.CallExpr) bool {
	info := g.pass.TypesInfo
	if releases(info, call) || calls(info, call, "log/slog") || calls(info, call, "context", "WithoutCancel", "AfterFunc", "Cause") {
		return true
	}
	for _, argument := range call.Args {
		if g.own != nil && variable(info, argument) == g.own {
			return true // it is given both, and knows what for
		}
	}
	return isFence(info, call)
}

func parent(stack []ast.Node) ast.Node {
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

// fix puts the own context there, when its name means it at that place; or gives it the name of the outer
// one, when all uses of that are wrong.
func (g *guarded) fix(id *ast.Ident) []analysis.SuggestedFix {
	edit := analysis.TextEdit{Pos: id.Pos(), End: id.End()}
	v := g.pass.TypesInfo.Uses[id].(*types.Var)
	names := g.f.Type.Params.List[0].Names
	switch {
	case g.own != nil:
		_, means := g.pass.Pkg.Scope().Innermost(id.Pos()).LookupParent(g.own.Name(), id.Pos())
		if means != g.own {
			return nil
		}
		edit.NewText = []byte(g.own.Name())
	case len(names) == 0 || g.fine[v] || id != g.wrong[0]: // one edit is enough for all
		return nil
	default:
		for _, other := range g.wrong {
			if g.pass.TypesInfo.Uses[other] != v {
				return nil
			}
		}
		edit = analysis.TextEdit{Pos: names[0].Pos(), End: names[0].End(), NewText: []byte(v.Name())}
	}
	return []analysis.SuggestedFix{{Message: "use the context that ends with the hold", TextEdits: []analysis.TextEdit{edit}}}
}
