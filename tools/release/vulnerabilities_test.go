package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A database that does not answer is told, and is no success.
func TestNoDatabase(t *testing.T) {
	root := repository(t, miniature())
	answers := map[string]string{"/nonsense/index/db.json": "<html>", "/undated/index/db.json": "{}"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			_, _ = w.Write([]byte(answer)) // the client sees what is missing
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for db, says := range map[string]string{
		"http://127.0.0.1:1":        "connection refused",
		"file:///nowhere":           "no such file",
		server.URL:                  "404 Not Found",
		server.URL + "/nonsense":    "invalid character",
		server.URL + "/undated/":    "does not say when it was changed",
		"http://nowhere.invalid:80": "nowhere.invalid",
	} {
		t.Setenv("GOVULNDB", db)
		out, err := runTool(t, root, "vulnerabilities")
		require.ErrorIs(t, err, errNoDatabase, db)
		require.ErrorContains(t, err, says)
		require.Empty(t, out, "nothing is said that looks like a result")
	}
}

// One that answers, also as files, says how old it is.
func TestDatabase(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, writeFile(filepath.Join(folder, "index", "db.json"), []byte(`{"modified":"2026-11-20T01:02:03Z"}`)))
	server := httptest.NewServer(http.FileServerFS(os.DirFS(folder)))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, db := range []string{server.URL, server.URL + "/", fileURL(folder)} {
		modified, err := askDatabase(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, "2026-11-20T01:02:03Z", modified.Format("2006-01-02T15:04:05Z07:00"))
	}
}
