package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// git runs it in the repository, and returns what it says. The repository may be somebody else's, as on a
// machine for CI.
func git(ctx context.Context, root string, args ...string) (string, error) {
	return gitWith(ctx, root, nil, nil, args...)
}

// gitWith is git with more environment, and an input.
func gitWith(ctx context.Context, root string, env []string, input []byte, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	c.Dir, c.Env, c.Stdin = root, append(os.Environ(), env...), bytes.NewReader(input)
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

// commitTree reads the files of a commit or tag.
func commitTree(ctx context.Context, root, revision string) (tree, error) {
	archive, err := git(ctx, root, "archive", "--format=tar", revision)
	if err != nil {
		return nil, err
	}
	t := tree{}
	for r := tar.NewReader(strings.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the archive of %s: %w", revision, err)
		}
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		default:
			return nil, fmt.Errorf("%s is no regular file", header.Name)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("the archive of %s: %w", revision, err)
		}
		t[header.Name] = file{data, header.FileInfo().Mode().Perm()&0o100 != 0}
	}
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
