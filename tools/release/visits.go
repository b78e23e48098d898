package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// user is somebody who gets what was released, and what they do with it.
type user struct {
	what  string
	visit func(ctx context.Context, e *elsewhere) error
}

// visits are what users of this repository do.
var visits = []user{
	{"every module of the tree finds the others by their version", resolve},
	{"gorelease, of every module with tags: the version says what became of the API", compare},
	{"go install of the command, and its demonstration", demonstrate},
	{"a program elsewhere, of every library, that takes a lock, and its test with the kit", useLibraries},
	{"go install of latchkeyvet, which finds a mistake in that program and no other", findMistakes},
}

// resolve lists what each module needs, as it stands in the tree: no file may have to be changed for that. Of
// those with tags it lists the packages as well, for which the checksums of other modules are compared.
func resolve(ctx context.Context, e *elsewhere) error {
	for _, m := range e.modules {
		out, err := e.run(ctx, "tree/"+m.folder, "go", "list", "-mod=readonly", "-m", "-json=Path,Version,Main,Replace", "all")
		if err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		if err := e.listed(m.path, out, m.needs); err != nil {
			return err
		}
		if !m.tagged() {
			continue
		}
		if _, err := e.run(ctx, "tree/"+m.folder, "go", "list", "-mod=readonly", "-deps", "./..."); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

// compare asks gorelease, which is pinned in the go.mod of the tools, what became of each module since the
// last version. It refuses a version that does not say as much, and a go.mod or go.sum that is not tidy. It lets a
// patch of v0 break what was there: we do not.
func compare(ctx context.Context, e *elsewhere) error {
	gorelease := e.at("bin", "gorelease")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", gorelease, "golang.org/x/exp/cmd/gorelease").CombinedOutput(); err != nil {
		return fmt.Errorf("build gorelease: %w: %s", err, out)
	}
	for _, m := range e.modules {
		if !m.tagged() {
			continue
		}
		last, err := lastVersion(ctx, e.root, m.folder, e.version)
		if err != nil {
			return err
		}
		out, err := e.run(ctx, "tree/"+m.folder, gorelease, "-base="+cmp.Or(last, "none"), "-version="+e.version)
		if err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		if last == "" {
			continue
		}
		e.say("%s since %s\n%s", m.path, last, strings.TrimSpace(out))
		if semver.MajorMinor(last) == semver.MajorMinor(e.version) && strings.Contains(out, "## incompatible changes") {
			return fmt.Errorf("%s: %s is a patch of %s, and these changes need a minor version\n%s", m.path, e.version, last, out)
		}
	}
	return nil
}

// listed checks the list of modules that go list has said: ours have the version, and are not replaced.
func (e *elsewhere) listed(main, out string, needs []string) error {
	var found []string
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var m struct {
			Path, Version string
			Main          bool
			Replace       *struct{ Path string }
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch {
		case m.Main || !ours(e.modules, m.Path):
			continue
		case m.Replace != nil:
			return fmt.Errorf("%s gets %s in place of %s", main, m.Replace.Path, m.Path)
		case m.Version != e.version:
			return fmt.Errorf("%s gets %s %s, and %s is released", main, m.Path, m.Version, e.version)
		}
		found = append(found, m.Path)
	}
	for _, needed := range needs {
		if !slices.Contains(found, needed) {
			return fmt.Errorf("%s does not get %s", main, needed)
		}
	}
	return nil
}

// install installs a command by its version, and returns its file. The modules that are ours in it have that
// version.
func (e *elsewhere) install(ctx context.Context, command string) (string, error) {
	if _, err := e.run(ctx, "", "go", "install", e.home+"/"+command+"@"+e.version); err != nil {
		return "", err
	}
	name := e.at("bin", command[strings.LastIndex(command, "/")+1:])
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return "", err
	}
	if info.Main.Version != e.version {
		return "", fmt.Errorf("%s was installed at %q", command, info.Main.Version)
	}
	for _, m := range info.Deps {
		if ours(e.modules, m.Path) && (m.Version != e.version || m.Replace != nil) {
			return "", fmt.Errorf("%s was installed with %s %s", command, m.Path, m.Version)
		}
	}
	return name, nil
}

func demonstrate(ctx context.Context, e *elsewhere) error {
	command, err := e.install(ctx, "cmd/latchkey")
	if err != nil {
		return err
	}
	out, err := e.run(ctx, "", command, "demo", "--json")
	if err != nil {
		return err
	}
	var summary struct {
		Checks []struct {
			Name string
			OK   bool
		}
	}
	if err := json.Unmarshal([]byte(out), &summary); err != nil {
		return fmt.Errorf("the summary of the demonstration: %w: %s", err, out)
	}
	if len(summary.Checks) == 0 {
		return fmt.Errorf("the demonstration has checked nothing: %s", out)
	}
	return nil
}

// mistake is what latchkeyvet says of testdata/outside/wrong.
const mistake = "hold is not given back"

func findMistakes(ctx context.Context, e *elsewhere) error {
	command, err := e.install(ctx, "latchkeyvet/cmd/latchkeyvet")
	if err != nil {
		return err
	}
	if _, err := e.run(ctx, "outside", command, "."); err != nil {
		return err
	}
	out, err := e.run(ctx, "outside", command, "./wrong")
	if err == nil || !strings.Contains(out, mistake) {
		return fmt.Errorf("it does not find the mistake: %w: %s", err, out)
	}
	return nil
}
