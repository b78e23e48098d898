package explore_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// bug is a change of the code that ships, under which a search must find that something is not true.
type bug struct {
	name     string
	file     string // from the root of the module
	old, new string // the text is in the file once
	scenes   string // a pattern: those in which it shows
	property string
}

const (
	waits  = "internal/wait/"
	grants = "internal/grant/"
)

var bugs = []bug{
	{
		"what is taken after the caller left is kept", waits + "answers.go",
		"		q.cancel(w)\n	}\n}", "		q.forget(w)\n	}\n}", "^fairlock,_deafen,_cancel:", "panic",
	},
	{"no question after a confirmation", waits + "roll.go", "run := q.begins(forAll)", "run := false", "^rlock,_deafen:", "WAKE"},
	{"who was queued stays queued", waits + "cancels.go", "w.hasGrant() || w.trace == wasQueued ||", "w.hasGrant() ||", "^fairlock,_cancel:", "panic"},
	{"the turn of the line is dropped", grants + "queue.go", "if t == nil || !t.hasTurn {\n		return false", "if t != nil {\n		return false", "^rlock,_cancel:", "WAKE"},
	{"a loss does not pass the turn on", grants + "loss.go", "	if first && t.hasTurn {", "	if !first && t.hasTurn {", "^rlock,_pass", "WAKE"},
	{"what is wanted stays parked", grants + "linger.go", "	if t.leaveParked() {\n		t.queue.mu.Lock()", "	if false {\n		t.queue.mu.Lock()", "^rlock_that_lingers:", "WAKE"},
	{"parked although others wait", grants + "linger.go", "t.handOffs.contendedSince.IsZero() &&\n", "true &&\n", "^rlock_that_lingers:", "WAKE"},
	{"a copy that is under way is forgotten", waits + "copies.go", "		c.late = stray\n		if w.waits() {", "		if w.waits() {", "^rlock,_break,_cancel:", "LEFT|WAKE"},
	{"local hand-offs have one token", grants + "handoff.go", "	o.token++\n", "", "^rlock:", "TOK"},
	{"the first reader leaves for all", grants + "share.go", "	if t.turn != nil {\n		return false\n	}\n", "", "^rwlock:", "TRUST|panic"},
	{"a lease is trusted for twice its time", "internal/lease/keeper.go", "	until := moment.Add(d - Margin)\n", "	until := moment.Add(2*d - Margin)\n", "^rlock,_pass", "TRUST"},
	{"a waiter is not woken", waits + "waiter.go", "	w.notice.news, w.notice.err = n, err\n	w.wake()", "	w.notice.news, w.notice.err = n, err", "^fairlock:", "WAKE"},
	{"a client that closes interrupts nobody", "internal/session/shutdown.go", "		t.Interrupt()\n", "		_ = t\n", "^fairlock,_close:", "panic"},
	{"a grant is not told", "internal/lua/lock/hand.lua", "redis.pcall(VERB, inbox,", "local _ = table.concat({VERB, inbox}) .. tostring(", "^fairlock:", "WAKE"},
	{"a release forgets the queue", "internal/lua/lock/release.lua", "hand_over(head)\nreturn owned", "redis.call('DEL', NAME)\nreturn owned", "^fairlock:", "WAKE"},
}

// A search finds each of these in the code that ships.
func TestSeededBugs(t *testing.T) {
	redistest.Together(t)
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			redistest.Lengthy(t) // each compiles the code anew
			redistest.Together(t)
			path := filepath.Join(root, filepath.FromSlash(b.file))
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), b.old), "%q in %s", b.old, b.file)
			changed, overlay := filepath.Join(t.TempDir(), "changed"+filepath.Ext(path)), filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), b.old, b.new, 1)), 0o600))
			replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, replace, 0o600))
			found := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", overlay, "-run", "^TestScenes$/"+b.scenes, ".")
			found.Env = append(os.Environ(), "LATCHKEY_EXPLORE=1m")
			output, err := found.CombinedOutput()
			require.Error(t, err, "it was not found\n%s", output)
			require.Regexp(t, "("+b.property+"): ", string(output))
		})
	}
}
