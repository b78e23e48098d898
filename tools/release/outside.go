package main

import (
	"context"
	"embed"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// outside is a program of somebody else: it takes a lock, and has a test with the kit, and a mistake. It is
// no part of a module here, and so is compiled only where it is put.
//
//go:embed testdata/outside
var outside embed.FS

// useLibraries puts the program into the place, with an import of every package that users can import, builds
// it, and runs it and its test.
func useLibraries(ctx context.Context, e *elsewhere) error {
	if err := e.putOutside(); err != nil {
		return err
	}
	for _, args := range [][]string{{"build", "-o", e.at("bin") + string(filepath.Separator), "."}, {"test", "-count=1", "."}} {
		if _, err := e.run(ctx, "outside", "go", args...); err != nil {
			return err
		}
	}
	out, err := e.run(ctx, "outside", e.at("bin", "outside"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "held with token ") {
		return fmt.Errorf("the program says %q", out)
	}
	out, err = e.run(ctx, "outside", "go", "list", "-m", "-json=Path,Version,Main,Replace", "all")
	if err != nil {
		return err
	}
	return e.listed("the program", out, e.libraries())
}

// libraries are the modules with tags that have a package to import.
func (e *elsewhere) libraries() (paths []string) {
	imported, err := e.packages()
	if err != nil {
		return nil // putOutside has asked
	}
	for _, m := range e.modules {
		if len(imported[m.path]) > 0 {
			paths = append(paths, m.path)
		}
	}
	return paths
}

// putOutside writes the files of the program.
func (e *elsewhere) putOutside() error {
	imported, err := e.packages()
	if err != nil {
		return err
	}
	mod, imports := "module example.invalid/outside\n\ngo 1.25.0\n\n", "package main\n\nimport (\n"
	for name, packages := range imported {
		mod += "require " + name + " " + e.version + "\n"
		for _, p := range packages {
			imports += "\t_ \"" + p + "\"\n"
		}
	}
	if err := fs.WalkDir(outside, "testdata/outside", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := outside.ReadFile(name)
		if err != nil {
			return err
		}
		return writeFile(e.at(filepath.FromSlash(strings.TrimPrefix(name, "testdata/"))), data)
	}); err != nil {
		return err
	}
	if err := writeFile(e.at("outside", "go.mod"), []byte(mod)); err != nil {
		return err
	}
	return writeFile(e.at("outside", "all.go"), []byte(imports+")\n"))
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// packages are what users can import of each module that has a tag.
func (e *elsewhere) packages() (map[string][]string, error) {
	all := map[string][]string{}
	for _, m := range e.modules {
		if !m.tagged() {
			continue
		}
		at := os.DirFS(e.at("tree", m.folder))
		err := fs.WalkDir(at, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				_, elsewhere := fs.Stat(at, path.Join(name, "go.mod")) // a module of its own
				skipped := name != "." && (strings.HasPrefix(path.Base(name), ".") || elsewhere == nil)
				if skipped || slices.Contains([]string{"internal", "testdata"}, path.Base(name)) {
					return fs.SkipDir
				}
				return nil
			}
			if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			importPath := path.Join(m.path, path.Dir(name))
			text, err := fs.ReadFile(at, name)
			if err != nil || slices.Contains(all[m.path], importPath) {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly)
			if err == nil && parsed.Name.Name != "main" {
				all[m.path] = append(all[m.path], importPath)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
