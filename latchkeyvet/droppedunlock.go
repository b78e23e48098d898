package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// DroppedUnlock reports a deferred function that assigns the error of an Unlock or Release to a local
// variable that is no result: no caller sees the error, nor ErrLost. Name the result.
//
// It says nothing of defer hold.Unlock(ctx): there the error is dropped for all to see. If the work was
// fenced, the store refuses a late write; if not, an error afterwards repairs nothing. errcheck finds every
// dropped error.
var DroppedUnlock = newAnalyzer("droppedunlock", "report an error of Unlock or Release that is assigned to no result", runDroppedUnlock)

func runDroppedUnlock(pass *analysis.Pass) {
	for _, file := range pass.Files {
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			if d, ok := n.(*ast.DeferStmt); ok {
				if f, ok := ast.Unparen(d.Call.Fun).(*ast.FuncLit); ok {
					droppedIn(pass, f, stack)
				}
			}
			return true
		})
	}
}

// droppedIn looks at a deferred function, which stands at the end of a stack.
func droppedIn(pass *analysis.Pass, deferred *ast.FuncLit, stack []ast.Node) {
	body, f := enclosing(stack)
	if body == nil {
		return
	}
	ast.Inspect(deferred.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok || s.Tok != token.ASSIGN || len(s.Lhs) != 1 || !releasesIn(pass.TypesInfo, s.Rhs[0]) {
			return true
		}
		v := variable(pass.TypesInfo, s.Lhs[0])
		if v == nil || within(deferred, v.Pos()) || !within(body, v.Pos()) || seen(pass.TypesInfo, body, deferred, s, v) {
			return true
		}
		pass.Report(analysis.Diagnostic{
			Pos: s.Pos(), End: s.End(),
			Message:        v.Name() + " is no result of this function, so the error is dropped, ErrLost too: give the result the name " + v.Name(),
			SuggestedFixes: nameResult(pass.TypesInfo, f, body, v),
		})
		return true
	})
}

// enclosing returns the innermost function of a stack.
func enclosing(stack []ast.Node) (*ast.BlockStmt, *ast.FuncType) {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.FuncDecl:
			return n.Body, n.Type
		case *ast.FuncLit:
			return n.Body, n.Type
		}
	}
	return nil, nil
}

// releasesIn reports whether an expression has the error of an Unlock or Release.
func releasesIn(info *types.Info, e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && releases(info, call)
		return !found
	})
	return found
}

// seen reports whether other code may read what is assigned: the deferred function itself, later; another
// function inside the one around; or code that has the address.
func seen(info *types.Info, body *ast.BlockStmt, deferred *ast.FuncLit, s *ast.AssignStmt, v *types.Var) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			found = found || n != deferred && mentions(info, n, v)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && variable(info, n.X) == v
		case *ast.Ident:
			found = found || info.Uses[n] == v && within(deferred, n.Pos()) && n.Pos() > s.End()
		}
		return !found
	})
	return found
}

// nameResult is the fix: the last result, an error without a name, gets that of the variable. There is none
// unless the function then still compiles, and means the same: the variable must be one of several that the
// outermost block of the function declares in one statement, of which another one is new.
func nameResult(info *types.Info, f *ast.FuncType, body *ast.BlockStmt, v *types.Var) []analysis.SuggestedFix {
	if f.Results == nil || len(f.Results.List) == 0 || len(f.Results.List[0].Names) > 0 || !others(info, body, v) {
		return nil
	}
	last := f.Results.List[len(f.Results.List)-1]
	if !types.Identical(info.TypeOf(last.Type), v.Type()) {
		return nil
	}
	var edits []analysis.TextEdit
	for _, result := range f.Results.List {
		name := "_ "
		if result == last {
			name = v.Name() + " "
		}
		edits = append(edits, analysis.TextEdit{Pos: result.Pos(), End: result.Pos(), NewText: []byte(name)})
	}
	if !f.Results.Opening.IsValid() {
		edits[0].NewText = append([]byte("("), edits[0].NewText...)
		edits = append(edits, analysis.TextEdit{Pos: last.End(), End: last.End(), NewText: []byte(")")})
	}
	return []analysis.SuggestedFix{{Message: "name the result", TextEdits: edits}}
}

// others reports whether the statement that declares a variable declares another one as well, in the
// outermost block of the function.
func others(info *types.Info, body *ast.BlockStmt, v *types.Var) bool {
	for _, s := range body.List {
		declares, ok := s.(*ast.AssignStmt)
		if !ok || declares.Tok != token.DEFINE || !within(declares, v.Pos()) {
			continue
		}
		for _, left := range declares.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name != "_" && info.Defs[id] != nil && info.Defs[id] != v {
				return true
			}
		}
	}
	return false
}
