package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// untagged are the folders of modules that nobody gets by a version: they are run where the repository is.
// Their files are released all the same, and need what has tags.
var untagged = []string{"bench", "integration", "robustness", "tools", "web/chromium"}

// repoModule is one of the modules of a repository.
type repoModule struct {
	path   string
	folder string // with slashes; empty: the root
	needs  []string
	mod    *modfile.File
}

// file is the path of one of its files in the repository.
func (m repoModule) file(name string) string { return path.Join(m.folder, name) }

// tag is what git calls a version of it.
func (m repoModule) tag(version string) string { return path.Join(m.folder, version) }

func (m repoModule) tagged() bool { return !slices.Contains(untagged, m.folder) }

// modulesOf finds the modules of a tree, each after those that it needs. What is in a testdata is none.
func modulesOf(t tree) ([]repoModule, error) {
	all := map[string]repoModule{}
	for name := range t {
		folder, base := path.Split(name)
		if base != "go.mod" || slices.Contains(strings.Split(folder, "/"), "testdata") {
			continue
		}
		mod, err := modfile.Parse(name, t[name].data, nil)
		if err != nil {
			return nil, err
		}
		if mod.Module == nil {
			return nil, fmt.Errorf("%s names no module", name)
		}
		all[mod.Module.Mod.Path] = repoModule{path: mod.Module.Mod.Path, folder: strings.TrimSuffix(folder, "/"), mod: mod}
	}
	root := ""
	for _, m := range all {
		if m.folder == "" {
			root = m.path
		}
	}
	if root == "" {
		return nil, fmt.Errorf("the root has no go.mod")
	}
	for name, m := range all {
		if name != path.Join(root, m.folder) {
			return nil, fmt.Errorf("%s is module %s, where a tag of the repository cannot be found", m.file("go.mod"), name)
		}
		for _, r := range m.mod.Require {
			if _, ours := all[r.Mod.Path]; ours {
				m.needs = append(m.needs, r.Mod.Path)
			}
		}
		all[name] = m
	}
	return inOrder(all)
}

// inOrder sorts modules so that each comes after those that it needs, and by name.
func inOrder(all map[string]repoModule) (sorted []repoModule, err error) {
	done := map[string]bool{}
	for len(sorted) < len(all) {
		var ready []repoModule
		for name, m := range all {
			waits := slices.ContainsFunc(m.needs, func(needed string) bool { return !done[needed] })
			if !done[name] && !waits {
				ready = append(ready, m)
			}
		}
		if len(ready) == 0 {
			return nil, fmt.Errorf("modules of the repository need one another in a circle")
		}
		slices.SortFunc(ready, func(a, b repoModule) int { return strings.Compare(a.path, b.path) })
		for _, m := range ready {
			done[m.path] = true
		}
		sorted = append(sorted, ready...)
	}
	return sorted, nil
}
