package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
	database    = "https://vuln.go.dev"
)

// errNoDatabase says that nobody was asked.
var errNoDatabase = errors.New("NOTHING WAS LOOKED FOR: the vulnerability database does not answer")

// runVulnerabilities looks for known vulnerabilities in what users get, which is what the packages of modules
// with tags call. GOVULNDB names another database, as a file:// URL may.
func runVulnerabilities(ctx context.Context, o options) error {
	db := os.Getenv("GOVULNDB")
	if db == "" {
		db = database
	}
	modified, err := askDatabase(ctx, db)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoDatabase, err)
	}
	o.say("%s is of %s", db, modified.Format(time.DateTime))
	t, err := folderTree(ctx, o.root)
	if err != nil {
		return err
	}
	modules, err := modulesOf(t)
	if err != nil {
		return err
	}
	var failed []error
	for _, m := range modules {
		if !m.tagged() {
			continue
		}
		o.say("== %s", m.path)
		c := exec.CommandContext(ctx, "go", "run", govulncheck, "-db", db, "./...")
		c.Dir = filepath.Join(o.root, filepath.FromSlash(m.folder))
		c.Env = append(os.Environ(), "GOWORK=off") // or versions would be those of other modules here
		c.Stdout, c.Stderr = o.out, o.out
		if err := c.Run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.path, err))
		}
	}
	return errors.Join(failed...)
}

// askDatabase asks when the database was changed, which every one tells.
func askDatabase(ctx context.Context, db string) (modified time.Time, err error) {
	text, err := read(ctx, strings.TrimSuffix(db, "/")+"/index/db.json")
	if err != nil {
		return modified, err
	}
	var index struct{ Modified time.Time }
	if err := json.Unmarshal(text, &index); err != nil {
		return modified, fmt.Errorf("%s/index/db.json: %w", db, err)
	}
	if index.Modified.IsZero() {
		return modified, fmt.Errorf("%s/index/db.json does not say when it was changed", db)
	}
	return index.Modified, nil
}

// read returns what is at a URL.
func read(ctx context.Context, url string) ([]byte, error) {
	if path, ok := strings.CutPrefix(url, "file://"); ok {
		return os.ReadFile(filepath.FromSlash(path))
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, 1<<20))
}
