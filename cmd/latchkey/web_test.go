//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// served is a page that the command serves.
func served(t *testing.T, url string, args ...string) (*running, string) {
	t.Helper()
	web := begin(t, url, append([]string{"web", "--listen", "127.0.0.1:0"}, args...)...)
	require.Eventually(t, func() bool { return strings.Contains(web.out.String(), "\n") }, limit, time.Millisecond, "it says where")
	return web, strings.TrimSpace(web.out.String())
}

// fetched asks for a page.
func fetched(t *testing.T, url string, set func(*http.Request)) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if set != nil {
		set(r)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(b)
}

// latchkey web shows what is held, and ends when it is interrupted, also while a page is open.
func TestWeb(t *testing.T) {
	t.Parallel()
	s := busy(t)
	web, url := served(t, s.URL(), "--actions")
	status, page := fetched(t, url, nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "orders:42")
	_, name := fetched(t, url+"name?n=orders:42", nil)
	require.Contains(t, name, "Take it away")
	status, page = fetched(t, url, func(r *http.Request) { r.Host = "elsewhere.example:80" })
	require.Equal(t, http.StatusForbidden, status)
	require.NotContains(t, page, "orders:42", "a name elsewhere that leads here shows nothing")
	response, err := http.Get(url + "live?page=")
	require.NoError(t, err)
	defer response.Body.Close()
	require.NoError(t, web.Process.Signal(os.Interrupt))
	require.Zero(t, web.status(t), web.errors.String())
}

// What can be reached from elsewhere wants a password.
func TestWebPassword(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80"} {
		status, out := runCommand(t, s.URL(), "web", "--listen", listen)
		require.Equal(t, statusUsage, status, listen)
		require.Contains(t, out, "set LATCHKEY_WEB_PASSWORD")
	}
	_, url := served(t, s.URL(), "--password", "secret")
	status, page := fetched(t, url, nil)
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, page, "Now")
	for user, password := range map[string]string{"latchkey": "wrong", "other": "secret"} {
		status, _ = fetched(t, url, func(r *http.Request) { r.SetBasicAuth(user, password) })
		require.Equal(t, http.StatusUnauthorized, status)
	}
	status, page = fetched(t, url, func(r *http.Request) { r.SetBasicAuth("latchkey", "secret") })
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "Nothing is held")
}
