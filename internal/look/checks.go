package look

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// says returns what the server says of itself under a name. Otherwise the check it is for is unknown.
func (s *server) says(check, name string) (string, *Finding) {
	if value, ok := s.info[name]; ok {
		return value, nil
	}
	return "", &Finding{check, "", Unknown, "the server does not tell", "let this user call INFO: +info"}
}

func (s *server) version(context.Context) Finding {
	const check = "version"
	name, number := "Valkey", s.info["valkey_version"]
	if number == "" {
		var none *Finding
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
		return Finding{check, "", Wrong, name + " " + number, "Redis 6.2 or later, or any Valkey"}
	}
	return Finding{check, "", Fine, name + " " + number, ""}
}

func (s *server) role(context.Context) Finding {
	const check = "role"
	role, none := s.says(check, "role")
	switch {
	case none != nil:
		return *none
	case role == "slave":
		return Finding{
			check, "", Wrong, fmt.Sprintf("a replica of %s:%s", s.info["master_host"], s.info["master_port"]),
			"connect to the primary, or to a sentinel with --sentinel: a replica takes no locks",
		}
	}
	return Finding{check, "", Fine, "primary", ""}
}

func (s *server) eviction(context.Context) Finding {
	const check = "eviction"
	policy, none := s.says(check, "maxmemory_policy")
	switch limit := s.info["maxmemory"]; {
	case none != nil:
		return *none
	case policy == "noeviction":
		return Finding{check, "", Fine, policy, ""}
	case limit == "0":
		return Finding{check, "", Doubtful, policy + ", without a limit of memory", "CONFIG SET maxmemory-policy noeviction, before there is a limit"}
	}
	return Finding{check, "", Wrong, policy + ": Redis may evict a lock while it is held", "CONFIG SET maxmemory-policy noeviction; caches want a Redis of their own"}
}

