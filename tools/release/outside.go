package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
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
	imported, err := e.packages(ctx)
	if err != nil {
		return err
	}
	if err := e.putOutside(imported); err != nil {
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
	return e.listed("the program", out, slices.Collect(maps.Keys(imported)))
}

// putOutside writes the files of the program, which imports these packages.
func (e *elsewhere) putOutside(imported map[string][]string) error {
	mod, imports := "module example.invalid/outside\n\ngo 1.26.0\n\n", "package main\n\nimport (\n"
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
func (e *elsewhere) packages(ctx context.Context) (map[string][]string, error) {
	all := map[string][]string{}
	for _, m := range e.modules {
		if !m.tagged() {
			continue
		}
		out, err := e.run(ctx, "tree/"+m.folder, "go", "list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
		if err != nil {
			return nil, err
		}
		for p := range strings.FieldsSeq(out) {
			if !strings.Contains(p+"/", "/internal/") {
				all[m.path] = append(all[m.path], p)
			}
		}
	}
	return all, nil
}
