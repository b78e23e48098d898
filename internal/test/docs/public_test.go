package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What users read names nothing that they cannot import: no exported type, function, method or field has a
// type of an internal package in its text. Nor does any name rueidis, but for package rueidisclient: so another major
// version of rueidis changes that package alone. No exported struct embeds anything, so that the methods of what it
// is made of are not its own.
func TestPublicNamesAreWhole(t *testing.T) {
	seen := 0
	for _, room := range primitives {
		if strings.HasPrefix(room, "internal/") {
			continue
		}
		dir := room
		if room == "latchkey" {
			dir = "."
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			require.NoError(t, err)
			internal := map[string]bool{}
			for _, i := range file.Imports {
				path, err := strconv.Unquote(i.Path.Value)
				require.NoError(t, err)
				if strings.Contains(path, "/internal/") || strings.HasSuffix(path, "/rueidis") {
					internal[path[strings.LastIndexByte(path, '/')+1:]] = true
				}
			}
			shown, embedding := exported(file)
			require.Empty(t, embedding, name)
			for _, shown := range shown {
				seen++
				ast.Inspect(shown, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok {
							require.False(t, internal[x.Name], "%s shows %s.%s", name, x.Name, s.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
	require.Greater(t, seen, 300)
}

// exported are the types in a file that users read: those of exported types, but for fields that are
// not exported, and of functions and methods, without what these do. embedding are the exported structs that
// embed something else than what users know under that name: who it is, and a holder.
func exported(file *ast.File) (shown []ast.Expr, embedding []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if ast.IsExported(d.Name.Name) && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				shown = append(shown, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok || !spec.Name.IsExported() {
					continue
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						if len(f.Names) == 0 || f.Names[0].IsExported() {
							shown = append(shown, f.Type)
						}
						if len(f.Names) == 0 && !slices.Contains([]string{"Identity", "latchkey.Holder"}, types.ExprString(f.Type)) {
							embedding = append(embedding, spec.Name.Name)
						}
					}
					continue
				}
				shown = append(shown, spec.Type)
			}
		}
	}
	return shown, embedding
}

func receiver(of ast.Expr) string {
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// Each name of a package of ours in the documents exists, as in once.WithSpacing, and in what programs read of them.
func TestNamesInDocumentsExist(t *testing.T) {
	exported := map[string]map[string]bool{}
	for _, room := range public() {
		names := map[string]bool{}
		p := documented(t, room)
		for _, f := range p.Funcs {
			names[f.Name] = true
		}
		for _, values := range slices.Concat(p.Vars, p.Consts) {
			for _, name := range values.Names {
				names[name] = true
			}
		}
		for _, typ := range p.Types {
			names[typ.Name] = true
			for _, f := range typ.Funcs {
				names[f.Name] = true
			}
			for _, values := range slices.Concat(typ.Vars, typ.Consts) {
				for _, name := range values.Names {
					names[name] = true
				}
			}
		}
		exported[room] = names
	}
	found := 0
	for _, document := range append(documents(t), "docs/llms.txt") {
		if document == "CHANGELOG.md" { // which says what is gone
			continue
		}
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`(?:^|[^\w./-])([a-z]+)\.([A-Z]\w+)`).FindAllSubmatch(text, -1) {
			if names, ours := exported[string(name[1])]; ours && !strings.HasPrefix(string(name[2]), "Test") {
				found++
				require.True(t, names[string(name[2])], "%s: there is no %s.%s", document, name[1], name[2])
			}
		}
	}
	require.Greater(t, found, 200)
}
