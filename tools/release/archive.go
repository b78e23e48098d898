package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// zipFile is a file of a tree as package zip wants it, and its own os.FileInfo.
type zipFile struct {
	name string // in the module
	file
}

func (f zipFile) Path() string                 { return f.name }
func (f zipFile) Lstat() (fs.FileInfo, error)  { return f, nil }
func (f zipFile) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }
func (f zipFile) Name() string                 { return filepath.Base(f.name) }
func (f zipFile) Size() int64                  { return int64(len(f.data)) }
func (f zipFile) Mode() fs.FileMode            { return 0o644 }
func (f zipFile) ModTime() time.Time           { return time.Time{} }
func (f zipFile) IsDir() bool                  { return false }
func (f zipFile) Sys() any                     { return nil }

// archive is the zip of a module, as the go command makes it of a tag. A module without a license gets that
// of the root.
func archive(t tree, m repoModule, version string) ([]byte, error) {
	prefix := ""
	if m.folder != "" {
		prefix = m.folder + "/"
	}
	var files []modzip.File
	licensed := false
	for _, name := range slices.Sorted(maps.Keys(t)) {
		f := t[name]
		if inside, ok := strings.CutPrefix(name, prefix); ok {
			files = append(files, zipFile{inside, f})
			licensed = licensed || inside == "LICENSE"
		}
	}
	if license, ok := t["LICENSE"]; ok && !licensed {
		files = append(files, zipFile{"LICENSE", license})
	}
	var out bytes.Buffer
	err := modzip.Create(&out, module.Version{Path: m.path, Version: version}, files)
	return out.Bytes(), err
}

// sumsOf are the lines of go.sum for a module.
func sumsOf(t tree, m repoModule, version string) ([]string, error) {
	zipped, err := archive(t, m, version)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "latchkey-sum")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "module.zip")
	if err := os.WriteFile(path, zipped, 0o600); err != nil {
		return nil, err
	}
	sum, err := dirhash.HashZip(path, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(t[m.file("go.mod")].data)), nil
	})
	return []string{m.path + " " + version + " " + sum, m.path + " " + version + "/go.mod " + modSum}, err
}

// publish writes the modules that have tags into a folder, as a module proxy serves them, and returns how
// many they are. The version is the latest, and not in the list: gorelease refuses one that is released already.
func publish(folder string, t tree, version string, date time.Time) (int, error) {
	modules, err := modulesOf(t)
	if err != nil {
		return 0, err
	}
	published := 0
	for _, m := range modules {
		if !m.tagged() {
			continue
		}
		published++
		escaped, err := module.EscapePath(m.path)
		if err != nil {
			return 0, err
		}
		at := filepath.Join(folder, filepath.FromSlash(escaped), "@v")
		if err := os.MkdirAll(at, 0o700); err != nil {
			return 0, err
		}
		info, err := json.Marshal(map[string]any{"Version": version, "Time": date})
		if err != nil {
			return 0, err
		}
		zipped, err := archive(t, m, version)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.path, err)
		}
		for name, data := range map[string][]byte{
			"list": nil, "../@latest": info, version + ".info": info, version + ".mod": t[m.file("go.mod")].data, version + ".zip": zipped,
		} {
			if err := os.WriteFile(filepath.Join(at, name), data, 0o600); err != nil {
				return 0, err
			}
		}
	}
	return published, nil
}
