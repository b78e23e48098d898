package lua

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tenant stands for all names of a tenant, and tagged for those with braces of their own.
const tenant, tagged = "shop:*", "shop:*{)"

// called are the commands that scripts call, as access rules name them.
func calledCommands(t *testing.T) (commands []string) {
	t.Helper()
	first, word := regexp.MustCompile(`(?:redis\.pcall|\bcall|\bmany)\(([^,]+)`), regexp.MustCompile(`'([A-Z]+)'`)
	require.NoError(t, fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		require.NoError(t, err)
		code := regexp.MustCompile(`--.*`).ReplaceAllString(string(text), "")
		for _, called := range first.FindAllStringSubmatch(code, -1) {
			words := word.FindAllStringSubmatch(called[1], -1)
			if len(words) == 0 { // publishes, or is many itself
				require.Contains(t, []string{"VERB", "command"}, called[1], "%s: the rules do not know what that calls", path)
			}
			for _, found := range words {
				commands = append(commands, strings.ToLower(found[1]))
			}
		}
		return nil
	}))
	slices.Sort(commands)
	commands = slices.Compact(commands)
	require.Contains(t, commands, "rpush", "what many calls is found")
	return commands
}

const operations = "../../docs/operations.md"

// The access rules of docs/operations.md are what the scripts and the clients use, and no more.
func TestAccessRules(t *testing.T) {
	for begins, words := range accessRules(t) {
		text, err := os.ReadFile(operations)
		require.NoError(t, err)
		line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(begins) + `.*$`)
		require.Len(t, line.FindAll(text, -1), 1, begins)
		want := begins + strings.Join(words, " ")
		if os.Getenv("LATCHKEY_UPDATE") != "" {
			require.NoError(t, os.WriteFile(operations, line.ReplaceAllLiteral(text, []byte(want)), 0o600))
			continue
		}
		require.Equal(t, strings.Fields(want), strings.Fields(string(line.Find(text))))
	}
}

// accessRules are the words of each rule, by how its line begins.
func accessRules(t *testing.T) map[string][]string {
	t.Helper()
	var keys, channels, keysOfBraced, channelsOfBraced, inboxesOfCluster []string
	besideAll := []part{pace, called, turns, holdoff, fair, beside("", "latchkey_probe"), {of: func(name string, _ bool) string { return ClientRecord(name) }}, {of: func(name string, _ bool) string { return ForcedRecord(name) }}}
	for family := range families {
		own, heard := slices.Concat(parts[family], besideAll), []part{news[family], released[family], ear}
		keys, keysOfBraced = append(keys, of("~", tenant, own, false)...), append(keysOfBraced, of("~", tagged, own, false)...)
		channels = append(channels, of("&", tenant, heard, false)...)
		for _, isSharded := range []bool{false, true} {
			channelsOfBraced = append(channelsOfBraced, of("&", tagged, heard, isSharded)...)
		}
		inbox := []part{inboxes[family]}
		inboxesOfCluster = append(inboxesOfCluster, of("&", tenant, inbox, true)...)
		channelsOfBraced = append(channelsOfBraced, of("&", tagged, inbox, true)...)
	}
	commands := []string{
		"+eval", "+evalsha", "+ping",
		"+getrange", // records of clients
		"+wait",     // WithReplicas
	}
	for _, command := range calledCommands(t) {
		commands = append(commands, "+"+command)
	}
	known := func(c string) bool { return c == "+pubsub" || c == "+info" || c == "+publish" } // pubsub: a part of it. info: WithUptime
	commands = slices.DeleteFunc(sorted(commands), known)
	locks := slices.Concat(of("~", tenant, slices.Concat(parts[Locks], besideAll), false), []string{"~shop:*", "~{shop:*}:*"})
	return map[string][]string{
		"ACL SETUSER shop on >secret resetkeys ~shop:* ~{shop:*}:* ": slices.Concat(
			slices.DeleteFunc(sorted(keys), func(key string) bool { return strings.HasPrefix(key, "~{") }),
			[]string{"resetchannels", "&latchkey_inbox:shop_=*"}, sorted(channels),
			[]string{"-@all"}, commands, []string{"+publish", "+pubsub|numsub", "+subscribe", "+unsubscribe"}),
		"ACL SETUSER shop &latchkey_inbox:{shop_=*} ": slices.Concat(sorted(inboxesOfCluster),
			[]string{"+asking", "+cluster|shards", "+cluster|slots", "+pubsub|shardnumsub", "+spublish", "+ssubscribe", "+sunsubscribe"}),
		"ACL SETUSER shop ~latchkey_arrivals:shop:* ": slices.Concat(
			slices.DeleteFunc(sorted(keysOfBraced), func(key string) bool {
				return strings.HasPrefix(key, "~shop:") || key == "~latchkey_arrivals:shop:*"
			}), sorted(channelsOfBraced)),
		"ACL SETUSER poller on >secret resetkeys ": slices.Concat(sorted(locks), []string{"resetchannels", "-@all"}, commands),
	}
}

// of are the patterns of some parts.
func of(sigil, names string, all []part, isSharded bool) (patterns []string) {
	for _, p := range all {
		if p.of == nil {
			continue
		}
		pattern := strings.ReplaceAll(p.of(names, isSharded), "{)", "")
		if p.local == "DONE" || p.local == "INBOX" { // what others begin with
			pattern = strings.TrimSuffix(pattern, "*") + "*"
		}
		patterns = append(patterns, sigil+pattern)
	}
	return patterns
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
