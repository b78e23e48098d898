package lua_test

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// absurd is what nobody of ours writes, or what is far too great.
var absurd = []string{
	"", "text", "-5", "99999999999999999999999", "9223372036854775808", "inf", "\x00\xff\r\n:", strings.Repeat("9", 400),
	"0", "1.5", "9007199254740992", "9223372036854775807", "-9223372036854775809", "nan", "-inf", "0x10", " 7", // make soak
}

// place is where it is put: a string, a field of a hash, an entry at the head of a list, a score or a member
// of a sorted set.
type place struct {
	kind, key, field string
	wrap             string // the value stands for the %
}

func (p place) String() string { return p.kind + " " + p.key + " " + p.field + " " + p.wrap }

// spoiled is a primitive on a server in whose data something is wrong.
type spoiled struct {
	t      *testing.T
	conn   lua.Conn
	keys   *lua.Keys
	places []place
	stay   []string // keys without a time to live
	make   func()   // a new one, in use
	uses   map[string]func() error
	works  func(used string)                     // checks that it does, after a use
	skip   func(p place, value, use string) bool // because it is not absurd
	n      int
}

func (s *spoiled) do(args ...string) rueidis.RedisResult {
	return s.conn.Client.Do(s.t.Context(), s.conn.Client.B().Arbitrary(args...).Build())
}

func (s *spoiled) must(err error) {
	s.t.Helper()
	require.NoError(s.t, err)
}

// id is that of a further command.
func (s *spoiled) id() lua.Once { s.n++; return lua.Once{ID: fmt.Sprintf("Y:%d", s.n)} }

func text(r rueidis.RedisResult) (string, bool) { v, err := r.ToString(); return v, err == nil }

// put puts a value to a place and returns what repairs it. It is not ok when Redis does not take it.
func (s *spoiled) put(p place, value string) (repair func(), ok bool) {
	value = strings.Replace(p.wrap, "%", value, 1)
	switch p.kind {
	case "string":
		was, had := text(s.do("GET", p.key))
		s.must(s.do("SET", p.key, value, "KEEPTTL").Error())
		return func() {
			now, is := text(s.do("GET", p.key))
			from, number := new(big.Int).SetString(value, 10)
			to, number2 := new(big.Int).SetString(now, 10)
			base, number3 := new(big.Int).SetString(was, 10)
			switch {
			case !is:
			case now != value && number && number2 && number3: // it was counted on
				s.must(s.do("SET", p.key, base.Add(base, to.Sub(to, from)).String(), "KEEPTTL").Error())
			case now == value && had:
				s.must(s.do("SET", p.key, was, "KEEPTTL").Error())
			case now == value:
				s.must(s.do("DEL", p.key).Error())
			}
		}, true
	case "hash":
		was, had := text(s.do("HGET", p.key, p.field))
		s.must(s.do("HSET", p.key, p.field, value).Error())
		return func() {
			if now, is := text(s.do("HGET", p.key, p.field)); is && now == value {
				if had {
					s.must(s.do("HSET", p.key, p.field, was).Error())
				} else {
					s.must(s.do("HDEL", p.key, p.field).Error())
				}
			}
		}, true
	case "list":
		s.must(s.do("LPUSH", p.key, value).Error())
		return func() { s.must(s.do("LREM", p.key, "0", value).Error()) }, true
	case "score":
		was, _ := text(s.do("ZSCORE", p.key, p.field))
		if s.do("ZADD", p.key, value, p.field).Error() != nil {
			return nil, false
		}
		return func() { s.must(s.do("ZADD", p.key, "XX", was, p.field).Error()) }, true
	default:
		s.must(s.do("ZADD", p.key, "1", value).Error())
		return func() { s.must(s.do("ZREM", p.key, value).Error()) }, true
	}
}

// endless are the keys without a time to live.
func (s *spoiled) endless() map[string]bool {
	names, err := s.do("KEYS", "*").AsStrSlice()
	s.must(err)
	all := map[string]bool{}
	for _, name := range names {
		ttl, err := s.do("PTTL", name).AsInt64()
		s.must(err)
		if ttl == -1 || ttl > 100*24*3600*1000 {
			all[name] = true
		}
	}
	return all
}

// dump returns all but for what counts tokens.
func (s *spoiled) dump() map[string]string {
	all := dump(s.t, s.conn.Client)
	for _, prefix := range []string{"redisson_lock_token", "latchkey_token"} {
		for name := range all {
			if strings.HasPrefix(name, prefix) {
				delete(all, name)
			}
		}
	}
	return all
}

// run uses the primitive with everything absurd in every place. What cannot be done says so by type, and has
// then done nothing; once the place is repaired, all is as it would have been.
func (s *spoiled) run() {
	values := absurd[:redistest.Longer(8, int64(len(absurd)))]
	if strings.Contains(s.t.Name(), "/embedded") { // which is slow, and reads numbers a little differently
		values = []string{"text", "99999999999999999999999", "inf"}
	}
	seed, kept := redistest.Seed(s.t), 1
	if redistest.Brief() {
		kept = 12 // one in so many, by chance
	}
	s.t.Logf("LATCHKEY_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, p := range s.places {
		for _, value := range values {
			for _, name := range slices.Sorted(maps.Keys(s.uses)) {
				use := s.uses[name]
				what := fmt.Sprintf("%s = %.30q: %s", p, value, name)
				if random.IntN(kept) > 0 {
					continue
				}
				if s.skip != nil && s.skip(p, value, name) {
					continue
				}
				s.must(s.do("FLUSHALL").Error())
				s.make()
				repair, ok := s.put(p, value)
				if !ok {
					continue
				}
				before, endless := s.dump(), s.endless()
				err := use()
				if err != nil {
					known := errors.Is(err, lua.ErrRange) || errors.Is(err, lua.ErrNotSet) || errors.Is(err, lua.ErrCapacity) || errors.Is(err, lua.ErrFull) || errors.Is(err, lua.ErrForeignFence)
					require.True(s.t, known || lua.Classify(err) == lua.WrongType, "%s: %v", what, err)
					require.Equal(s.t, before, s.dump(), "%s: %v", what, err)
				}
				for key := range s.endless() {
					require.True(s.t, endless[key] || slices.Contains(s.stay, key), "%s: %s stays for ever", what, key)
				}
				repair()
				if err != nil {
					name = ""
				}
				func() {
					defer func() {
						if s.t.Failed() {
							s.t.Log(what, err, s.dump())
						}
					}()
					s.works(name)
				}()
			}
		}
	}
}

