package latchkeyvet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// ErrCompare reports an error that is compared with one of this module by == or in a switch. The errors come
// wrapped and joined, so the comparison is never true. Use errors.Is.
var ErrCompare = newAnalyzer("errcompare", "report errors of latchkey that are compared by ==", runErrCompare)

func runErrCompare(pass *analysis.Pass) {
	for _, file := range pass.Files {
		imported := errorsIn(pass.TypesInfo, file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					compared(pass, n, imported)
				}
			case *ast.SwitchStmt:
				switched(pass, n)
			}
			return true
		})
	}
}

const comesWrapped = "it comes wrapped, so this is never true: use errors.Is"

func compared(pass *analysis.Pass, n *ast.BinaryExpr, imported bool) {
	err, sentinel := n.X, n.Y
	if isSentinel(pass.TypesInfo, err) {
		err, sentinel = sentinel, err
	}
	if !isSentinel(pass.TypesInfo, sentinel) || isSentinel(pass.TypesInfo, err) || pass.TypesInfo.Types[err].IsNil() {
		return
	}
	said := comesWrapped
	call := fmt.Sprintf("errors.Is(%s, %s)", types.ExprString(err), types.ExprString(sentinel))
	if n.Op == token.NEQ {
		call, said = "!"+call, strings.Replace(said, "never", "always", 1)
	}
	d := analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Message: types.ExprString(sentinel) + " is compared by " + n.Op.String() + ", and " + said}
	if _, plain := ast.Unparen(err).(*ast.Ident); plain && imported {
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message:   "use errors.Is",
			TextEdits: []analysis.TextEdit{{Pos: n.Pos(), End: n.End(), NewText: []byte(call)}},
		}}
	}
	pass.Report(d)
}

func switched(pass *analysis.Pass, n *ast.SwitchStmt) {
	if n.Tag == nil {
		return
	}
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			if isSentinel(pass.TypesInfo, e) {
				pass.ReportRangef(e, "this case compares with %s by ==, and %s", types.ExprString(e), comesWrapped)
			}
		}
	}
}

// isSentinel reports whether an expression is one of the errors of the module.
func isSentinel(info *types.Info, e ast.Expr) bool {
	var id *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		id = e.Sel
	case *ast.Ident:
		id = e
	default:
		return false
	}
	v, ok := info.Uses[id].(*types.Var)
	if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() || !strings.HasPrefix(v.Name(), "Err") {
		return false
	}
	_, ours := room(v.Pkg())
	return ours && types.Implements(v.Type(), types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// errorsIn reports whether a file can say errors.Is.
func errorsIn(info *types.Info, file *ast.File) bool {
	for _, spec := range file.Imports {
		if spec.Path.Value == `"errors"` && spec.Name == nil {
			return info.Implicits[spec] != nil
		}
	}
	return false
}
