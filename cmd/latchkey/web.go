package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	latchkeyweb "github.com/latchkey-go/latchkey/web"
)

func webCommand() *cli.Command {
	return &cli.Command{
		Name: "web", Usage: "serve a page that shows what is held and waited for, which jobs run when, and who leads",
		Description: `Serves the page at --listen, until it is interrupted. It can be read by all who can reach it: so beside an address of this
machine alone it needs a password. Without --actions nothing can be changed with it. What is done is logged to standard
error, with the user of the password, or the one who runs this.`,
		Flags: connection(
			&cli.StringFlag{Name: "listen", Usage: "`HOST:PORT` at which it serves the page; port 0 is a free one", Value: "127.0.0.1:8080"},
			&cli.BoolFlag{Name: "actions", Usage: "let who looks take locks away, pause and resume jobs, and have leaders resign"},
			&cli.StringFlag{Name: "user", Usage: "`NAME` that a browser asks for", Value: "latchkey"},
			&cli.StringFlag{Name: "password", Usage: "password that a browser asks for: better in the environment", Sources: cli.EnvVars("LATCHKEY_WEB_PASSWORD")},
		),
		Action: serveWeb,
	}
}

func serveWeb(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 0 {
		return usage(c)
	}
	host, _, err := net.SplitHostPort(c.String("listen"))
	if err != nil {
		return exit(statusUsage, "--listen: %w", err)
	}
	local, password := isLocal(host), c.String("password")
	if !local && password == "" {
		return exit(statusUsage, "%s can be reached from elsewhere: set LATCHKEY_WEB_PASSWORD, or listen on 127.0.0.1", c.String("listen"))
	}
	client, err := open(c, c.FullName(), latchkey.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	if err != nil {
		return err
	}
	defer client.Close()
	var options []latchkeyweb.Option
	if c.Bool("actions") {
		options = append(options, latchkeyweb.WithActions(func(r *http.Request, _ latchkeyweb.Action) (string, error) {
			if user, _, ok := r.BasicAuth(); ok {
				return user, nil
			}
			return "latchkey web" + byUser(), nil
		}))
	}
	page, err := latchkeyweb.Handler(client, options...)
	if err != nil {
		return failed(err)
	}
	if password != "" {
		page = behindPassword(page, c.String("user"), password)
	} else {
		page = toLocalNames(page)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.String("listen"))
	if err != nil {
		return exit(statusUsage, "--listen: %w", err)
	}
	if _, err := fmt.Fprintf(c.Root().Writer, "http://%s/\n", listener.Addr()); err != nil {
		return err
	}
	const slowest = 10 * time.Second
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: slowest, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // so pages that are looked at end with it
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowest)
		defer cancel()
		err = errors.Join(server.Shutdown(over), <-done)
	}
	if errors.Is(err, http.ErrServerClosed) { // by us
		return nil
	}
	return err
}

// isLocal reports whether a host is this machine, which no other can reach.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// toLocalNames refuses requests for other names than this machine's own: a page elsewhere may have its name lead here.
func toLocalNames(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !isLocal(strings.Trim(host, "[]")) {
			http.Error(w, "this page is for this machine alone", http.StatusForbidden)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// behindPassword asks for a user and a password.
func behindPassword(page http.Handler, user, password string) http.Handler {
	same := func(a, b string) int { // in a time that tells nothing
		one, other := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
		return subtle.ConstantTimeCompare(one[:], other[:])
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, ok := r.BasicAuth()
		if !ok || same(u, user)&same(p, password) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="latchkey", charset="UTF-8"`)
			http.Error(w, "this page needs a password", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	})
}
