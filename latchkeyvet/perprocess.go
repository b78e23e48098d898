package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// PerProcess reports a number that all processes must state the same, made of what differs between them: the
// number of processors, the process id, chance, or the number of arguments. It follows variables that are
// assigned once.
//
// It says nothing if the name is computed, since then it may be the name of one machine; of flags and the
// environment, which are configuration; and of tests, which are one process.
var PerProcess = newAnalyzer("perprocess", "report counts that differ between processes", runPerProcess)

func runPerProcess(pass *analysis.Pass) {
	d := definitions(pass)
	for _, file := range pass.Files {
		if inTest(pass, file.Pos()) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				d.stated(pass, call)
			}
			return true
		})
	}
}

// agreed is what becomes of a number that processes do not agree on, by the function that is given it.
var agreed = map[string]string{
	"semaphore.WithCapacity": "that of the process that was opened last counts",
	"countdown.WithCount":    "that of the first process counts",
	"barrier.New":            "a process with another one gets ErrParties",
	"once.WithAttempts":      "each process gives up after another one",
	"once.WithDeaths":        "each process gives up after another one",
}

// stated looks at a call of a New with a name that is the same everywhere.
func (d defined) stated(pass *analysis.Pass, call *ast.CallExpr) {
	if len(call.Args) < 2 || pass.TypesInfo.Types[call.Args[1]].Value == nil {
		return
	}
	switch name(pass.TypesInfo, call) {
	case "barrier.New":
		if len(call.Args) > 2 {
			d.check(pass, "barrier.New", call.Args[2])
		}
	case "semaphore.New", "semaphore.NewCounting", "countdown.New", "once.New", "once.Every":
		for _, argument := range call.Args[2:] {
			option, ok := ast.Unparen(argument).(*ast.CallExpr)
			if ok && len(option.Args) == 1 && agreed[name(pass.TypesInfo, option)] != "" {
				d.check(pass, name(pass.TypesInfo, option), option.Args[0])
			}
		}
	}
}

func (d defined) check(pass *analysis.Pass, function string, number ast.Expr) {
	if source := d.source(pass.TypesInfo, number); source != "" {
		pass.ReportRangef(number, "%s is not the same in every process, and %s: state a number that is, as a constant or a setting of all",
			source, agreed[function])
	}
}

// name returns that of a function of the module, with its package; empty for all others.
func name(info *types.Info, call *ast.CallExpr) string {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || f.Signature().Recv() != nil {
		return ""
	}
	in, ours := room(f.Pkg())
	if !ours {
		return ""
	}
	return in + "." + f.Name()
}

// defined are the variables of a package that are given a value once, where they are declared, and it.
type defined map[types.Object]ast.Expr

func definitions(pass *analysis.Pass) defined {
	all, again := defined{}, map[types.Object]bool{}
	note := func(left, value ast.Expr) {
		id, ok := ast.Unparen(left).(*ast.Ident)
		if !ok {
			return
		}
		if v := pass.TypesInfo.Defs[id]; v != nil {
			all[v] = value
		} else {
			again[pass.TypesInfo.Uses[id]] = true
		}
	}
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					note(left, n.Rhs[min(i, len(n.Rhs)-1)])
				}
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if i < len(n.Values) {
						note(id, n.Values[i])
					}
				}
			case *ast.IncDecStmt:
				note(n.X, nil)
			case *ast.UnaryExpr: // code that has the address may assign
				if n.Op == token.AND {
					note(n.X, nil)
				}
			}
			return true
		})
	}
	for v := range again {
		delete(all, v)
	}
	return all
}

// source returns what makes a number differ between processes; empty when nothing does.
func (d defined) source(info *types.Info, e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := info.Uses[e]
		if value := d[v]; value != nil {
			rest := d.without(v) // so that no circle is followed
			return rest.source(info, value)
		}
	case *ast.UnaryExpr:
		return d.source(info, e.X)
	case *ast.BinaryExpr:
		if left := d.source(info, e.X); left != "" {
			return left
		}
		return d.source(info, e.Y)
	case *ast.CallExpr:
		return d.sourceOfCall(info, e)
	}
	return ""
}

func (d defined) without(v types.Object) defined {
	rest := defined{}
	for other, value := range d {
		if other != v {
			rest[other] = value
		}
	}
	return rest
}

func (d defined) sourceOfCall(info *types.Info, call *ast.CallExpr) string {
	switch {
	case calls(info, call, "runtime", "NumCPU", "GOMAXPROCS"), calls(info, call, "os", "Getpid", "Getppid"),
		calls(info, call, "math/rand"), calls(info, call, "math/rand/v2"):
		return types.ExprString(call)
	}
	built, isBuiltin := typeutil.Callee(info, call).(*types.Builtin)
	if isBuiltin && built.Name() == "len" && types.ExprString(call.Args[0]) == "os.Args" {
		return "len(os.Args)"
	}
	if info.Types[call.Fun].IsType() || isBuiltin && slices.Contains([]string{"min", "max"}, built.Name()) {
		for _, argument := range call.Args {
			if source := d.source(info, argument); source != "" {
				return source
			}
		}
	}
	return ""
}
