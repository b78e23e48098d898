// Package latchkeyweb is a page that shows who holds and who waits, which jobs run when, and who leads.
//
//	page, err := latchkeyweb.Handler(client)
//	...
//	mux.Handle("/locks/", page)
//
// You can mount it below any path that ends with a slash, with [http.StripPrefix] or without. It shows the
// names with the client's key prefix. It is as open as the server that it is mounted in: ask for a password
// in front of it.
//
// # Cost
//
// However many people look, the page asks Redis once a second, as "latchkey top" does, and once more for each
// name whose own page is open. Ten seconds after the last person has left, it asks nothing.
package latchkeyweb

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Option is an option of [Handler].
type Option func(*page)

//go:embed assets
var assets embed.FS

// page is the handler.
type page struct {
	eye       *eye
	looker    *look.Looker
	authorize Authorize
	acts      bool
	doctor    doctor
	forms     *http.CrossOriginProtection
}

// Handler returns the page for a client's Redis and key prefix. Nothing can be changed with it: see [WithActions]. It is safe
// for concurrent use. It returns an error that matches [latchkey.ErrInvalid] for a client that is nil.
func Handler(client *latchkey.Client, opts ...Option) (http.Handler, error) {
	inner := (*session.Handle)(client).Client()
	if inner == nil {
		return nil, fmt.Errorf("%w: the client is nil", latchkey.ErrInvalid)
	}
	l := look.New(client, inner.Conn.Client, inner.Options.Prefix)
	p := &page{eye: newEye(inner.Stopped, l), looker: l, forms: http.NewCrossOriginProtection()}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: an option is nil", latchkey.ErrInvalid)
		}
		o(p)
	}
	if p.acts && p.authorize == nil {
		return nil, fmt.Errorf("%w: WithActions needs a function that decides", latchkey.ErrInvalid)
	}
	return p, nil
}

// policy lets the page load what is its own, and lets no other page frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP shows the page that the last part of the path names: so it works below any path.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	_, last := path.Split(r.URL.Path)
	switch {
	case r.URL.Path == "": // behind http.StripPrefix of a path without its slash
		asked, _, _ := strings.Cut(r.RequestURI, "?")
		http.Redirect(w, r, path.Base(asked)+"/", http.StatusSeeOther)
	case strings.Contains(last, ".") && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		p.asset(w, r, last)
	case last == "act":
		p.act(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is only read", http.StatusMethodNotAllowed)
	case last == "live":
		p.live(w, r)
	default:
		p.show(w, r, last)
	}
}

// asset serves what is embedded.
func (p *page) asset(w http.ResponseWriter, r *http.Request, name string) {
	below, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // it is embedded
	}
	if _, err := fs.Stat(below, name); errors.Is(err, fs.ErrNotExist) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, below, name)
}
