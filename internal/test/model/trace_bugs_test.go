package model

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// scriptBug is a text of the scripts that somebody could write.
type scriptBug struct {
	name    string // of the lock that is used
	was, is string // in all scripts of its family that have it
}

// seenLater are the bugs whose script may do what the model's does, and leave something else behind, which
// another one comes upon.
var seenLater = []string{
	"a reader is pruned", "readers go with one of them", "the mark is lost", "an offer does not queue", "permits: one more is free",
	"permits: a lease is not taken back", "permits: a release serves nobody", "plain permits: a copy gives twice",
}

// difference is what an error says of a step that is none of the model, and which script it was.
var difference = regexp.MustCompile(`^step \d+, of (\w+): (\w+) .*: (it replies|no message to|a message to|a grant |a reader |` +
	`a reply that|an error|number \d+ is given out|late, before|the deadline|the owner is|\d+ are queued|` +
	`\S+ (is told|hears that|has number|is queued twice|was granted|holds|renews))`)

// takesSecond takes the second entry of the queue, if there is one.
const takesSecond = `(function()
  local entry = redis.call('LINDEX', QUEUE, 1) or redis.call('LINDEX', QUEUE, 0)
  if entry then redis.call('LREM', QUEUE, 1, entry) end
  return entry
end)()`

// TestSeededScriptBugs shows that the checker sees what it is for.
func TestSeededScriptBugs(t *testing.T) {
	for name, b := range map[string]scriptBug{
		"the second is granted":   {"fair", `redis.pcall('LPOP', QUEUE)`, takesSecond},
		"the queue is ignored":    {"halves", `fits(reads) and redis.call('EXISTS', QUEUE) == 0`, "fits(reads)"},
		"the token is not raised": {"fair", "local token = now\n", "local token = last or now\n"},
		"a reader is pruned":      {"halves", "if left or moving then", "if false then"},
		"readers go with one of them": {
			"halves", "      redis.call('DEL', timeout)\n", "      redis.call('DEL', NAME, timeout)\n",
		},
		"the mark is lost":        {"lingers", `return '+' .. reserved .. lingers`, `return '+' .. reserved`},
		"an offer does not queue": {"line", `if not early then redis.call('RPUSH', QUEUE, entry) end`, ""},
		"the dead are granted":    {"fair", `reply.err ~= nil or reply[2] > 0`, "true"},
		"forced without a token":  {"fair", `tell_owner(held[1], 'f', token)`, `tell_owner(held[1], 'f', '0')`},

		"permits: the second is granted":              {"pool", "      elseif n <= free then\n", "      elseif n <= free and at > first then\n"},
		"permits: a head that does not fit is passed": {"pool", "if held_up and not aside and not passes then break end", ""},
		"permits: the queue is ignored":               {"pool", "(drains or line.may_take(passes))", "true"},
		"permits: the dead are granted":               {"pool", `reply.err ~= nil or reply[2] > 0`, "true"},
		"permits: a copy takes twice":                 {"pool", "if record and extend(record, lease) then", "if false then"},
		"permits: the impossible are not told":        {"pool", "        ask(client, place.number)\n", ""},
		"permits: one more is free":                   {"pool", "decimal(change)", "decimal(change + (change > 1 and 1 or 0))"},
		"permits: a release serves nobody":            {"budgeted", "    if queue then pcall(queue.grant) end\n", ""},
		"permits: the reserved are given out":         {"budgeted", "  last = last + more\n", ""},
		"permits: a lease is not taken back":          {"pool", "          freed = freed + record.n\n          change(record, 0)\n", ""},
		"plain permits: a copy gives twice":           {"counts", "  elseif holding(owner) then\n    reply = 1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			together(t)
			family := traceNames[b.name]
			altered := map[string]string{}
			for script, text := range texts(t) {
				if strings.HasPrefix(script, family.String()+"/") && strings.Contains(text, b.was) {
					altered[script] = strings.ReplaceAll(text, b.was, b.is)
				}
			}
			require.NotEmpty(t, altered)
			began := time.Now()
			c, err := run(t, map[string]lua.Family{b.name: family}, altered, time.Minute) // it ends with the first difference
			require.Error(t, err)
			t.Logf("rejected at step %d, after %v: %v", c.steps, time.Since(began).Round(time.Millisecond), err)
			require.NotErrorIs(t, err, errRoom)
			// Which difference comes first is chance.
			said := difference.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
			require.NotNil(t, said, "no difference is named")
			require.Equal(t, b.name, said[1])
			if !slices.Contains(seenLater, name) {
				require.Contains(t, altered, family.String()+"/"+said[2])
			}
		})
	}
}
