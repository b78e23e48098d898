package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// patient is what the doctor examines.
type patient struct {
	looker

	servers []*server
}

// server is one of a patient's that keys may be on, with what it says of itself.
type server struct {
	rueidis.Client

	address string
	prefix  string
	info    map[string]string
	offset  time.Duration // how far its clock is ahead of ours
}

func newPatient(ctx context.Context, c *cli.Command) (*patient, error) {
	plain, err := openPlain(c)
	if err != nil {
		return nil, err
	}
	p := &patient{looker: looker{plain: plain, prefix: c.String("prefix")}}
	err = eachServer(plain, func(address string, r rueidis.Client) error {
		s := &server{Client: r, address: address, prefix: p.prefix, info: map[string]string{}}
		before := time.Now()
		clock, err := r.Do(ctx, r.B().Time().Build()).AsIntSlice()
		if err != nil || len(clock) != 2 {
			return exit(statusAway, "%s: TIME: %w", address, err)
		}
		trip := time.Since(before)
		s.offset = time.UnixMicro(clock[0]*1_000_000 + clock[1]).Sub(before.Add(trip / 2))
		text, err := r.Do(ctx, r.B().Info().Build()).ToString() // without the permission for it: nothing
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && err == nil {
				s.info[name] = value
			}
		}
		p.servers = append(p.servers, s)
		return nil
	})
	if err == nil {
		if p.client, err = open(c, c.FullName()); lua.Forbidden(err) { // which is a finding
			p.client, err = open(c, c.FullName(), latchkey.WithLazyConnect())
		}
	}
	if err != nil {
		plain.Close()
		return nil, err
	}
	return p, nil
}

// longestTry is how long a client is tried that is not told why it cannot connect.
const longestTry = 5 * time.Second

// examine makes all checks.
func (p *patient) examine(ctx context.Context) (all []finding) {
	for _, s := range p.servers {
		if s.info["cluster_enabled"] == "1" && s.info["role"] == "slave" { // which another one speaks for
			continue
		}
		for _, check := range []func(context.Context) finding{
			s.version, s.role, s.eviction, s.persistence, s.replicas, s.clock, s.undeclared, s.hears, s.waits,
		} {
			f := check(ctx)
			f.Server = s.address
			all = append(all, f)
		}
	}
	limited, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	return append(all, p.inbox(limited), p.latency(limited), p.locks(limited), p.keys(ctx))
}

// says returns what the server says of itself under a name. Otherwise the check it is for is unknown.
func (s *server) says(check, name string) (string, *finding) {
	if value, ok := s.info[name]; ok {
		return value, nil
	}
	return "", &finding{check, "", unknown, "the server does not tell", "let this user call INFO: +info"}
}

