package look

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// toldNames are the names that match and that clients say they hold or wait for. It asks for the clients that
// listen, and for their records: so it costs nothing for what is free. It does not have what a client without
// a subscription or a record has, and what has not lasted for a second.
func (l *Looker) toldNames(ctx context.Context, matches *regexp.Regexp) ([]string, error) {
	ids := map[string]bool{}
	err := eachServer(l.Plain, func(_ string, server rueidis.Client) error {
		return answered(ctx, func(ctx context.Context) error {
			for _, command := range []string{"CHANNELS", "SHARDCHANNELS"} { // the second one in a cluster, which Redis 6 does not know
				channels, err := server.Do(ctx, server.B().Arbitrary("PUBSUB", command, lua.Inbox("*")).Build()).AsStrSlice()
				if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
					return err
				}
				for _, channel := range channels {
					ids[channel[strings.LastIndex(channel, ":")+1:]] = true
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var keys []string
	for id := range ids {
		if key := identity.KeyBeside(l.Prefix+"a name", id); key == identity.Key(l.Prefix, id) {
			keys = append(keys, key)
		}
	}
	names := map[string]bool{}
	for part := range slices.Chunk(keys, 1000) {
		if err := answered(ctx, func(ctx context.Context) error { return l.addTold(ctx, part, names) }); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return !matches.MatchString(name) })
	return slices.Collect(maps.Keys(names)), nil
}

// addTold adds what these records tell. One that may not be read tells nothing.
func (l *Looker) addTold(ctx context.Context, records []string, names map[string]bool) error {
	const longest = 1 << 20 // as a client reads
	commands := make([]rueidis.Completed, len(records))
	for i, key := range records {
		commands[i] = l.Plain.B().Getrange().Key(key).Start(0).End(longest - 1).Build()
	}
	for _, reply := range l.Plain.DoMulti(ctx, commands...) {
		text, err := reply.ToString()
		if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
			return err
		}
		record, _ := identity.Parse(text)
		for _, t := range record.Tenures {
			if name, ok := strings.CutPrefix(string(t.Key), l.Prefix); ok && name != "" {
				names[name] = true
			}
		}
	}
	return nil
}

// matcher matches what Redis matches with a pattern. Of one with a set of characters it matches nothing.
func matcher(pattern string) *regexp.Regexp {
	if strings.Contains(pattern, "[") {
		return regexp.MustCompile(`^.^`)
	}
	var b strings.Builder
	quoted := false
	for _, c := range pattern {
		switch {
		case quoted:
			quoted = false
			b.WriteString(regexp.QuoteMeta(string(c)))
		case c == '\\':
			quoted = true
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return regexp.MustCompile("(?s)^" + b.String() + "$")
}
