package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// released makes the tree that is tagged of one of a branch: no module replaces another one of the
// repository, each needs the others at the version, with their checksums, and what CHANGELOG.md says is
// unreleased is that version. go.work has the folders of the modules also for that version, so that the
// tests run in a checkout of a tag as they do on the branch.
func released(t tree, version string, date time.Time) (tree, error) {
	modules, err := modulesOf(t)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(t)
	root := modules[slices.IndexFunc(modules, func(m repoModule) bool { return m.folder == "" })].path
	log, err := releasedChangelog(string(t[changelog].data), root, version, date)
	if err != nil {
		return nil, err
	}
	out[changelog] = file{data: []byte(log)}
	if out[workspace], err = releasedWorkspace(t[workspace], modules, version); err != nil {
		return nil, err
	}
	sums := map[string][]string{} // lines of go.sum, by module
	for _, m := range modules {
		if err := m.release(modules, version); err != nil {
			return nil, fmt.Errorf("%s: %w", m.file("go.mod"), err)
		}
		text, err := m.mod.Format()
		if err != nil {
			return nil, err
		}
		out[m.file("go.mod")] = file{data: text}
		var lines []string
		for _, needed := range m.needs {
			lines = append(lines, sums[needed]...)
		}
		if len(lines) > 0 {
			out[m.file("go.sum")] = file{data: withSums(string(out[m.file("go.sum")].data), m.needs, lines)}
		}
		if sums[m.path], err = sumsOf(out, m, version); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return out, nil
}

// workspace is the file that has the modules together. Nobody else sees it.
const workspace = "go.work"

// releasedWorkspace takes the version of each module from its folder: else the go command would ask for it,
// and that before there is one.
func releasedWorkspace(f file, modules []repoModule, version string) (file, error) {
	work, err := modfile.ParseWork(workspace, f.data, nil)
	if err != nil {
		return file{}, err
	}
	for _, m := range modules {
		if err := work.AddReplace(m.path, version, "./"+m.folder, ""); err != nil {
			return file{}, err
		}
	}
	work.SortBlocks()
	work.Cleanup()
	return file{data: modfile.Format(work.Syntax)}, nil
}

// release drops the replace directives of modules of the repository, and asks for these at the version.
func (m repoModule) release(all []repoModule, version string) error {
	for _, r := range slices.Clone(m.mod.Replace) {
		if ours(all, r.Old.Path) {
			if err := m.mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return err
			}
		}
	}
	for _, needed := range m.needs {
		if err := m.mod.AddRequire(needed, version); err != nil {
			return err
		}
	}
	m.mod.Cleanup()
	return nil
}

func ours(all []repoModule, path string) bool {
	return slices.ContainsFunc(all, func(m repoModule) bool { return m.path == path })
}

// withSums returns a go.sum with other lines for some modules.
func withSums(text string, needs, lines []string) []byte {
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, " "); !slices.Contains(needs, name) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	key := func(line string) module.Version {
		fields := strings.Fields(line + " ? ?")
		return module.Version{Path: fields[0], Version: fields[1]}
	}
	byKey, order := map[module.Version]string{}, []module.Version{}
	for _, line := range lines {
		if byKey[key(line)] == "" {
			order = append(order, key(line))
		}
		byKey[key(line)] = line
	}
	module.Sort(order)
	var out strings.Builder
	for _, k := range order {
		out.WriteString(byKey[k] + "\n")
	}
	return []byte(out.String())
}

// verify looks for what [released] must not leave, whoever has made the tree.
func verify(t tree, version string) error {
	modules, err := modulesOf(t)
	if err != nil {
		return err
	}
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, m := range modules {
		for _, r := range m.mod.Replace {
			if m.tagged() || ours(modules, r.Old.Path) || modfile.IsDirectoryPath(r.New.Path) {
				complain("%s replaces %s: nobody else sees that, and go install refuses it", m.file("go.mod"), r.Old.Path)
			}
		}
		for _, r := range m.mod.Require {
			if !ours(modules, r.Mod.Path) {
				continue
			}
			if r.Mod.Version != version {
				complain("%s needs %s at %s, and %s is released", m.file("go.mod"), r.Mod.Path, r.Mod.Version, version)
			}
			for _, what := range []string{" ", "/go.mod "} {
				if !strings.Contains("\n"+string(t[m.file("go.sum")].data), "\n"+r.Mod.Path+" "+version+what) {
					complain("%s has no checksum of %s %s", m.file("go.sum"), r.Mod.Path, version)
				}
			}
		}
	}
	if !strings.Contains(string(t[changelog].data), "\n## ["+strings.TrimPrefix(version, "v")+"] - 2") {
		complain("%s has no heading of %s with a date", changelog, version)
	}
	if wrong != nil {
		return fmt.Errorf("the tree is not what can be released:\n\t%s", strings.Join(wrong, "\n\t"))
	}
	return nil
}
