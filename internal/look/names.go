package look

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Names returns the names that match a pattern, in their order. Without all it leaves out a name
// that Redis only remembers: it is free. There may be a million, and it keeps none.
func (l *Looker) Names(ctx context.Context, pause Pace, pattern string, all bool) ([]string, error) {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(l.Prefix)
	found := map[string]bool{}
	for n, beside := range []string{"*_*:{" + escaped + pattern + "}", "*_*:" + escaped + pattern} { // names with braces have no others
		err := scanAt(ctx, l.Plain, pause, beside, func(keys []string) error {
			var unsure []string
			for _, key := range keys {
				name, ok := lua.NameBeside(key)
				name, ours := strings.CutPrefix(name, l.Prefix)
				first := strings.HasSuffix(key, "{"+l.Prefix+name+"}") // the first pattern matches it, and the second one may as well
				if !ok || !ours || name == "" || first != (n == 0) || found[name] {
					continue
				}
				if all || !isMemory(key) {
					found[name] = true
				} else {
					unsure = append(unsure, name)
				}
			}
			return answered(ctx, func(ctx context.Context) error { return l.exist(ctx, unsure, found) })
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// exist adds the names that have a key of their own.
func (l *Looker) exist(ctx context.Context, names []string, found map[string]bool) error {
	if len(names) == 0 {
		return nil
	}
	commands := make([]rueidis.Completed, len(names))
	for i, name := range names {
		commands[i] = l.Plain.B().Exists().Key(l.Prefix + name).Build()
	}
	for i, reply := range l.Plain.DoMulti(ctx, commands...) {
		n, err := reply.AsInt64()
		switch {
		case err != nil && !lua.Forbidden(err): // of such a name a row says so
			return err
		case err != nil || n > 0:
			found[names[i]] = true
		}
	}
	return nil
}

// Reports says of names what they are, in their order.
func (l *Looker) Reports(ctx context.Context, names []string) ([]Report, error) {
	const abreast = 16
	group, ctx := errgroup.WithContext(ctx) // the first that fails ends all
	group.SetLimit(abreast)
	var mu sync.Mutex
	byName := map[string]Report{}
	for _, name := range names {
		group.Go(func() error {
			var r Report
			err := answered(ctx, func(ctx context.Context) (err error) {
				r, err = l.Report(ctx, name)
				return err
			})
			switch {
			case isOfName(err): // the others can be looked at
				r.Error = Told(strings.TrimPrefix(err.Error(), "latchkey: "))
			case err != nil:
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			byName[name] = r
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make([]Report, 0, len(names))
	for _, name := range names {
		all = append(all, byName[name])
	}
	return all, nil
}

// isOfName reports whether an error is of one name: it holds something else, or the user may not read it.
func isOfName(err error) bool {
	return errors.Is(err, latchkey.ErrWrongType) || errors.Is(err, latchkey.ErrInvalid) || errors.Is(err, semaphore.ErrNotSet) || lua.Forbidden(err)
}

// isMemory reports whether a key only remembers something of a name that may be free: its last fencing token, that it was done
// once, who took it away last. There may be a million of those.
func isMemory(key string) bool {
	return isToken(key) || slices.ContainsFunc([]string{"latchkey_once:", "latchkey_share:", "latchkey_forced:", "latchkey_done:"}, func(beside string) bool {
		return strings.HasPrefix(key, beside)
	})
}

// isToken reports whether a key has a name's last fencing token, which stays for a while when all else has gone.
func isToken(key string) bool {
	return strings.HasPrefix(key, "redisson_lock_token:") || strings.HasPrefix(key, "latchkey_token:")
}
