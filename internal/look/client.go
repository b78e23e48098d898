package look

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Client is a client that listens, and what it tells of itself. Who may write to Redis can tell something else.
type Client struct {
	ID      Told
	Host    Told
	PID     int
	Program Told
	Label   Told
	Version Told
	Opened  time.Time
	Holds   int // of what has lasted for a second, at most a hundred
	Waits   int

	names []string
}

// clients tell something of themselves. It asks which clients listen, and for their records: so it costs nothing for what
// is free. It does not have a client without a subscription or a record, and none that has held or waited for less than a second.
func (l *Looker) clients(ctx context.Context) (all []Client, err error) {
	ids := map[string]bool{}
	err = eachServer(l.Plain, func(_ string, server rueidis.Client) error {
		return answered(ctx, func(ctx context.Context) error {
			for _, command := range []string{"CHANNELS", "SHARDCHANNELS"} { // the second one in a cluster, which Redis 6 does not know
				channels, err := server.Do(ctx, server.B().Arbitrary("PUBSUB", command, lua.Inbox("*")).Build()).AsStrSlice()
				if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
					return err
				}
				for _, channel := range channels {
					ids[strings.Trim(channel[strings.LastIndex(channel, ":")+1:], "{}")] = true // in a cluster it has a slot of its own
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(slices.Sorted(maps.Keys(ids)), func(id string) bool {
		return identity.KeyBeside(l.Prefix+"a name", id) != identity.Key(l.Prefix, id)
	})
	for part := range slices.Chunk(ours, 1000) {
		err := answered(ctx, func(ctx context.Context) error {
			some, err := l.read(ctx, part)
			all = append(all, some...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read reads what these clients tell. One whose record may not be read tells nothing.
func (l *Looker) read(ctx context.Context, ids []string) (all []Client, err error) {
	const longest = 1 << 20 // as a client reads
	commands := make([]rueidis.Completed, len(ids))
	for i, id := range ids {
		commands[i] = l.Plain.B().Getrange().Key(identity.Key(l.Prefix, id)).Start(0).End(longest - 1).Build()
	}
	for i, reply := range l.Plain.DoMulti(ctx, commands...) {
		text, err := reply.ToString()
		if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
			return nil, err
		}
		if record, ok := identity.Parse(text); ok {
			all = append(all, l.client(ids[i], record))
		}
	}
	return all, nil
}

func (l *Looker) client(id string, r identity.Record) Client {
	c := Client{
		ID: Told(id), Host: Told(r.Host), PID: r.PID, Program: Told(r.Program), Label: Told(r.Label), Version: Told(r.Version),
		Opened: time.UnixMilli(r.Opened),
	}
	for _, t := range r.Tenures {
		if t.Holds {
			c.Holds++
		} else {
			c.Waits++
		}
		if name, ok := strings.CutPrefix(string(t.Key), l.Prefix); ok && name != "" {
			c.names = append(c.names, name)
		}
	}
	return c
}

// toldNames are the names that match and that these clients say they hold or wait for.
func toldNames(clients []Client, matches *regexp.Regexp) (names []string) {
	for _, c := range clients {
		for _, name := range c.names {
			if matches.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names
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
