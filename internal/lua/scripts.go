package lua

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed *.lua
var files embed.FS

// scripts are those of one wire version.
type scripts struct {
	clock                                   *rueidis.Lua           // of what has the name
	acquire, offer, release, force, inspect *rueidis.Lua           // locks
	trade, capacity, destroy, census        [families]*rueidis.Lua // semaphores
	leave                                   [families]*rueidis.Lua // all
	renew                                   [families]*rueidis.Lua // what is leased

	latchSet, latchCount, latchState, latchDelete             *rueidis.Lua
	barrierArrive, barrierAttend, barrierSettle, barrierReset *rueidis.Lua
	barrierJoin, barrierLeave                                 *rueidis.Lua

	renewal [families]string // the text of renew
}

var current = loadScripts(files)

// shared are the includes that are another file for each family: store.lua, quick.lua, and grants.lua, which has give_back.
var shared = [families]map[string]string{
	Locks:  {"grants": "grant"},
	Leased: {"store": "leased", "quick": "quick_leased", "grants": "permits"},
	Plain:  {"store": "plain", "quick": "quick_plain", "grants": "permits"},
}

func loadScripts(files fs.FS) *scripts {
	load := func(f Family, name string) *rueidis.Lua { return rueidis.NewLuaScript(source(files, f, name)) }
	s := &scripts{
		acquire: load(Locks, "acquire"),
		offer:   load(Locks, "offer"),
		release: load(Locks, "release"),
		force:   load(Locks, "force"),
		inspect: load(Locks, "inspect"),
		clock:   load(Locks, "clock"),
	}
	for f, name := range map[Family]string{Locks: "renew", Leased: "prolong"} {
		s.renew[f], s.renewal[f] = load(f, name), source(files, f, name)
	}
	s.latchSet, s.latchCount = load(Latch, "latch_set"), load(Latch, "latch_count")
	s.latchState, s.latchDelete = load(Latch, "latch_state"), load(Latch, "latch_delete")
	s.barrierArrive, s.barrierAttend = load(Barrier, "barrier_arrive"), load(Barrier, "barrier_attend")
	s.barrierSettle, s.barrierReset = load(Barrier, "barrier_settle"), load(Barrier, "barrier_reset")
	s.barrierJoin, s.barrierLeave = load(Barrier, "barrier_join"), load(Barrier, "barrier_leave")
	for _, f := range granting {
		s.leave[f] = load(f, "leave")
		if f != Locks {
			s.trade[f], s.capacity[f], s.destroy[f], s.census[f] = load(f, "trade"), load(f, "capacity"), load(f, "destroy"), load(f, "census")
		}
	}
	return s
}

// source returns a script with its includes, each once, and without its comments, which the server would only have to parse.
func source(files fs.FS, f Family, name string) string {
	var b strings.Builder
	included := map[string]bool{}
	if name != "renew" && name != "prolong" && name != "clock" { // those are for many names, or for none
		write(&b, files, f, "keys", included)
	}
	write(&b, files, f, name, included)
	return b.String()
}

func write(b *strings.Builder, files fs.FS, f Family, name string, included map[string]bool) {
	if file, ok := shared[f][name]; ok {
		name = file
	}
	if included[name] {
		return
	}
	included[name] = true
	text, err := fs.ReadFile(files, name+".lua")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		if file, ok := strings.CutPrefix(trimmed, "-- include "); ok {
			write(b, files, f, strings.TrimSuffix(file, ".lua"), included)
		} else if trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			b.WriteString(line)
		}
	}
}
