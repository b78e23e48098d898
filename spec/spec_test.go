package spec

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// search is a module within bounds. Constants that are not named are those of its cfg file.
type search struct {
	module, what string
	constants    map[string]string
}

type bounds = map[string]string

// everything is one of each fault, for two clients of one tenure.
var everything = bounds{
	"Clients": "{a, b}", "Tenures": "1", "Ticks": "1", "Block": "0",
	"Cuts": "1", "Crashes": "1", "Cancels": "1", "LostReplies": "1", "LateCopies": "1",
}

var searches = []search{
	{"latchkey", "three clients, two tenures, a lock that lingers, a subscription breaks", nil},
	{"latchkey", "three clients, two tenures, a late copy", bounds{"Block": "0", "Cuts": "0", "LateCopies": "1"}},
	{"latchkey", "three clients, two tenures, a lost reply and a crash", bounds{"Block": "0", "Cuts": "0", "LostReplies": "1", "Crashes": "1"}},
	{"latchkey", "three clients, two tenures, a cancel and a crash", bounds{"Block": "0", "Cuts": "0", "Cancels": "1", "Crashes": "1"}},
	{"latchkey", "two clients, two tenures, renewals", bounds{"Clients": "{a, b}", "Lease": "2", "Ticks": "1", "Cuts": "0"}},
	{"latchkey", "two clients, one tenure, one of each fault", everything},
	{"redlock", "two clients, servers that have granted before", nil},
	{"redlock", "two clients, leases end, a crash", bounds{"Before": "0", "Ticks": "1", "Crashes": "1"}},
	{"redlock", "two clients, a late copy", bounds{"Before": "0", "LateCopies": "1"}},
}

// nightly takes longer than every change may.
var nightly = []search{
	{"latchkey", "three clients, two tenures, leases end", bounds{"Block": "0", "Cuts": "0", "Ticks": "1"}},
	{"latchkey", "three clients, two tenures, connections and a crash", bounds{"Block": "0", "LostReplies": "1", "LateCopies": "1"}},
	{"latchkey", "two clients, a lock that lingers, one of each fault", with(everything, bounds{"Block": "1"})},
	{"redlock", "two clients, leases end, a lost reply", bounds{"Before": "0", "Ticks": "1", "LostReplies": "1"}},
	{"redlock", "two clients, leases end, a late copy", bounds{"Before": "0", "Ticks": "1", "LateCopies": "1"}},
	{"redlock", "two clients, leases end, a server is emptied", bounds{"Before": "0", "Ticks": "1", "Emptied": "1"}},
}

func with(some, more bounds) bounds {
	all := bounds{}
	maps.Copy(all, some)
	maps.Copy(all, more)
	return all
}

// Every state that there can be within bounds is as it must be.
func TestSpec(t *testing.T) {
	all := searches[:len(searches):len(searches)]
	if redistest.Longer(0, 1) > 0 {
		all = append(all, nightly...)
	}
	for _, s := range all {
		t.Run(s.module+"/"+s.what, func(t *testing.T) {
			v := check(t, s.module, s.constants)
			require.Empty(t, v.violated, "%.20000s", v.said)
			say("%s.tla, %s: %s", s.module, s.what, v)
		})
	}
}

// seeded are the bugs that a module knows, and a property that each of them breaks.
var seeded = []struct {
	module, property string
	bounds           bounds
	bugs             []string
}{
	{"latchkey", "Trust", with(everything, bounds{"Tenures": "2", "Ticks": "2", "Lease": "2", "Block": "1", "Crashes": "0"}), []string{
		"a grant is believed however old it is", "a hold goes on after its trust", "a release does not look at the owner",
		"an id for all tenures of a client", "trust counts from the reply", "what is given up is taken again",
	}},
	{"latchkey", "Woken", bounds{"Ticks": "1"}, []string{
		"a release grants nobody", "an acquire grants nobody else a free lock", "it parks what it could not hear of",
		"nobody asks after a new subscription", "nobody says that others want the lock", "what is parked does not listen",
	}},
	{"latchkey", "Tokens", bounds{"Cuts": "0"}, []string{"a token is used twice", "no token is reserved"}},
	{"latchkey", "Clean", bounds{"LateCopies": "1"}, []string{"a release is not repeated"}},
	{"redlock", "Exclusion", bounds{"Before": "0", "Ticks": "1"}, []string{
		"a hold goes on when its majority is lost", "half of the servers are enough", "trust counts from the reply",
	}},
	{"redlock", "Tokens", nil, []string{"a token is given twice", "nobody is told the token"}},
	{"redlock", "Clean", bounds{"Before": "0", "LateCopies": "1"}, []string{
		"a release is not repeated", "only what was had is given back",
	}},
}

// A property that cannot fail says nothing. So each bug that is put into a module is found.
func TestSeededBugs(t *testing.T) {
	found := 0
	for _, s := range seeded {
		for _, bug := range s.bugs {
			t.Run(s.module+"/"+bug, func(t *testing.T) {
				v := check(t, s.module, with(s.bounds, bounds{"Bug": `"` + bug + `"`}))
				require.Equal(t, s.property, v.violated, "%.20000s", v.said)
				found++
			})
		}
	}
	t.Run("redlock/a server that was emptied counts at once", func(t *testing.T) {
		v := check(t, "redlock", bounds{"Before": "0", "Ticks": "1", "Uptime": "FALSE", "Emptied": "1"})
		require.Equal(t, "Exclusion", v.violated, "%.20000s", v.said)
		found++
	})
	say("%d bugs that were put into the modules are found", found)
}

// Each bug that a module knows is in the table.
func TestTableHasAllBugs(t *testing.T) {
	for _, module := range []string{"latchkey", "redlock"} {
		text, err := os.ReadFile(module + ".tla")
		require.NoError(t, err)
		var known, listed []string
		for _, m := range regexp.MustCompile(`Bug [=#] "([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
			known = append(known, m[1])
		}
		for _, s := range seeded {
			if s.module == module {
				listed = append(listed, s.bugs...)
			}
		}
		slices.Sort(known)
		slices.Sort(listed)
		require.Equal(t, slices.Compact(known), listed, module)
	}
}

// Each action of the modules is in docs/protocol.md, beside its rules, and no other is.
func TestProtocolNamesTheActions(t *testing.T) {
	text, err := os.ReadFile("../docs/protocol.md")
	require.NoError(t, err)
	for _, module := range []string{"latchkey", "redlock"} {
		spec, err := os.ReadFile(module + ".tla")
		require.NoError(t, err)
		_, next, found := strings.Cut(string(spec), "\nNext ==\n")
		require.True(t, found)
		next, _, _ = strings.Cut(next, "\n\n")
		var actions, named []string
		for _, m := range regexp.MustCompile(`\b([A-Z]\w+)(?:\(|\n)`).FindAllStringSubmatch(next+"\n", -1) {
			if m[1] != "Ids" && m[1] != "Clients" && m[1] != "Servers" {
				actions = append(actions, m[1])
			}
		}
		for _, m := range regexp.MustCompile("(?m)^\\| `"+module+"` \\| `(\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
			named = append(named, m[1])
		}
		slices.Sort(actions)
		slices.Sort(named)
		require.Equal(t, slices.Compact(actions), named, module)
	}
}
