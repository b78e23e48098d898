package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// elsewhere is a place outside of the repository, to which only released modules come.
type elsewhere struct {
	options

	modules []repoModule // those of the repository, as they are released
	home    string       // module path of the root
	folder  string       // temporary
	env     []string     // of the go command
}

// runCheck makes the tree of a release of the files that are here, publishes its modules to a folder, and
// does with them what users do. Nothing of it stays.
func runCheck(ctx context.Context, o options) error {
	t, err := folderTree(ctx, o.root)
	if err != nil {
		return err
	}
	log := string(t[changelog].data)
	if o.version == "" {
		last, err := lastVersion(ctx, o.root, "", "")
		if err != nil {
			return err
		}
		if heading := lastHeading(log); semver.Compare(heading, last) > 0 { // a clone may have no tags
			last = heading
		}
		o.version = nextVersion(last)
	}
	t[changelog] = file{data: []byte(withNews(log))}
	if t, err = released(t, o.version, o.date); err != nil {
		return err
	}
	if err := verify(t, o.version); err != nil {
		return err
	}
	return visit(ctx, o, t, visits)
}

// visit lets users come to the modules of a tree.
func visit(ctx context.Context, o options, t tree, users []user) (err error) {
	e, err := publishElsewhere(ctx, o, t)
	if e != nil {
		defer func() { err = errors.Join(err, e.remove()) }()
	}
	if err != nil {
		return err
	}
	for _, u := range users {
		began := time.Now()
		if err := u.visit(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", u.what, err)
		}
		o.say("%4.1f s  %s", time.Since(began).Seconds(), u.what)
	}
	return nil
}

// publishElsewhere makes the place, and the proxy in it. What is returned has to be removed, also with an
// error.
func publishElsewhere(ctx context.Context, o options, t tree) (*elsewhere, error) {
	modules, err := modulesOf(t)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "latchkey-release")
	if err != nil {
		return nil, err
	}
	e := &elsewhere{options: o, modules: modules, folder: folder}
	for _, m := range modules {
		if m.folder == "" {
			e.home = m.path
		}
	}
	if err := t.write(e.at("tree")); err != nil {
		return e, err
	}
	n, err := publish(e.at("proxy"), t, o.version, o.date)
	if err != nil {
		return e, err
	}
	o.say("%d modules are published as %s to a folder", n, o.version)
	e.env, err = e.environment(ctx)
	return e, err
}

// environment is that of the go command there. Other modules come from those that this machine has, and then
// from the proxies that it uses. What is ours, and not in the folder, is looked for nowhere else.
func (e *elsewhere) environment(ctx context.Context) ([]string, error) {
	said, err := exec.CommandContext(ctx, "go", "env", "-json").Output()
	if err != nil {
		return nil, err
	}
	here := map[string]string{}
	if err := json.Unmarshal(said, &here); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	proxies := []string{fileURL(e.at("proxy")), fileURL(filepath.Join(here["GOMODCACHE"], "cache", "download"))}
	for proxy := range strings.FieldsFuncSeq(here["GOPROXY"], func(r rune) bool { return r == ',' || r == '|' }) {
		if proxy != "direct" && proxy != "off" {
			proxies = append(proxies, proxy)
		}
	}
	return []string{
		// GONOPROXY must be empty: with any value the go command asks its cache before the proxies, and takes the
		// root for what is below it.
		"GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GOWORK=off",
		"GOSUMDB=" + here["GOSUMDB"], "GOCACHE=" + here["GOCACHE"], "GOTOOLCHAIN=" + here["GOTOOLCHAIN"],
		"GOPROXY=" + strings.Join(proxies, ","), "GONOSUMDB=" + strings.Trim(here["GONOSUMDB"]+","+e.home, ","),
		// What is compiled stays in the machine's build cache, which knows a module by its version then.
		"GOFLAGS=-mod=mod -trimpath -buildvcs=false",
	}, nil
}

func fileURL(path string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(path), "/")
}

func (e *elsewhere) at(name ...string) string {
	return filepath.Join(append([]string{e.folder}, name...)...)
}

// command is one in a folder of the place, for which the repository does not exist.
func (e *elsewhere) command(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = e.at(folder)
	c.Env = append(append(os.Environ(), e.env...), "GOMODCACHE="+e.at("modules"), "GOBIN="+e.at("bin"))
	return c
}

// run runs a command, and returns what it has said. It fails with that.
func (e *elsewhere) run(ctx context.Context, folder, name string, args ...string) (string, error) {
	c := e.command(ctx, folder, name, args...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return out.String() + complaint.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &complaint)
	}
	return out.String(), nil
}

// remove leaves nothing. The go command has made the modules read-only.
func (e *elsewhere) remove() error {
	clean := e.command(context.Background(), "", "go", "clean", "-modcache")
	out, err := clean.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go clean -modcache: %w: %s", err, out)
	}
	return errors.Join(err, os.RemoveAll(e.folder))
}
