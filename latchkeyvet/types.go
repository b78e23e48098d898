package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// module is the path under which programs import what is looked at here.
const module = "github.com/latchkey-go/latchkey"

// room returns which package of the module one is, "" for its root; false for all others, and for those
// that programs cannot import. A vendored one has a path in front of its own.
func room(pkg *types.Package) (string, bool) {
	if pkg == nil {
		return "", false
	}
	path := pkg.Path()
	if _, own, vendored := strings.Cut(path, "/vendor/"); vendored {
		path = own
	}
	path, found := strings.CutPrefix(path, module)
	if !found || path != "" && path[0] != '/' || strings.Contains(path+"/", "/internal/") {
		return "", false
	}
	return strings.TrimPrefix(path, "/"), true
}

// imports reports whether a package imports one of the module.
func imports(pkg *types.Package) bool {
	return slices.ContainsFunc(pkg.Imports(), func(imported *types.Package) bool {
		_, found := room(imported)
		return found
	})
}

// named returns the room and the name of a type of the module, or of what a pointer to it points to.
func named(t types.Type) (in, name string) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		if in, found := room(n.Obj().Pkg()); found {
			return in, n.Obj().Name()
		}
	}
	return "", ""
}

// isHold reports whether a type is that of something that is held until it is given back.
func isHold(t types.Type) bool {
	in, name := named(t)
	return name == "Hold" && (in == "" || in == "multilock") || isPermits(t)
}

func isPermits(t types.Type) bool {
	in, name := named(t)
	return in == "semaphore" && name == "Permits"
}

// isContext reports whether a type is context.Context.
func isContext(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Context" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "context"
}

func isChannel(t types.Type) bool {
	_, ok := t.Underlying().(*types.Chan)
	return ok
}

// acquires reports whether a call is that of a method that returns a hold: of a lock or semaphore, of what
// embeds one, or of an interface or type parameter that has the method.
func acquires(info *types.Info, call *ast.CallExpr) bool {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok {
		return false
	}
	switch f.Name() {
	case "Lock", "TryLock", "TryLockFor", "Acquire", "TryAcquire", "TryAcquireFor", "Drain", "Attach":
	default:
		return false
	}
	sig := f.Signature()
	return sig.Recv() != nil && sig.Results().Len() == 2 && isHold(sig.Results().At(0).Type())
}

// releases reports whether a call gives back what is held, in whole or in part, or leaves it to others.
func releases(info *types.Info, call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isRelease(selector.Sel.Name) && isHold(info.TypeOf(selector.X))
}

func isRelease(method string) bool {
	return method == "Unlock" || method == "Release" || method == "ReleaseN" || method == "Detach" || method == "DetachFor"
}

// calls reports whether a call is that of a function of a package, or of a method of one of its types, with
// one of these names; with any, if none is given.
func calls(info *types.Info, call *ast.CallExpr, path string, names ...string) bool {
	f := typeutil.Callee(info, call)
	return f != nil && f.Pkg() != nil && f.Pkg().Path() == path && (len(names) == 0 || slices.Contains(names, f.Name()))
}

// isFence reports whether a call is that of a function of package fence.
func isFence(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.Callee(info, call)
	if f == nil {
		return false
	}
	in, ours := room(f.Pkg())
	return ours && in == "fence"
}

// variable returns the one that an expression is; nil for any other expression.
func variable(info *types.Info, e ast.Expr) *types.Var {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		v, _ := info.ObjectOf(id).(*types.Var)
		return v
	}
	return nil
}

// mentions reports whether a variable occurs below a node.
func mentions(info *types.Info, n ast.Node, v *types.Var) bool {
	found := false
	if v != nil && n != nil {
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && info.Uses[id] == v
			return !found
		})
	}
	return found
}

// assigns reports whether a node of a graph gives a variable another value: a statement, or the head of a
// loop.
func assigns(info *types.Info, n ast.Node, v *types.Var) bool {
	is := func(left ast.Expr) bool { return v != nil && left != nil && variable(info, left) == v }
	switch n := n.(type) {
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Lhs, is)
	case *ast.ValueSpec:
		return slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return is(id) })
	case *ast.RangeStmt:
		return is(n.Key) || is(n.Value)
	case *ast.Ident: // of a range, as the graph has it
		return is(n)
	}
	return false
}

// within reports whether something is declared below a node.
func within(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }
