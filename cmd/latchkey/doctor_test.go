//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// examined is what the doctor finds that is not fine, by check.
func examined(t *testing.T, url string, flags ...string) (status int, found map[string]look.Finding) {
	t.Helper()
	status, out := runCommand(t, url, append([]string{"doctor", "--json"}, flags...)...)
	var all []look.Finding
	require.NoError(t, json.Unmarshal([]byte(out), &all), out)
	require.Len(t, all, 13)
	found = map[string]look.Finding{}
	for _, f := range all {
		if f.Verdict != look.Fine {
			require.NotEmpty(t, f.Mend, f)
			found[f.Check] = f
		}
	}
	return status, found
}

func do(t *testing.T, s *redistest.Server, words ...string) {
	t.Helper()
	c := s.Client(t)
	require.NoError(t, c.Do(t.Context(), c.B().Arbitrary(words...).Build()).Error())
}

// Nothing is wrong with a server that keeps all it is told.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t, "--appendonly", "yes", "--appendfsync", "always", "--dir", t.TempDir())
	status, found := examined(t, s.URL(), "--strict")
	require.Empty(t, found)
	require.Zero(t, status)
	status, out := runCommand(t, s.URL(), "list")
	require.Zero(t, status)
	require.Empty(t, out, "the doctor leaves no lock")
}

// With the access rules that the documents give, the doctor finds nothing wrong.
func TestDoctorOfATenant(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	rules := regexp.MustCompile(`(?m)^ACL SETUSER shop .*$`).FindAllString(string(text), -1)
	require.Len(t, rules, 3)
	s := redistest.NewProcess(t)
	do(t, s, strings.Fields(rules[0])...)
	url := strings.Replace(s.URL(), "redis://", "redis://shop:secret@", 1)
	status, found := examined(t, url, "--prefix", "shop:")
	require.Zero(t, status, found)
	for check, f := range found {
		require.Equal(t, look.Unknown, f.Verdict, "%s: %v", check, f)
	}
	do(t, s, "ACL", "SETUSER", "shop", "+scan", "+info")
	status, found = examined(t, url, "--prefix", "shop:")
	require.Zero(t, status, found)
	delete(found, "persistence")
	require.Empty(t, found)
}

// What WithRedisson keeps for ninety days is counted.
func TestDoctorCountsWhatIsKept(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	c, err := rueidisclient.New(s.Option(), latchkey.WithRedisson())
	require.NoError(t, err)
	defer c.Close()
	for _, name := range []string{"one", "two"} {
		l, err := rlock.New(c, name)
		require.NoError(t, err)
		require.NoError(t, l.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }))
	}
	_, out := runCommand(t, s.URL(), "doctor")
	require.Contains(t, out, "; kept for ninety days, for WithRedisson: 2 tokens") // one more is the doctor's own
}

