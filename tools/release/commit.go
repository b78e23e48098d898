package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// runCommit makes the tree to tag of what the branch has: a commit whose parent is the branch's last, on a
// branch of its own. Files that are checked out, and the branch, stay as they are. It says what is to be
// tagged.
func runCommit(ctx context.Context, o options) error {
	if o.version == "" {
		return errors.New("which version? Say -version v0.1.0")
	}
	if changed, err := git(ctx, o.root, "status", "--porcelain"); err != nil {
		return err
	} else if changed != "" {
		return fmt.Errorf("commit what is changed first:\n%s", changed)
	}
	last, err := lastVersion(ctx, o.root, "")
	if err != nil {
		return err
	}
	if last != "" && semver.Compare(last, o.version) >= 0 {
		return fmt.Errorf("%s is no version after %s", o.version, last)
	}
	before, err := commitTree(ctx, o.root, "HEAD")
	if err != nil {
		return err
	}
	after, err := released(before, o.version, o.date)
	if err != nil {
		return err
	}
	if err := verify(after, o.version); err != nil {
		return err
	}
	branch, err := commitBeside(ctx, o.root, before, after, o.version)
	if err != nil {
		return err
	}
	return sayTags(o, after, branch)
}

// commitBeside commits what differs between the tree of HEAD and another one. It returns the branch that has
// the commit.
func commitBeside(ctx context.Context, root string, before, after tree, version string) (branch string, err error) {
	folder, err := os.MkdirTemp("", "latchkey-index")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(folder, "index")}
	if _, err := gitWith(ctx, root, index, nil, "read-tree", "HEAD"); err != nil {
		return "", err
	}
	for name, f := range after {
		if bytes.Equal(before[name].data, f.data) {
			continue
		}
		blob, err := gitWith(ctx, root, nil, f.data, "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := gitWith(ctx, root, index, nil, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name); err != nil {
			return "", err
		}
	}
	written, err := gitWith(ctx, root, index, nil, "write-tree")
	if err != nil {
		return "", err
	}
	commit, err := git(ctx, root, "commit-tree", written, "-p", "HEAD", "-m", "Release "+version)
	if err != nil {
		return "", err
	}
	branch = "release/" + version
	_, err = git(ctx, root, "update-ref", "refs/heads/"+branch, commit, "") // "": it must be new
	return branch, err
}

// sayTags says how the commit becomes a release.
func sayTags(o options, t tree, branch string) error {
	modules, err := modulesOf(t)
	if err != nil {
		return err
	}
	var tags []string
	for _, m := range modules {
		if m.tagged() {
			tags = append(tags, m.tag(o.version))
		}
	}
	o.say("%s has the tree to tag. Look at it, and then:\n", branch)
	o.say("  git show --stat %s", branch)
	for _, tag := range tags {
		o.say("  git tag -a -m %s %s %s", tag, tag, branch)
	}
	o.say("  git push origin %s", strings.Join(tags, " "))
	o.say("  git checkout %s -- %s && git commit -m 'CHANGELOG: %s'", branch, changelog, o.version)
	o.say("  git branch -D %s", branch)
	return nil
}
