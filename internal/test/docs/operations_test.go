package docs_test

import (
	"context"
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
)

// firstColumn are the texts in backquotes in the first cells of the tables of docs/emergencies.md that have
// this heading.
func firstColumn(t *testing.T, heading string) (texts []string) {
	t.Helper()
	text, err := os.ReadFile("docs/emergencies.md")
	require.NoError(t, err)
	tables := strings.Split(string(text), "\n| "+heading+" |")[1:]
	require.NotEmpty(t, tables, heading)
	for _, table := range tables {
		table, _, _ = strings.Cut(table, "\n\n")
		for row := range strings.Lines(table) {
			cell, found := strings.CutPrefix(row, "| ")
			cell, _, _ = strings.Cut(cell, " | ")
			for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				require.True(t, found, row)
				texts = append(texts, quoted[1])
			}
		}
	}
	require.NotEmpty(t, texts, heading)
	return texts
}

// What docs/emergencies.md says that errors say is in a text of the code.
func TestEmergenciesQuoteErrors(t *testing.T) {
	var said strings.Builder
	for _, file := range sources(t, ".", ".go") {
		if file.isTest() {
			continue
		}
		source, files := []byte(strings.Join(file.lines, "\n")), token.NewFileSet()
		var s scanner.Scanner
		s.Init(files.AddFile(file.path, files.Base(), len(source)), source, nil, 0)
		for _, kind, text := s.Scan(); kind != token.EOF; _, kind, text = s.Scan() {
			switch {
			case kind == token.STRING:
				plain, err := strconv.Unquote(text)
				require.NoError(t, err)
				said.WriteString(plain + "\n")
			case kind == token.IDENT && strings.HasPrefix(text, "Err"):
				said.WriteString(text + "\n")
			}
		}
	}
	for _, heading := range []string{"the error says", "the reason says"} {
		for _, text := range firstColumn(t, heading) {
			exists := strings.Contains(said.String(), strings.TrimSuffix(text, " …"))
			require.True(t, exists, "docs/emergencies.md: no error says %q", text)
		}
	}
}

// The codes of Redis that docs/emergencies.md explains are waited for, and some are not.
func TestEmergenciesHaveCodes(t *testing.T) {
	explained := firstColumn(t, "code")
	source, err := os.ReadFile("internal/lua/errors.go")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(source), "for _, code := range []string{")
	require.True(t, found)
	list, _, found = strings.Cut(list, "} {")
	require.True(t, found)
	waited := regexp.MustCompile(`"([A-Z]+) ?"`).FindAllStringSubmatch(list, -1)
	require.NotEmpty(t, waited)
	for _, code := range waited {
		require.Contains(t, explained, code[1], "docs/emergencies.md lacks a code that is waited for")
	}
	text, err := os.ReadFile("docs/emergencies.md")
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z]{3,}`(?:, `[A-Z]{3,}`)*) \\| [^|]+ \\| ([^|]+) \\|").FindAllStringSubmatch(string(text), -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			waits := strings.Contains(list, `"`+strings.Trim(code, "`"))
			require.Equal(t, strings.Contains(row[2], "waits"), waits, "what becomes of %s", code)
		}
	}
}

// Each command of docs/emergencies.md runs as it stands there, and shows what there is to see.
func TestEmergenciesCommands(t *testing.T) {
	server := redistest.NewProcess(t)
	c, err := latchkey.Open(server.URL())
	require.NoError(t, err)
	defer c.Close()
	lock, err := rlock.New(c, "orders:42")
	require.NoError(t, err)
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	other, err := latchkey.Open(server.URL())
	require.NoError(t, err)
	defer other.Close()
	same, err := rlock.New(other, "orders:42")
	require.NoError(t, err)
	waiter := redistest.Begin(t, same.Lock)
	require.Eventually(t, func() bool {
		state, err := lock.Inspect(t.Context())
		return err == nil && state.Waiting == 1
	}, 20*time.Second, time.Millisecond)
	defer lead(t, c)()

	text, err := os.ReadFile("docs/emergencies.md")
	require.NoError(t, err)
	plain, commands := server.Client(t), regexp.MustCompile(`(?m)^redis-cli (.*?)(?: +#.*)?$`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(commands), 20)
	require.Eventually(t, func() bool {
		state, err := same.Inspect(t.Context())
		return err == nil && !state.Holder.Since.IsZero()
	}, 20*time.Second, 10*time.Millisecond, "its client tells who it is")
	for _, command := range commands {
		line := strings.ReplaceAll(command[1], "'", "")
		line = strings.ReplaceAll(line, "EXAMPLE4CLIENTID", clientOf(t, plain))
		words := strings.Fields(strings.Replace(line, "--scan --pattern", "SCAN 0 COUNT 1000 MATCH", 1))
		reply, err := plain.Do(t.Context(), plain.B().Arbitrary(words...).Build()).ToAny()
		require.NoError(t, err, line)
		switch words[0] {
		case "SCAN":
			reply = reply.([]any)[1]
		case "PUBSUB":
			require.Equal(t, int64(1), reply.([]any)[1], line)
		}
		if nothing := map[string]bool{"SLOWLOG": true, "LATENCY": true, "ACL": true}[words[0]]; !nothing {
			require.NotEmpty(t, reply, line)
			require.NotContains(t, []any{int64(-2), "none"}, reply, "%s: there is no such key", line)
		}
	}
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
}

// lead has this process lead, and run a job, until stop: their records are there meanwhile.
func lead(t *testing.T, c *latchkey.Client) (stop func()) {
	t.Helper()
	leads, runs := make(chan struct{}), make(chan struct{})
	candidate, err := leader.New(c, "scheduler")
	require.NoError(t, err)
	led := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, candidate.Run(ctx, func(ctx context.Context, _ leader.Term) error {
			close(leads)
			<-ctx.Done()
			return nil
		})
	})
	job, err := once.Every(c, "report", 10*time.Millisecond, func(ctx context.Context, _ *once.Run) error {
		close(runs)
		<-ctx.Done()
		return nil
	})
	require.NoError(t, err)
	ran := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) })
	<-leads
	<-runs
	return func() {
		led.Cancel()
		ran.Cancel()
		require.ErrorIs(t, led.Outcome(t), context.Canceled)
		require.ErrorIs(t, ran.Outcome(t), context.Canceled)
	}
}

// clientOf is the id of the client that holds the lock.
func clientOf(t *testing.T, plain rueidis.Client) string {
	t.Helper()
	holder, err := plain.Do(t.Context(), plain.B().Hkeys().Key("orders:42").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Len(t, holder, 1)
	client, _, found := strings.Cut(holder[0], ":")
	require.True(t, found)
	return client
}
