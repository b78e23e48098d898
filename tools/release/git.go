package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// git runs it in the repository, and returns what it says. The repository may be somebody else's, as on a
// machine for CI.
func git(ctx context.Context, root string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	c.Dir = root
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(complaint.Bytes()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// tree is the files of a repository, by their paths with slashes.
type tree map[string]file

type file struct {
	data       []byte
	executable bool
}

// folderTree reads the files of a folder: those that git has, or would take.
func folderTree(ctx context.Context, root string) (tree, error) {
	list, err := git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	t := tree{}
	for name := range strings.SplitSeq(strings.Trim(list, "\x00"), "\x00") {
		path := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and git was not told yet
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no regular file", name)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t[name] = file{data, info.Mode().Perm()&0o100 != 0}
	}
	return t, nil
}

// write puts the files into a folder.
func (t tree) write(folder string) error {
	for name, f := range t {
		path, mode := filepath.Join(folder, filepath.FromSlash(name)), os.FileMode(0o600)
		if f.executable {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, mode); err != nil {
			return err
		}
	}
	return nil
}
