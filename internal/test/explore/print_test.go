package explore_test

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"time"
)

// names make texts of different runs alike: ids of clients, and what is random in the numbers of tenures.
type names struct{ ids map[string]string }

var (
	ids     = regexp.MustCompile(`\b[A-Z2-7]{16}\b`)
	numbers = regexp.MustCompile(`\b(\d{1,4})\d{9}\b`)
	tokens  = regexp.MustCompile(`\d{15,}`)
	holders = regexp.MustCompile(`(?s)\b[A-Z2-7]{10}.{6}=`) // of permits: permit/holder.lua
)

func (n *names) plain(text string) string {
	text = holders.ReplaceAllString(text, "holder ")
	text = numbers.ReplaceAllString(tokens.ReplaceAllString(text, "#"), "n$1")
	return ids.ReplaceAllStringFunc(text, func(id string) string { return n.ids[id] })
}

// print is the same for two runs that are at the same state.
func (r *run) print() [2]uint64 {
	var b strings.Builder
	for n, c := range r.clients {
		fmt.Fprintf(&b, "c%d %d %t\n", n, c.seen, c.dead)
	}
	r.mu.Lock()
	for _, u := range r.users {
		fmt.Fprintf(&b, "%s %d %d %t\n", u.name, u.next, u.doing, u.ended)
	}
	r.mu.Unlock()
	for _, l := range r.all() {
		l.network.mu.Lock()
		fmt.Fprintf(&b, "link %d %t %t\n", l.of, l.inbox, l.broken)
		for _, f := range l.asked {
			fmt.Fprintln(&b, " >", f.text(&r.names))
		}
		for _, f := range l.said {
			fmt.Fprintln(&b, " <", f.text(&r.names))
		}
		l.network.mu.Unlock()
	}
	for _, f := range []fault{cancels, breaks, deafens, dies, closes, forces, passes, moments} {
		fmt.Fprintln(&b, r.left[f])
	}
	b.WriteString(r.names.ranked(r.data()))
	h := fnv.New128a()
	h.Write([]byte(b.String()))
	sum := h.Sum(nil)
	return [2]uint64{uint64Of(sum[:8]), uint64Of(sum[8:])}
}

func uint64Of(b []byte) (n uint64) {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

// data is all that the server has.
func (r *run) data() string {
	var b strings.Builder
	s := r.server
	for _, key := range s.Keys() {
		fmt.Fprintf(&b, "%s %v:", key, s.TTL(key).Round(10*time.Millisecond))
		switch s.Type(key) {
		case "hash":
			fields, _ := s.HKeys(key)
			for _, f := range fields {
				fmt.Fprintf(&b, " %s=%s", f, s.HGet(key, f))
			}
		case "list":
			all, _ := s.List(key)
			fmt.Fprintf(&b, " %q", all)
		case "zset":
			all, _ := s.SortedSet(key)
			var members []string
			for m, score := range all {
				members = append(members, fmt.Sprintf("%s=%.0f", m, score))
			}
			slices.Sort(members)
			fmt.Fprintf(&b, " %q", members)
		case "string":
			value, _ := s.Get(key)
			fmt.Fprintf(&b, " %s", value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ranked replaces each token by its place among those of the text.
func (n *names) ranked(text string) string {
	all := tokens.FindAllString(text, -1)
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	all = slices.Compact(all)
	text = tokens.ReplaceAllStringFunc(text, func(t string) string { return fmt.Sprintf("#%d", slices.Index(all, t)) })
	return n.plain(text)
}
