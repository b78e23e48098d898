package lua

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each layout of the table in wire.go is made for a request of its kind, and no other is.
func TestLayouts(t *testing.T) {
	keys := func(f Family) *Keys {
		k, err := NewKeys(f, "a", false)
		require.NoError(t, err)
		return k
	}
	locks, halves := keys(Locks), keys(ReadWrite)
	acquire := func(k *Keys, mode Mode, claim Claim) []string {
		claim.Owner, claim.Lease = "c:1", 10_000
		return k.acquireArguments(nil, claim, "7 ", mode)
	}
	take := func(mode Mode) Request {
		return Take(Claim{Owner: "c:1", Lease: 10_000, Demand: Demand{Permits: 2}}, mode)
	}
	trade := func(f Family, longest int, answered string, requests ...Request) []string {
		return tradeArguments(f, "7 ", longest, answered, requests)
	}
	give := Give(Ending{Owner: "c:1"})
	made := map[string][][]string{
		"lock/acquire.lua, rwlock/acquire.lua": {
			acquire(locks, First, Claim{}), acquire(locks, Unqueued, Claim{}),
			acquire(locks, Again, Claim{}), acquire(locks, Try, Claim{}),
			acquire(locks, First, Claim{Demand: Demand{Permits: 9}}), acquire(halves, First, Claim{}),
			acquire(locks, First, Claim{Longest: 9}), acquire(halves, Again, Claim{Longest: 9}),
		},
		"lock/settled.lua":                 {acquire(locks, Try, Claim{Demand: Demand{Uptime: 9}})},
		"lock/offer.lua, rwlock/offer.lua": {offerArguments(nil, "c:1", "", 9, Claim{Owner: "c:2"}, "7 ", First)},
		"lock/release.lua, rwlock/release.lua": {
			locks.releaseArguments(nil, Ending{Owner: "c:1"}, "7 "),
			locks.releaseArguments(nil, Ending{Owner: "c:1", Entry: "1:c:1:9:0"}, "7 "), locks.releaseArguments(nil, Ending{Owner: "c:1", Rest: 9}, "7 "),
			locks.releaseArguments(nil, Ending{Owner: "c:1", Announce: true}, "7 "),
		},
		"permit/quick.lua, one request for permits with leases, without answered commands": {
			trade(Leased, DefaultLongest, "", give),
			trade(Leased, DefaultLongest, "", take(First)),
			trade(Leased, DefaultLongest, "", take(Again)),
			trade(Leased, 9, "", take(First)),
		},
		"permit/count.lua, one request for plain permits": {
			trade(Plain, 9, "", Put("c:1", 2)),
			trade(Plain, DefaultLongest, "3", Put("c:1", 2)),
			trade(Plain, DefaultLongest, "", take(First)),
			trade(Plain, DefaultLongest, "3", take(Again)),
			trade(Plain, 9, "", take(First)),
		},
		"permit/trade.lua, all other requests, and several: the last five for each": {
			trade(Leased, DefaultLongest, "3", take(First)), trade(Leased, DefaultLongest, "", Give(Ending{Owner: "c:1", Rest: 1})),
			trade(Plain, DefaultLongest, "", Give(Ending{Owner: "c:1", Entry: "1:c:1:9:2"})),
			trade(Leased, DefaultLongest, "", give, take(First))[:9],
		},
	}

	text, err := os.ReadFile("wire.go")
	require.NoError(t, err)
	table := map[string]map[int]string{} // by script, and by how many arguments: the words
	var scripts string
	for _, row := range regexp.MustCompile(`(?m)^//\t(.+)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(row[1], ".lua") {
			scripts = row[1]
			table[scripts] = map[int]string{}
			continue
		}
		words, _, _ := strings.Cut(row[1], "  ")
		table[scripts][len(strings.Fields(words))] = words
	}
	require.Len(t, table, len(made))
	for scripts, all := range made {
		layouts := table[scripts]
		require.NotEmpty(t, layouts, scripts)
		for _, args := range all {
			words, ok := layouts[len(args)]
			require.True(t, ok, "%s is sent %q, of which the table does not know", scripts, args)
			for i, word := range strings.Fields(words) {
				require.True(t, fits(word, args[i]), "%s is sent %q as its %s", scripts, args[i], word)
			}
		}
		for n, words := range layouts {
			require.True(t, hasLength(all, n), "%s is never sent %s", scripts, words)
		}
	}
}

func hasLength(all [][]string, n int) bool {
	for _, args := range all {
		if len(args) == n {
			return true
		}
	}
	return false
}

// fits reports whether a text can be such an argument.
func fits(word, text string) bool {
	shape := map[string]string{
		"owner": `c:\d`, "id": `c:\d`, "old": `c:\d`, "floor": "7 ", "lease": `\d+`, "mode": "try|first|again", "block": `\d+l?`,
		"demand": `\d+`, "longest": `\d*`, "uptime": `\d+`, "rest": `\d+`, "tokens": `\d+`, "permits": `\d+`, "answered": `\d*`,
		"entry": `(1:c:\d:\d+:\d+)?`, "channel": "redisson_.*", "kind": "take|give|put", "first": ".*", "second": ".*", "third": ".*",
	}[word]
	return shape != "" && regexp.MustCompile("^("+shape+")$").MatchString(text)
}
