package main

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/internal/look"
)

// What COMMAND finds in its environment, and what a latchkey inside of COMMAND knows by that.
const (
	envURL      = "LATCHKEY_REDIS"
	envSentinel = "LATCHKEY_SENTINEL_PASSWORD"
	envName     = "LATCHKEY_NAME"
	envToken    = "LATCHKEY_TOKEN"
	envHeld     = "LATCHKEY_HELD"     // the locks that are held around COMMAND, as around.String has them, with their tokens
	envWithheld = "LATCHKEY_WITHHELD" // COMMAND was not given a password
)

// around is a lock that is held around COMMAND.
type around struct{ servers, name string }

func (a around) String() string { return url.QueryEscape(a.servers) + "/" + url.QueryEscape(a.name) }

// lockOfFlags is the lock that the flags mean.
func lockOfFlags(c *cli.Command, name string) (around, error) {
	option, err := optionOf(c)
	if err != nil {
		return around{}, err
	}
	servers := slices.Clone(option.InitAddress)
	slices.Sort(servers)
	return around{strings.Join(servers, ",") + "/" + strconv.Itoa(option.SelectDB), c.String("prefix") + name}, nil
}

// waitsForItself reports whether a latchkey around this one holds a lock, and has not lost it: what has left its group may
// outlive it.
func (a around) waitsForItself(ctx context.Context, c *cli.Command, name string) (bool, error) {
	for _, word := range strings.Fields(os.Getenv(envHeld)) {
		text, ours := strings.CutPrefix(word, a.String()+"/")
		token, err := strconv.ParseInt(text, 10, 64)
		if !ours || err != nil {
			continue
		}
		r, err := inspect(ctx, c, name)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(r.Holders, func(p look.Party) bool { return p.Token == token }), nil
	}
	return false, nil
}

// environment is what COMMAND gets.
func (t task) environment(token int64) []string {
	withheld := []string{}
	if !t.passes {
		for _, name := range []string{envURL, envSentinel} {
			if hasPassword(name) {
				withheld = append(withheld, name)
			}
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(withheld, name)
	})
	env = append(env, envName+"="+t.name, envToken+"="+strconv.FormatInt(token, 10))
	if len(withheld) > 0 {
		env = append(env, envWithheld+"=1")
	}
	if t.held != nil {
		env = append(env, envHeld+"="+strings.TrimSpace(os.Getenv(envHeld)+" "+t.held.String()+"/"+strconv.FormatInt(token, 10)))
	}
	return env
}

// hasPassword reports whether a variable is a password, or a URL with one.
func hasPassword(name string) bool {
	value := os.Getenv(name)
	if name != envURL {
		return value != ""
	}
	u, err := url.Parse(value)
	if err != nil {
		return true
	}
	_, secret := u.User.Password()
	return secret
}

// checkPassed is for a latchkey inside of COMMAND that would ask another Redis than the one around it.
func checkPassed(c *cli.Command) error {
	if os.Getenv(envWithheld) != "" && !c.IsSet("redis") {
		return exit(statusUsage, "the latchkey around this command keeps the password of Redis for itself: give it --pass-redis, or this one --redis")
	}
	return nil
}
