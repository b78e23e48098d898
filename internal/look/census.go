package look

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/rlock"
)

// doctorsLock is what the doctor takes and gives back.
const doctorsLock = "latchkey-doctor"

// takeAndGiveBack takes a lock, and gives it back.
func takeAndGiveBack(ctx context.Context, client *latchkey.Client) error {
	l, err := rlock.New(client, doctorsLock)
	if err != nil {
		return err
	}
	h, err := l.TryLock(ctx)
	if err != nil {
		return err
	}
	return h.Unlock(ctx)
}

// census counts the keys of locks and their like.
type census struct {
	names   map[string]bool
	tokens  []string // their keys
	records int      // of clients
	eternal []string // locks that never end
}

// keys counts what is there, and what will never go.
func (p *Patient) keys(ctx context.Context) Finding {
	const check = "keys"
	n := census{names: map[string]bool{}}
	err := scan(ctx, p.plain, "*_*:*{*", func(keys []string) error {
		for _, key := range keys {
			n.count(key, p.prefix)
		}
		return nil
	})
	if err == nil {
		err = p.findEternal(ctx, &n)
	}
	lasting := 0
	if err == nil {
		lasting, err = p.findLasting(ctx, n.tokens)
	}
	if err != nil {
		return Finding{check, "", Unknown, err.Error(), "let this user call SCAN"}
	}
	found := fmt.Sprintf("%d names, %d tokens of them, %d clients", len(n.names), len(n.tokens), n.records)
	if lasting > 0 {
		found += fmt.Sprintf("; kept for ninety days, for WithRedisson: %d tokens", lasting)
	}
	if len(n.eternal) > 0 {
		const most = 5
		shown := strings.Join(n.eternal[:min(most, len(n.eternal))], ", ")
		return Finding{
			check, "", Doubtful, fmt.Sprintf("%s; without an end: %d, as %s", found, len(n.eternal), shown),
			"they were held without a lease, or something has taken their TTL: latchkey unlock --force NAME",
		}
	}
	return Finding{check, "", Fine, found, ""}
}

func (n *census) count(key, prefix string) {
	name, ok := lua.NameBeside(key)
	switch {
	case strings.HasPrefix(key, "latchkey_client:") && strings.Contains(key, prefix):
		n.records++
	case ok && strings.HasPrefix(name, prefix) && name != prefix:
		n.names[name] = true
		if isToken(key) {
			n.tokens = append(n.tokens, key)
		}
	}
}

// findEternal finds locks that no lease ends.
func (p *Patient) findEternal(ctx context.Context, n *census) error {
	const page = 500
	names := make([]string, 0, len(n.names))
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	for part := range slices.Chunk(names, page) {
		var commands []rueidis.Completed
		for _, name := range part {
			commands = append(commands, p.plain.B().Type().Key(name).Build(), p.plain.B().Pttl().Key(name).Build())
		}
		replies := p.plain.DoMulti(ctx, commands...)
		for i, name := range part {
			is, err := replies[2*i].ToString()
			if err != nil {
				return err
			}
			left, err := replies[2*i+1].AsInt64()
			if err != nil {
				return err
			}
			if is == "hash" && left == -1 {
				n.eternal = append(n.eternal, strings.TrimPrefix(name, p.prefix))
			}
		}
	}
	return nil
}

// findLasting counts the tokens that are kept for longer than a day, as clients with WithRedisson do.
func (p *Patient) findLasting(ctx context.Context, tokens []string) (n int, err error) {
	const page, longest = 1000, 25 * time.Hour
	for part := range slices.Chunk(tokens, page) {
		var commands []rueidis.Completed
		for _, key := range part {
			commands = append(commands, p.plain.B().Pttl().Key(key).Build())
		}
		for _, reply := range p.plain.DoMulti(ctx, commands...) {
			left, err := reply.AsInt64()
			if err != nil {
				return 0, err
			}
			if left > longest.Milliseconds() {
				n++
			}
		}
	}
	return n, nil
}