func (s *server) persistence(ctx context.Context) Finding {
	const check = "persistence"
	aof, none := s.says(check, "aof_enabled")
	if none != nil {
		return *none
	}
	fsync := s.config(ctx, "appendfsync")
	switch {
	case aof == "1" && fsync == "always":
		return Finding{check, "", Fine, "appendonly yes, appendfsync always", ""}
	case aof == "1":
		return Finding{
			check, "", Doubtful, strings.TrimSpace("appendonly yes, appendfsync " + fsync),
			"a crash loses up to a second: two may hold after it, apart by their tokens. appendfsync always keeps all",
		}
	}
	return Finding{
		check, "", Doubtful, "appendonly no",
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

func (s *server) replicas(ctx context.Context) Finding {
	const check = "replicas"
	text, none := s.says(check, "connected_slaves")
	if none != nil {
		return *none
	}
	least := s.config(ctx, "min-replicas-to-write")
	switch {
	case text == "0":
		return Finding{check, "", Fine, "none", ""}
	case least == "":
		return Finding{check, "", Unknown, text + ", and the server does not tell min-replicas-to-write", "let this user call CONFIG GET: +config|get"}
	case least == "0":
		return Finding{
			check, "", Doubtful, text + ", min-replicas-to-write 0",
			"min-replicas-to-write 1: a primary that is cut off goes on granting otherwise, beside the new one. WithReplicas waits for replicas lock by lock",
		}
	}
	return Finding{check, "", Fine, text + ", min-replicas-to-write " + least, ""}
}

func (s *server) clock(context.Context) Finding {
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
		return Finding{check, "", Wrong, found, mend}
	case away > doubt:
		return Finding{check, "", Doubtful, found, mend}
	}
	return Finding{check, "", Fine, found, ""}
}

// undeclared asks for a key that a script has not declared, as ours do on most servers.
func (s *server) undeclared(ctx context.Context) Finding {
	const check = "scripts"
	const script = lua.TellsDragonfly + // as ours begin
		`return redis.call('EXISTS', ARGV[1])`
	keys, err := lua.NewKeys(lua.Locks, s.prefix+doctorsLock, false)
	if err != nil {
		return Finding{check, "", Wrong, err.Error(), "another --prefix"}
	}
	all := keys.All()
	err = s.Do(ctx, s.B().Eval().Script(script).Numkeys(1).Key(all[0]).Arg(all[1]).Build()).Error()
	switch {
	case err == nil, isMoved(err):
		return Finding{check, "", Fine, "run, with keys that are not declared", ""}
	case lua.Forbidden(err):
		return Finding{check, "", Wrong, err.Error(), "let this user call EVAL, EVALSHA and EXISTS on its keys: docs/operations.md has the rule"}
	case strings.Contains(err.Error(), "undeclared key"):
		return Finding{check, "", Fine, "run, with all keys declared: a client finds out, and a free lock costs some 10 % more", ""}
	}
	return Finding{check, "", Wrong, err.Error(), "latchkey needs EVAL and EVALSHA; a server that wants keys declared, and says so in other words, needs WithDeclaredKeys"}
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
func (s *server) hears(ctx context.Context) Finding {
	const check = "listeners"
	command := s.B().PubsubNumsub().Channel("latchkey-doctor").Build()
	if s.info["cluster_enabled"] == "1" {
		command = s.B().PubsubShardnumsub().Channel("{latchkey-doctor}").Build()
	}
	if err := s.Do(ctx, command).Error(); err != nil && !isMoved(err) {
		return Finding{
			check, "", Doubtful, err.Error(),
			"let this user call PUBSUB: +pubsub. Without it a waiter that was killed is granted what it waits for, and keeps it for a lease",
		}
	}
	return Finding{check, "", Fine, "are counted", ""}
}

// waits asks for what WithReplicas needs.
func (s *server) waits(ctx context.Context) Finding {
	const check = "WAIT"
	if err := s.Do(ctx, s.B().Wait().Numreplicas(0).Timeout(1).Build()).Error(); err != nil {
		return Finding{check, "", Doubtful, err.Error(), "let this user call WAIT: +wait. Without it WithReplicas refuses every lock"}
	}
	return Finding{check, "", Fine, "is answered", ""}
}

// inbox goes the whole way of a grant.
func (p *Patient) inbox(ctx context.Context) Finding {
	const check = "subscription"
	err := p.client.Check(ctx)
	switch {
	case err == nil:
		return Finding{check, "", Fine, "a message to our inbox arrives", ""}
	case lua.Forbidden(err):
		return Finding{check, "", Wrong, err.Error(), "let this user subscribe: +subscribe +unsubscribe &latchkey_inbox:*, in a cluster +ssubscribe; or WithoutPubSub, which asks instead"}
	}
	return Finding{check, "", Wrong, err.Error(), "what is between us and the server must let SUBSCRIBE through, as a proxy may not; or WithoutPubSub, which asks instead"}
}

// latency is how long a grant takes.
func (p *Patient) latency(ctx context.Context) Finding {
	const check, tries = "latency", 5
	const slow = 50 * time.Millisecond
	best := time.Duration(0)
	for i := range tries {
		began := time.Now()
		if err := p.client.Check(ctx); err != nil {
			return Finding{check, "", Unknown, "no message arrives", "see subscription"}
		}
		if took := time.Since(began); i == 0 || took < best {
			best = took
		}
	}
	found := fmt.Sprintf("%v for a message to our inbox, the best of %d", best.Round(time.Microsecond), tries)
	if best > slow {
		return Finding{check, "", Doubtful, found, "a hand-off takes that long at least: be nearer to the server, or hold for longer"}
	}
	return Finding{check, "", Fine, found, ""}
}

// locks takes a lock, and gives it back.
func (p *Patient) locks(ctx context.Context) Finding {
	const check = "a lock"
	err := takeAndGiveBack(ctx, p.client)
	switch {
	case err == nil:
		return Finding{check, "", Fine, "is taken and given back", ""}
	case errors.Is(err, latchkey.ErrNotAcquired):
		return Finding{check, "", Fine, "is taken by another doctor", ""}
	}
	return Finding{check, "", Wrong, err.Error(), "docs/operations.md says what it means, and has the rule for a user"}
}
