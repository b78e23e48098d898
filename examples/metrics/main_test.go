package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns what Prometheus would read.
func scrape(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// Prometheus sees the goroutines wait and hold, under the names that the dashboard asks for.
func TestScrape(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, os.Getenv("REDIS_URL"), listener) }()
	url := "http://" + listener.Addr().String() + "/metrics"
	var text string
	require.Eventually(t, func() bool {
		text = scrape(t, url)
		return strings.Contains(text, "latchkey_lock_hold_duration_seconds_bucket") && strings.Contains(text, "latchkey_lock_contentions_total")
	}, 20*time.Second, 50*time.Millisecond)
	for _, pattern := range []string{
		`(?m)^latchkey_lock_waiters\{.*latchkey_primitive="lock".*\} [1-7]$`,
		`(?m)^latchkey_lock_holds\{.*latchkey_primitive="(lock|semaphore)".*\} [0-3]$`,
		`(?m)^latchkey_lock_wait_duration_seconds_count\{.*latchkey_outcome="acquired",latchkey_primitive="lock".*\} \d+$`,
		`(?m)^latchkey_lock_contentions_total\{.*latchkey_primitive="lock".*\} \d+$`,
	} {
		require.Eventually(t, func() bool {
			text = scrape(t, url)
			return regexp.MustCompile(pattern).MatchString(text)
		}, 20*time.Second, 20*time.Millisecond, pattern)
	}
	for _, name := range namesOf(t, "dashboard.json") {
		if name == "latchkey_lock_lost_total" { // nothing was lost, which makes no time series
			continue
		}
		require.Contains(t, text, "\n"+name+"{", "the dashboard asks for it")
	}
	cancel()
	require.NoError(t, <-ended)
}

// namesOf are those of the metrics that a dashboard asks for, and it asks for waiters first.
func namesOf(t *testing.T, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.Len(t, dashboard.Panels, 7)
	require.Equal(t, "Waiters", dashboard.Panels[0].Title)
	require.Equal(t, "Contentions", dashboard.Panels[1].Title)
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Targets)
		for _, target := range panel.Targets {
			found := regexp.MustCompile(`latchkey_lock_\w+`).FindAllString(target.Expr, -1)
			require.NotEmpty(t, found, target.Expr)
			names = append(names, found...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