// What a guarantee rests on, and is not so, is named with its mend.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	const user = "redis://doctor:secret@"
	rules := func(t *testing.T, s *redistest.Server, rules string) string {
		do(t, s, append([]string{"ACL", "SETUSER", "doctor", "on", ">secret", "~*", "&*", "+@all"}, strings.Fields(rules)...)...)
		return strings.Replace(s.URL(), "redis://", user, 1)
	}
	for name, test := range map[string]struct {
		server func(t *testing.T) string // its URL
		check  string
		is     look.Verdict
		found  string
		mend   string
	}{
		"eviction": {func(t *testing.T) string {
			return redistest.NewProcess(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru").URL()
		}, "eviction", look.Wrong, "allkeys-lru", "CONFIG SET maxmemory-policy noeviction"},
		"eviction some day": {func(t *testing.T) string {
			return redistest.NewProcess(t, "--maxmemory-policy", "volatile-lru").URL()
		}, "eviction", look.Doubtful, "without a limit", "noeviction"},
		"replicas": {func(t *testing.T) string {
			s := redistest.NewProcess(t)
			follow(t, s)
			return s.URL()
		}, "replicas", look.Doubtful, "min-replicas-to-write 0", "min-replicas-to-write 1"},
		"subscribe": {func(t *testing.T) string {
			return rules(t, redistest.NewProcess(t), "-subscribe")
		}, "subscription", look.Wrong, "NOPERM", "+subscribe"},
		"channels": {func(t *testing.T) string {
			return rules(t, redistest.NewProcess(t), "resetchannels")
		}, "subscription", look.Wrong, "NOPERM", "&latchkey_inbox:"},
		"clock ahead": {func(t *testing.T) string {
			redistest.RequireCompiler(t)
			s := redistest.NewJumping(t)
			s.Jump(t, time.Hour+30*time.Second) // what a question takes makes it less
			return s.URL()
		}, "clock", look.Wrong, "1h0m", "NTP"},
		"clock behind": {func(t *testing.T) string {
			redistest.RequireCompiler(t)
			s := redistest.NewJumping(t)
			s.Jump(t, -5*time.Second)
			return s.URL()
		}, "clock", look.Doubtful, "behind ours", "NTP"},
		"WAIT":      {func(t *testing.T) string { return rules(t, redistest.NewProcess(t), "-wait") }, "WAIT", look.Doubtful, "NOPERM", "+wait"},
		"listeners": {func(t *testing.T) string { return rules(t, redistest.NewProcess(t), "-pubsub") }, "listeners", look.Doubtful, "NOPERM", "+pubsub"},
		"scripts":   {func(t *testing.T) string { return rules(t, redistest.NewProcess(t), "-eval") }, "scripts", look.Wrong, "NOPERM", "EVAL"},
		"keys to declare": {func(t *testing.T) string {
			p := redistest.NewProxy(t, redistest.NewProcess(t))
			p.Forge("-ERR name all keys\r\n")
			p.Judge(func(request string) redistest.Verdict {
				if strings.Contains(request, "return redis.call('EXISTS', ARGV[1])") {
					return redistest.Forge
				}
				return redistest.Pass
			})
			return "redis://" + p.Addr
		}, "scripts", look.Wrong, "name all keys", "WithDeclaredKeys"},
		"a lock":  {func(t *testing.T) string { return rules(t, redistest.NewProcess(t), "-hset -hincrby") }, "a lock", look.Wrong, "", "docs/operations.md"},
		"no info": {func(t *testing.T) string { return rules(t, redistest.NewProcess(t), "-info") }, "version", look.Unknown, "", "+info"},
		"eternal": {func(t *testing.T) string {
			s := redistest.NewProcess(t)
			do(t, s, "HSET", "old", "someone:1", "1")
			do(t, s, "SET", "redisson_lock_token:{old}", "7")
			return s.URL()
		}, "keys", look.Doubtful, "2 names, 2 tokens of them, 0 clients; without an end: 1, as old", "unlock --force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, found := examined(t, test.server(t))
			f := found[test.check]
			require.Equal(t, test.is, f.Verdict, "%v", found)
			require.Contains(t, f.Found, test.found)
			require.Contains(t, f.Mend, test.mend)
			expected := 0
			if test.is == look.Wrong {
				expected = 1
			}
			require.Equal(t, expected, status)
		})
	}
}

// follow starts a replica, and returns when it has all.
func follow(t *testing.T, s *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, _ := strings.Cut(s.Addr, ":")
	r := redistest.NewProcess(t, "--replicaof", fmt.Sprintf("%s %s", host, port))
	c := s.Client(t)
	require.Eventually(t, func() bool {
		info, err := c.Do(t.Context(), c.B().Info().Section("replication").Build()).ToString()
		return err == nil && strings.Contains(info, "state=online")
	}, limit, 10*time.Millisecond)
	return r
}

// Of a replica it is said that it is one.
func TestDoctorAtAReplica(t *testing.T) {
	t.Parallel()
	r := follow(t, redistest.NewProcess(t))
	status, found := examined(t, r.URL())
	require.Equal(t, 1, status)
	require.Equal(t, look.Wrong, found["role"].Verdict)
	require.Contains(t, found["role"].Mend, "--sentinel")
	require.Equal(t, look.Wrong, found["a lock"].Verdict)
}

// A server that is away has the status of that, and what is printed for people says the same.
func TestDoctorPrints(t *testing.T) {
	t.Parallel()
	status, out := runCommand(t, "redis://127.0.0.1:1", "doctor")
	require.Equal(t, statusAway, status, out)
	s := redistest.NewProcess(t)
	status, out = runCommand(t, s.URL(), "doctor")
	require.Zero(t, status, out)
	require.Contains(t, out, "appendonly no")
	require.Contains(t, out, "→ a restart loses all locks")
	status, _ = runCommand(t, s.URL(), "doctor", "--strict")
	require.Equal(t, 1, status)
	status, _ = runCommand(t, s.URL(), "doctor", "all")
	require.Equal(t, statusUsage, status)
}

// A server that wants keys declared is as good as another one.
func TestDoctorAtAStrictServer(t *testing.T) {
	t.Parallel()
	strict := redistest.NewStrict(t, redistest.NewProcess(t))
	status, out := runCommand(t, "redis://"+strict.Addr, "doctor")
	require.Zero(t, status, out)
	require.Contains(t, out, "with all keys declared")
}

// All nodes of a cluster are examined.
func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	status, out := runCommand(t, "redis://"+c.Option().InitAddress[0], "doctor")
	require.Zero(t, status, out)
	require.GreaterOrEqual(t, strings.Count(out, "version"), 2, out)
}
