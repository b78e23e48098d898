package model

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scriptBug is a text of the scripts that somebody could write.
type scriptBug struct {
	name    string // of the lock that is used
	was, is string // in all scripts of its family that have it
	step    string // the script that does what the model's Redis does not
	says    string
}

// takesSecond takes the second entry of the queue, if there is one.
const takesSecond = `(function()
  local entry = redis.call('LINDEX', QUEUE, 1) or redis.call('LINDEX', QUEUE, 0)
  if entry then redis.call('LREM', QUEUE, 1, entry) end
  return entry
end)()`

// TestSeededScriptBugs shows that the checker sees what it is for.
func TestSeededScriptBugs(t *testing.T) {
	for name, b := range map[string]scriptBug{
		"the second is granted": {"fair", `redis.pcall('LPOP', QUEUE)`, takesSecond, "release", "no message to"},
		"the queue is ignored": {
			"halves", `fits(reads) and redis.call('EXISTS', QUEUE) == 0`, "fits(reads)", "acquire", "and the model",
		},
		"the token is not raised": {"fair", "local token = now\n", "local token = last or now\n", "acquire", "is told token"},
		"a reader is pruned":      {"halves", "if left or moving then", "if false then", "acquire", ""},
		"readers go with one of them": {
			"halves", "      redis.call('DEL', timeout)\n", "      redis.call('DEL', NAME, timeout)\n", "", "",
		},
		"the mark is lost": {"lingers", `return '+' .. reserved .. lingers`, `return '+' .. reserved`, "acquire", ": want"},
		"an offer does not queue": {
			"line", `if not early then redis.call('RPUSH', QUEUE, entry) end`, "", "", "",
		},
		"the dead are granted":   {"fair", `reply.err ~= nil or reply[2] > 0`, "true", "", ""},
		"forced without a token": {"fair", `tell_owner(held[1], 'f', token)`, `tell_owner(held[1], 'f', '0')`, "force", "was taken"},
	} {
		t.Run(name, func(t *testing.T) {
			family := "lock/"
			if lockNames[b.name] {
				family = "rwlock/"
			}
			altered := map[string]string{}
			for script, text := range texts(t) {
				if strings.HasPrefix(script, family) && strings.Contains(text, b.was) {
					altered[script] = strings.ReplaceAll(text, b.was, b.is)
				}
			}
			require.NotEmpty(t, altered)
			began := time.Now()
			c, err := run(t, map[string]bool{b.name: lockNames[b.name]}, altered, time.Minute)
			require.Error(t, err)
			t.Logf("rejected at step %d, after %v: %v", c.steps, time.Since(began).Round(time.Millisecond), err)
			require.NotErrorIs(t, err, errRoom)
			require.Contains(t, strings.SplitN(err.Error(), "\n", 2)[0], b.name+": "+b.step)
			require.Contains(t, err.Error(), b.says)
		})
	}
}
