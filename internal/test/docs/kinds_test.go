package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// capabilities are what the kinds can do that others cannot. The scripts of one kind destroy the data of
// another one: so none may come to a kind by accident, as by a type that it embeds.
var capabilities = map[string][]string{
	"internal/lock/kind.go: kind": {"Offerer", "Together"},
	"rwlock/kind.go: kind":        {"Downgrader", "Offerer"},
	"semaphore/pool.go: leased":   nil,
	"semaphore/pool.go: plain":    nil,
}

// Every kind of the product is in the list, with what it names.
func TestCapabilitiesOfKinds(t *testing.T) {
	found := map[string][]string{}
	for _, file := range sources(t, ".", ".go") {
		if file.isTest() || !strings.Contains(strings.Join(file.lines, "\n"), "grant.Kind{") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			declared, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range declared.Values {
				if names, isKind := namedByKind(value); isKind {
					found[file.path+": "+declared.Names[i].Name] = names
				}
			}
			return true
		})
	}
	require.Equal(t, slices.Sorted(maps.Keys(capabilities)), slices.Sorted(maps.Keys(found)), "the kinds there are")
	for kind, want := range capabilities {
		require.Equal(t, want, found[kind], kind)
	}
}

// namedByKind returns the capabilities that a &grant.Kind{...} names, in order, and whether it is one.
func namedByKind(value ast.Expr) (names []string, isKind bool) {
	pointer, _ := value.(*ast.UnaryExpr)
	if pointer == nil {
		return nil, false
	}
	literal, _ := pointer.X.(*ast.CompositeLit)
	if literal == nil {
		return nil, false
	}
	selector, _ := literal.Type.(*ast.SelectorExpr)
	if selector == nil || selector.Sel.Name != "Kind" {
		return nil, false
	}
	all := []string{"Downgrader", "Offerer", "Together"} // the optional fields of grant.Kind
	for _, element := range literal.Elts {
		if key, ok := element.(*ast.KeyValueExpr).Key.(*ast.Ident); ok && slices.Contains(all, key.Name) {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names, true
}
