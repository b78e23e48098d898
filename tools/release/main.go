// Command release makes what is released, and checks it. It runs in the root of the repository:
//
//	go run ./tools/release check -version v0.1.0    # are the modules what users can get? In a minute
//	go run ./tools/release commit -version v0.1.0   # make the tree to tag, a commit beside the branch
//
// On a branch the modules of the repository replace one another by folders. go install takes no module that
// does so, and no other program sees it. So what is tagged is another tree, which [released] makes.
// CONTRIBUTING.md says how it becomes a release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// command is one that a user can give.
type command struct {
	what string
	run  func(ctx context.Context, o options) error
}

var commands = map[string]command{
	"check":  {"are the modules of the release what users can get?", runCheck},
	"commit": {"make the tree to tag, a commit beside the branch", runCommit},
}

// options are what all commands may be told.
type options struct {
	root    string // folder of the repository
	version string // to be released; empty: the command chooses
	date    time.Time
	out     io.Writer
}

func (o options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.out, format+"\n", args...) // nobody is told that nobody can be told
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	if len(args) == 0 {
		return fmt.Errorf("a command is missing: %s", strings.Join(names, ", "))
	}
	c, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("there is no command %q: %s", args[0], strings.Join(names, ", "))
	}
	o := options{date: time.Now().UTC(), out: out}
	flags := flag.NewFlagSet(args[0]+": "+c.what, flag.ContinueOnError)
	flags.StringVar(&o.version, "version", "", "what is to be released, as v0.1.0")
	flags.StringVar(&o.root, "C", ".", "the root of the repository")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments", args[0])
	}
	if o.version != "" {
		if err := checkVersion(o.version); err != nil {
			return err
		}
	}
	return c.run(ctx, o)
}