// hear subscribes inboxes, so that their clients are alive.
func hear(t *testing.T, s *redistest.Server, keys *lua.Keys, clients ...string) {
	t.Helper()
	for _, client := range clients {
		sub, err := rueidis.NewClient(s.Option())
		require.NoError(t, err)
		confirmed, ended := make(chan struct{}), make(chan struct{})
		ctx := rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { close(confirmed) })
		go func() {
			defer close(ended)
			_ = sub.Receive(ctx, sub.B().Subscribe().Channel(keys.Inbox(client)).Build(), func(rueidis.PubSubMessage) {}) // until it is closed
		}()
		<-confirmed
		t.Cleanup(func() { sub.Close(); <-ended })
	}
}

// Rule 16.
func TestAbsurdLocks(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		b := newBench(t, server)
		k := b.lock
		hear(t, server, k, "A", "B")
		s := &spoiled{t: t, conn: b.conn, keys: k}
		name, queue, token, pace := k.All()[0], k.All()[1], k.All()[2], "latchkey_pace:orders:{42} x"
		s.places = []place{
			{"hash", name, "A:1", "%"}, {"hash", name, "A:1", "t%"}, {"hash", name, "A:1", "t1+%"}, {"hash", name, "A:1", "t1+%l/9"},
			{"hash", name, "A:1", "t1/%"}, {"hash", name, "A:1", "t1/9!%"}, {"hash", name, "x", "%"},
			{"list", queue, "", "%"}, {"list", queue, "", "1:B:%:1000:0"}, {"list", queue, "", "1:B:7:%:0"}, {"list", queue, "", "1:B:7:1000:%"},
			{"list", queue, "", "1:%:7:1000:0"}, {"string", token, "", "%"}, {"string", pace, "", "%"},
		}
		s.make = func() {
			b.share("A:1", lua.First)
			b.share("B:1", lua.First)
		}
		ctx := t.Context()
		acquire := func(owner string, mode lua.Mode) func() error {
			return func() error { _, err := b.conn.Acquire(ctx, k, shared(owner), 0, mode); return err }
		}
		s.uses = map[string]func() error{
			"try": acquire("C:1", lua.Try), "queue": acquire("C:1", lua.First), "again": acquire("A:1", lua.Again), "ask": acquire("B:1", lua.Again),
			"release": func() error { _, err := b.conn.Release(ctx, k, lua.Ending{Owner: "A:1"}, 0); return err },
			"rest":    func() error { _, err := b.conn.Release(ctx, k, lua.Ending{Owner: "A:1", Rest: 100}, 0); return err },
			"offer":   func() error { _, err := b.conn.Offer(ctx, k, "A:1", "", 1, shared("A:2"), 0, lua.First); return err },
			"leave": func() error {
				_, err := b.conn.Leave(ctx, k, []lua.Departure{{Owner: "A:1", Entry: shared("A:1").Entry()}}, 0)
				return err
			},
			"force":   func() error { _, err := b.conn.Force(ctx, k, false, 0, lua.AnyHolder); return err },
			"inspect": func() error { _, err := b.conn.Inspect(ctx, k, 10); return err },
			"roll":    func() error { _, err := b.conn.Roll(ctx, k, "B", "", 10); return err },
			"renew": func() error {
				_, _, err := b.conn.Renew(ctx, []lua.Renewal{{Keys: k, Owner: "A:1", Lease: 1000}})
				return err
			},
		}
		s.works = func(string) {
			for range 3 {
				_, err := b.conn.Force(ctx, k, false, 0, lua.AnyHolder)
				s.must(err)
			}
			require.Zero(t, must(t, message(t, s.do("EXISTS", name, queue))), "all who waited had it")
			require.Positive(t, b.acquire("D:1", 10_000, lua.First).Token)
			require.Zero(t, b.acquire("E:1", 10_000, lua.Try).Token)
			require.True(t, b.release("D:1", ""))
		}
		s.run()
	})
}

func message(t testing.TB, r rueidis.RedisResult) rueidis.RedisMessage {
	t.Helper()
	m, err := r.ToMessage()
	require.NoError(t, err)
	return m
}

// A lock with more fields than one command deletes is left alone, and whoever is next keeps its place.
func TestLockWithTooManyFields(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.open("b")
		command := []string{"HSET", b.lock.Name(), "a:1", "t5/3000!5"}
		for n := range 9000 {
			command = append(command, fmt.Sprint(n), "1")
		}
		require.NoError(t, b.do(command...).Error())
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "60000").Error())
		require.NoError(t, b.do("RPUSH", b.lock.All()[1], entry("b:1", 60_000)).Error())
		_, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "c:1", Lease: 60_000, Longest: 100}, 0, lua.Try)
		require.Equal(t, lua.WrongType, lua.Classify(err), err)
		length, err := b.do("LLEN", b.lock.All()[1]).AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 1, length)
	})
}
