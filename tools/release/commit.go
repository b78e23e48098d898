package main

import (
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
	last, err := lastVersion(ctx, o.root, "", "")
	if err != nil {
		return err
	}
	if last != "" && semver.Compare(last, o.version) >= 0 {
		return fmt.Errorf("%s is no version after %s", o.version, last)
	}
	before, err := folderTree(ctx, o.root) // as HEAD has it
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
	branch := "release/" + o.version
	if err := commitBeside(ctx, o.root, after, branch, "Release "+o.version); err != nil {
		return err
	}
	return sayTags(o, after, branch)
}

// commitBeside commits a tree to a new branch, in a worktree that does not stay.
func commitBeside(ctx context.Context, root string, t tree, branch, message string) (err error) {
	folder, err := os.MkdirTemp("", "latchkey-commit")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	at := filepath.Join(folder, "tree")
	if _, err := git(ctx, root, "worktree", "add", "--quiet", "-b", branch, at, "HEAD"); err != nil {
		return err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		_, removed := git(ctx, root, "worktree", "remove", "--force", at)
		if err != nil { // else the next try finds the branch
			_, dropped := git(ctx, root, "branch", "-D", branch)
			removed = errors.Join(removed, dropped)
		}
		err = errors.Join(err, removed)
	}()
	if err := t.write(at); err != nil {
		return err
	}
	if _, err := git(ctx, at, "add", "--all"); err != nil {
		return err
	}
	_, err = git(ctx, at, "commit", "--quiet", "--message", message)
	return err
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
