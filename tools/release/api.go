package main

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// runAPI compares the API of every module that has tags with that of its last version, and says which version
// is next. It fails when the version that is given does not say as much.
func runAPI(ctx context.Context, o options) error {
	last, err := lastVersion(ctx, o.root, o.version)
	if err != nil {
		return err
	}
	if last == "" {
		o.say("there is nothing before the first release: no API to compare with")
		return nil
	}
	then, err := commitTree(ctx, o.root, last)
	if err != nil {
		return err
	}
	now, err := folderTree(ctx, o.root)
	if err != nil {
		return err
	}
	older, err := apisOf(ctx, then)
	if err != nil {
		return fmt.Errorf("%s: %w", last, err)
	}
	newer, err := apisOf(ctx, now)
	if err != nil {
		return err
	}
	needed := patch
	for _, name := range both(older, newer) {
		report := apidiff.ModuleChanges(moduleOr(older, name), moduleOr(newer, name))
		sort.Slice(report.Changes, func(i, j int) bool { return report.Changes[i].Message < report.Changes[j].Message })
		if len(report.Changes) > 0 {
			o.say("%s since %s\n%s", name, last, strings.TrimRight(report.String(), "\n"))
		}
		needed = max(needed, stepFor(last, report))
	}
	if o.version != "" && stepOf(last, o.version) < needed {
		return fmt.Errorf("%s after %s is a %s version, and these changes need a %s one", o.version, last, stepOf(last, o.version), needed)
	}
	o.say("the version after %s is a %s one at least", last, needed)
	return nil
}

// stepFor is how far a version must be from the last one. Before v1 a minor version may break what was there,
// and a patch may add to it.
func stepFor(last string, report apidiff.Report) step {
	needed := patch
	for _, change := range report.Changes {
		switch {
		case change.Compatible && strings.HasPrefix(last, "v0."):
		case change.Compatible:
			needed = max(needed, minor)
		case strings.HasPrefix(last, "v0."):
			needed = max(needed, minor)
		default:
			needed = major
		}
	}
	return needed
}

// apisOf loads the packages that users can import of the modules of a tree.
func apisOf(ctx context.Context, t tree) (map[string]*apidiff.Module, error) {
	modules, err := modulesOf(t)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "latchkey-api")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := t.write(folder); err != nil {
		return nil, err
	}
	all := map[string]*apidiff.Module{}
	for _, m := range modules {
		if !m.tagged() {
			continue
		}
		loaded, err := packages.Load(&packages.Config{
			Context: ctx, Dir: filepath.Join(folder, filepath.FromSlash(m.folder)),
			Mode: packages.LoadTypes,
			Env:  append(os.Environ(), "GOWORK="+filepath.Join(folder, "go.work"), "GOFLAGS=-buildvcs=false -trimpath"),
		}, "./...")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
		all[m.path] = &apidiff.Module{Path: m.path}
		for _, p := range loaded {
			if len(p.Errors) > 0 {
				return nil, fmt.Errorf("%s: %w", m.path, errors.Join(asErrors(p.Errors)...))
			}
			if p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/") {
				all[m.path].Packages = append(all[m.path].Packages, p.Types)
			}
		}
	}
	return all, nil
}

func asErrors(all []packages.Error) (errs []error) {
	for _, err := range all {
		errs = append(errs, err)
	}
	return errs
}

// both are the names that one or the other has, in order.
func both(a, b map[string]*apidiff.Module) (names []string) {
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if a[name] == nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// moduleOr is a module without packages when there is none of the name.
func moduleOr(all map[string]*apidiff.Module, name string) *apidiff.Module {
	if m := all[name]; m != nil {
		return m
	}
	return &apidiff.Module{Path: name, Packages: []*types.Package{}}
}