func (s *server) version(context.Context) finding {
	const check = "version"
	name, number := "Valkey", s.info["valkey_version"]
	if number == "" {
		var none *finding
		if number, none = s.says(check, "redis_version"); none != nil {
			return *none
		}
		name = "Redis"
	}
	major, rest, _ := strings.Cut(number, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, _ := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	if m < 6 || m == 6 && n < 2 {
		return finding{check, "", wrong, name + " " + number, "Redis 6.2 or later, or any Valkey"}
	}
	return finding{check, "", fine, name + " " + number, ""}
}

func (s *server) role(context.Context) finding {
	const check = "role"
	role, none := s.says(check, "role")
	switch {
	case none != nil:
		return *none
	case role == "slave":
		return finding{
			check, "", wrong, fmt.Sprintf("a replica of %s:%s", s.info["master_host"], s.info["master_port"]),
			"connect to the primary, or to a sentinel with --sentinel: a replica takes no locks",
		}
	}
	return finding{check, "", fine, "primary", ""}
}

func (s *server) eviction(context.Context) finding {
	const check = "eviction"
	policy, none := s.says(check, "maxmemory_policy")
	switch limit := s.info["maxmemory"]; {
	case none != nil:
		return *none
	case policy == "noeviction":
		return finding{check, "", fine, policy, ""}
	case limit == "0":
		return finding{check, "", doubtful, policy + ", without a limit of memory", "CONFIG SET maxmemory-policy noeviction, before there is a limit"}
	}
	return finding{check, "", wrong, policy + ": Redis may evict a lock while it is held", "CONFIG SET maxmemory-policy noeviction; caches want a Redis of their own"}
}

func (s *server) persistence(ctx context.Context) finding {
	const check = "persistence"
	aof, none := s.says(check, "aof_enabled")
	if none != nil {
		return *none
	}
	fsync := s.config(ctx, "appendfsync")
	switch {
	case aof == "1" && fsync == "always":
		return finding{check, "", fine, "appendonly yes, appendfsync always", ""}
	case aof == "1":
		return finding{
			check, "", doubtful, strings.TrimSpace("appendonly yes, appendfsync " + fsync),
			"a crash loses up to a second: two may hold after it, apart by their tokens. appendfsync always keeps all",
		}
	}
	return finding{
		check, "", doubtful, "appendonly no",
		"a restart loses all locks: holders learn it, and two may hold until then, apart by their tokens. appendonly yes and appendfsync always keep all",
	}
}

// config is a setting of the server; empty if it does not tell.
func (s *server) config(ctx context.Context, name string) string {
	all, err := s.Do(ctx, s.B().ConfigGet().Parameter(name).Build()).AsStrMap()
	if err != nil {
		return ""
	}
	return all[name]
}

func (s *server) replicas(ctx context.Context) finding {
	const check = "replicas"
	text, none := s.says(check, "connected_slaves")
	if none != nil {
		return *none
	}
	least := s.config(ctx, "min-replicas-to-write")
	switch {
	case text == "0":
		return finding{check, "", fine, "none", ""}
	case least == "":
		return finding{check, "", unknown, text + ", and the server does not tell min-replicas-to-write", "let this user call CONFIG GET: +config|get"}
	case least == "0":
		return finding{
			check, "", doubtful, text + ", min-replicas-to-write 0",
			"min-replicas-to-write 1: a primary that is cut off goes on granting otherwise, beside the new one. WithReplicas waits for replicas lock by lock",
		}
	}
	return finding{check, "", fine, text + ", min-replicas-to-write " + least, ""}
}

func (s *server) clock(context.Context) finding {
	const check = "clock"
	const doubt, much = time.Second, time.Minute
	found := "as ours"
	switch away := s.offset.Abs(); {
	case away > doubt && s.offset > 0:
		found = away.Round(time.Millisecond).String() + " ahead of ours"
	case away > doubt:
		found = away.Round(time.Millisecond).String() + " behind ours"
	}
	mend := "have NTP keep both clocks; a token is the server's time, and a job of once.Every runs by it"
	switch away := s.offset.Abs(); {
	case away > much:
		return finding{check, "", wrong, found, mend}
	case away > doubt:
		return finding{check, "", doubtful, found, mend}
	}
	return finding{check, "", fine, found, ""}
}

// undeclared asks for a key that a script has not declared, as ours do on most servers.
func (s *server) undeclared(ctx context.Context) finding {
	const check = "scripts"
	const script = lua.TellsDragonfly + // as ours begin
		`return redis.call('EXISTS', ARGV[1])`
	keys, err := lua.NewKeys(lua.Locks, s.prefix+doctorsLock, false)
	if err != nil {
		return finding{check, "", wrong, err.Error(), "another --prefix"}
	}
	all := keys.All()
	err = s.Do(ctx, s.B().Eval().Script(script).Numkeys(1).Key(all[0]).Arg(all[1]).Build()).Error()
	switch {
	case err == nil, isMoved(err):
		return finding{check, "", fine, "run, with keys that are not declared", ""}
	case lua.Forbidden(err):
		return finding{check, "", wrong, err.Error(), "let this user call EVAL, EVALSHA and EXISTS on its keys: docs/operations.md has the rule"}
	case strings.Contains(err.Error(), "undeclared key"):
		return finding{check, "", fine, "run, with all keys declared: a client finds out, and a free lock costs some 10 % more", ""}
	}
	return finding{check, "", wrong, err.Error(), "latchkey needs EVAL and EVALSHA; a server that wants keys declared, and says so in other words, needs WithDeclaredKeys"}
}

// isMoved reports that a key of a cluster is on another server, which is asked as well.
func isMoved(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	_, moved := reply.IsMoved()
	return moved || strings.HasPrefix(reply.Error(), "CROSSSLOT")
}

// hears asks whether somebody listens, as waiters do of each other.
func (s *server) hears(ctx context.Context) finding {
	const check = "listeners"
	command := s.B().PubsubNumsub().Channel("latchkey-doctor").Build()
	if s.info["cluster_enabled"] == "1" {
		command = s.B().PubsubShardnumsub().Channel("{latchkey-doctor}").Build()
	}
	if err := s.Do(ctx, command).Error(); err != nil && !isMoved(err) {
		return finding{
			check, "", doubtful, err.Error(),
			"let this user call PUBSUB: +pubsub. Without it a waiter that was killed is granted what it waits for, and keeps it for a lease",
		}
	}
	return finding{check, "", fine, "are counted", ""}
}

// waits asks for what WithReplicas needs.
func (s *server) waits(ctx context.Context) finding {
	const check = "WAIT"
	if err := s.Do(ctx, s.B().Wait().Numreplicas(0).Timeout(1).Build()).Error(); err != nil {
		return finding{check, "", doubtful, err.Error(), "let this user call WAIT: +wait. Without it WithReplicas refuses every lock"}
	}
	return finding{check, "", fine, "is answered", ""}
}

// inbox goes the whole way of a grant.
func (p *patient) inbox(ctx context.Context) finding {
	const check = "subscription"
	err := p.client.Check(ctx)
	switch {
	case err == nil:
		return finding{check, "", fine, "a message to our inbox arrives", ""}
	case lua.Forbidden(err):
		return finding{check, "", wrong, err.Error(), "let this user subscribe: +subscribe +unsubscribe &latchkey_inbox:*, in a cluster +ssubscribe; or WithoutPubSub, which asks instead"}
	}
	return finding{check, "", wrong, err.Error(), "what is between us and the server must let SUBSCRIBE through, as a proxy may not; or WithoutPubSub, which asks instead"}
}

// latency is how long a grant takes.
func (p *patient) latency(ctx context.Context) finding {
	const check, tries = "latency", 5
	const slow = 50 * time.Millisecond
	best := time.Duration(0)
	for i := range tries {
		began := time.Now()
		if err := p.client.Check(ctx); err != nil {
			return finding{check, "", unknown, "no message arrives", "see subscription"}
		}
		if took := time.Since(began); i == 0 || took < best {
			best = took
		}
	}
	found := fmt.Sprintf("%v for a message to our inbox, the best of %d", best.Round(time.Microsecond), tries)
	if best > slow {
		return finding{check, "", doubtful, found, "a hand-off takes that long at least: be nearer to the server, or hold for longer"}
	}
	return finding{check, "", fine, found, ""}
}

// locks takes a lock, and gives it back.
func (p *patient) locks(ctx context.Context) finding {
	const check = "a lock"
	err := takeAndGiveBack(ctx, p.client)
	switch {
	case err == nil:
		return finding{check, "", fine, "is taken and given back", ""}
	case errors.Is(err, latchkey.ErrNotAcquired):
		return finding{check, "", fine, "is taken by another doctor", ""}
	}
	return finding{check, "", wrong, err.Error(), "docs/operations.md says what it means, and has the rule for a user"}
}
