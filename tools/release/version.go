package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// firstVersion is what is released when nothing is.
const firstVersion = "v0.1.0"

// checkVersion refuses what is no version of a module, as 1.0 is not.
func checkVersion(version string) error {
	if module.CanonicalVersion(version) != version || module.IsPseudoVersion(version) {
		return fmt.Errorf("%q is no version as v0.1.0", version)
	}
	return nil
}

// lastVersion is the greatest of the module in a folder that has a tag, below another one unless that is empty.
// It is empty when there is none. Tags are not on the branch, but on a commit beside it: so they are not looked
// for in its history.
func lastVersion(ctx context.Context, root, folder, below string) (string, error) {
	list, err := git(ctx, root, "tag", "--list", path.Join(folder, "v*"))
	if err != nil {
		return "", err
	}
	last := ""
	for tag := range strings.FieldsSeq(list) {
		tag = path.Base(tag)
		if checkVersion(tag) == nil && semver.Compare(tag, last) > 0 && (below == "" || semver.Compare(tag, below) < 0) {
			last = tag
		}
	}
	return last, nil
}

// nextVersion is what a release after the last one may be called: the next minor version.
func nextVersion(last string) string {
	if last == "" {
		return firstVersion
	}
	var major, minor int
	if _, err := fmt.Sscanf(semver.MajorMinor(last), "v%d.%d", &major, &minor); err != nil {
		panic(err) // it is valid
	}
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}
