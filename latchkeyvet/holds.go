package latchkeyvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
)

// holds finds, for the analyzers that look at paths, where a package acquires something.
var holds = &analysis.Analyzer{
	Name:       "latchkeyholds",
	Doc:        "find where locks and permits are acquired",
	ResultType: reflect.TypeFor[[]*acquired](),
	Run: func(pass *analysis.Pass) (any, error) {
		var all []*acquired
		if !imports(pass.Pkg) {
			return all, nil
		}
		f := &finder{info: pass.TypesInfo, bodies: map[types.Object]*ast.BlockStmt{}, returning: map[types.Object]bool{}}
		for _, file := range pass.Files {
			for _, declared := range file.Decls {
				if d, ok := declared.(*ast.FuncDecl); ok && d.Body != nil {
					f.bodies[pass.TypesInfo.Defs[d.Name]] = d.Body
				}
			}
		}
		for _, file := range pass.Files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Body != nil {
						all = append(all, f.in(n, n.Body)...)
					}
				case *ast.FuncLit:
					all = append(all, f.in(n, n.Body)...)
				}
				return true
			})
		}
		return all, nil
	},
}

// acquired is one place where something is acquired.
type acquired struct {
	function ast.Node       // *ast.FuncDecl or *ast.FuncLit, the innermost
	body     *ast.BlockStmt // of function
	stack    []ast.Node     // from body to the call, without it
	call     *ast.CallExpr
	hold     *types.Var // local variable that gets the hold; nil: none does
	err      *types.Var // variable that gets the error; nil: none does
	graph    *cfg.CFG   // of function; nil without hold
}

// lock is what is acquired: a lock, or a semaphore.
func (a *acquired) lock() ast.Expr {
	if selector, ok := ast.Unparen(a.call.Fun).(*ast.SelectorExpr); ok {
		return selector.X
	}
	return nil
}

// method is the one that acquires.
func (a *acquired) method() string {
	if selector, ok := ast.Unparen(a.call.Fun).(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return "Lock"
}

// statement is the one that acquires, as the graph has it.
func (a *acquired) statement() ast.Node { return a.stack[len(a.stack)-1] }

// finder finds what is acquired in the functions of one package.
type finder struct {
	info      *types.Info
	bodies    map[types.Object]*ast.BlockStmt
	returning map[types.Object]bool // whether a function of the package may return
}

// in finds what one function acquires, without the functions inside it.
func (f *finder) in(function ast.Node, body *ast.BlockStmt) (all []*acquired) {
	var graph *cfg.CFG
	ast.PreorderStack(body, nil, func(n ast.Node, stack []ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok || !acquires(f.info, call) {
			return true
		}
		a := &acquired{function: function, body: body, stack: append([]ast.Node(nil), stack...), call: call}
		var left []ast.Expr
		switch s := a.statement().(type) {
		case *ast.AssignStmt:
			left = s.Lhs
		case *ast.ValueSpec:
			for _, name := range s.Names {
				left = append(left, name)
			}
		}
		if len(left) == 2 {
			a.hold, a.err = variable(f.info, left[0]), variable(f.info, left[1])
		}
		if a.hold != nil && !within(function, a.hold.Pos()) {
			a.hold = nil // another function's, which may unlock it
		}
		if a.hold != nil {
			if graph == nil {
				graph = cfg.New(body, f.mayReturn)
			}
			a.graph = graph
		}
		all = append(all, a)
		return true
	})
	return all
}

// mayReturn reports whether a call may return. It looks into functions of the package, and goes by the name
// of others: what is wrongly taken for an end makes no finding.
func (f *finder) mayReturn(call *ast.CallExpr) bool {
	callee := typeutil.Callee(f.info, call)
	if callee == nil {
		return true
	}
	if body := f.bodies[callee]; body != nil {
		if may, known := f.returning[callee]; known {
			return may
		}
		f.returning[callee] = true // until known, for one that calls itself
		f.returning[callee] = f.returns(body)
		return f.returning[callee]
	}
	for _, ending := range []string{"Fatal", "Panic", "Exit", "Goexit", "FailNow", "Skip", "panic"} {
		if strings.HasPrefix(callee.Name(), ending) {
			return false
		}
	}
	return true
}

func (f *finder) returns(body *ast.BlockStmt) bool {
	for _, block := range cfg.New(body, f.mayReturn).Blocks {
		if !block.Live {
			continue
		}
		for _, n := range block.Nodes {
			switch n.(type) {
			case *ast.ReturnStmt, *ast.DeferStmt: // which may recover
				return true
			}
		}
	}
	return false
}

// loops reports whether a statement can be reached again from a node after it.
func (a *acquired) loops(from ast.Node) bool {
	seen := map[*cfg.Block]bool{}
	var reaches func(blocks []*cfg.Block) bool
	reaches = func(blocks []*cfg.Block) bool {
		for _, b := range blocks {
			if seen[b] {
				continue
			}
			seen[b] = true
			for _, n := range b.Nodes {
				if n == a.statement() {
					return true
				}
			}
			if reaches(b.Succs) {
				return true
			}
		}
		return false
	}
	for _, b := range a.graph.Blocks {
		for _, n := range b.Nodes {
			if n == from {
				return reaches(b.Succs)
			}
		}
	}
	return false
}

// shared reports whether code that no path shows may reach the hold: its address is taken, or a function
// that was made before the hold has it.
func (a *acquired) shared(info *types.Info) bool {
	found := false
	ast.Inspect(a.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && variable(info, n.X) == a.hold
		case *ast.FuncLit:
			found = found || n.Pos() < a.call.Pos() && mentions(info, n, a.hold)
		}
		return !found
	})
	return found
}
