package latchkeyweb_test

import (
	"errors"
	"net/http"

	"github.com/latchkey-go/latchkey"
	latchkeyweb "github.com/latchkey-go/latchkey/web"
)

func onCall(user string) bool { return user == "alice" }

// The page below a path of your own server.
func Example() {
	mount := func(client *latchkey.Client, mux *http.ServeMux) error {
		page, err := latchkeyweb.Handler(client) // github.com/latchkey-go/latchkey/web
		if err != nil {
			return err
		}
		mux.Handle("/locks/", page)
		return nil
	}
	_ = mount
}

// Who is on call may take a lock away. A proxy in front says who it is.
func ExampleWithActions() {
	mount := func(client *latchkey.Client) (http.Handler, error) {
		page, err := latchkeyweb.Handler(client, latchkeyweb.WithActions(
			func(r *http.Request, a latchkeyweb.Action) (who string, err error) {
				user := r.Header.Get("X-Forwarded-User") // set by a proxy that asks for a password, and removes it from what browsers send
				if user == "" || a.Kind == latchkeyweb.Unlock && !onCall(user) {
					return "", errors.New("only who is on call")
				}
				return user, nil
			}))
		return page, err
	}
	_ = mount
}

// A user and a password, as a browser asks for them.
func ExampleHandler_password() {
	mount := func(client *latchkey.Client, password string) (http.Handler, error) {
		page, err := latchkeyweb.Handler(client)
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, given, ok := r.BasicAuth(); !ok || given != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="locks"`)
				http.Error(w, "a password is needed", http.StatusUnauthorized)
				return
			}
			page.ServeHTTP(w, r)
		}), nil
	}
	_ = mount
}
