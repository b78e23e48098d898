package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"
)

// use is what a statement does with a hold.
type use int

const (
	unused   use = iota // nothing that matters: it asks for the token, or the context
	released            // it gives it back
	escaped             // it hands it to other code, which may give it back
)

// use says what a node does with the hold.
func (a *acquired) use(info *types.Info, n ast.Node) use {
	is := unused
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if mentions(info, n, a.hold) {
				is = max(is, escaped)
			}
			return false
		case *ast.CallExpr:
			is = max(is, a.useOfCall(info, n))
			return false // it has looked at what is inside
		case *ast.BinaryExpr: // hold == nil
			if n.Op == token.EQL || n.Op == token.NEQ {
				is = max(is, a.useOfOperand(info, n.X), a.useOfOperand(info, n.Y))
				return false
			}
		case *ast.AssignStmt: // _ = hold
			if len(n.Lhs) == 1 && isBlank(n.Lhs[0]) && variable(info, n.Rhs[0]) == a.hold {
				return false
			}
		case *ast.Ident:
			if info.Uses[n] == a.hold {
				is = max(is, escaped)
			}
		}
		return true
	})
	return is
}

// useOfOperand is that of an operand of a comparison.
func (a *acquired) useOfOperand(info *types.Info, e ast.Expr) use {
	if variable(info, e) == a.hold {
		return unused
	}
	return a.use(info, e)
}

// asks are the methods of holds and permits that give nothing back.
var asks = map[string]bool{
	"Context": true, "Downgrade": true, "Err": true, "Held": true, "N": true, "Name": true, "Names": true,
	"Remaining": true, "Sequence": true, "Token": true, "Tokens": true,
}

// useOfCall is that of a call: of a method of the hold, or one that is given it.
func (a *acquired) useOfCall(info *types.Info, call *ast.CallExpr) use {
	is := unused
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && variable(info, selector.X) == a.hold {
		switch {
		case isRelease(selector.Sel.Name):
			is = released
		case !asks[selector.Sel.Name]:
			is = escaped
		}
	} else {
		is = a.use(info, call.Fun)
	}
	fenced := isFence(info, call)
	for _, argument := range call.Args {
		if fenced && variable(info, argument) == a.hold {
			continue // it gives nothing back
		}
		is = max(is, a.use(info, argument))
	}
	return is
}

// defers reports whether a node is a defer that gives the hold back.
func (a *acquired) defers(info *types.Info, n ast.Node) bool {
	d, ok := n.(*ast.DeferStmt)
	found := false
	if ok {
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			found = found || ok && releases(info, call) && mentions(info, call.Fun, a.hold)
			return !found
		})
	}
	return found
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}
