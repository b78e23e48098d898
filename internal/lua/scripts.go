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
	granting                [families]granting
	offer, force, inspect   *rueidis.Lua           // locks
	capacity, destroy, look [families]*rueidis.Lua // semaphores
	put                     *rueidis.Lua           // plain ones
}

// granting are the scripts that all families have, with one contract.
type granting struct {
	acquire, release, leave, renew *rueidis.Lua

	renewal string // the text of renew
}

var current = loadScripts(files)

// shared are the includes that are another file for each family: store.lua, and grants.lua, which has grant and give_back.
var shared = [families]map[string]string{
	Locks:  {"grants": "grant"},
	Leased: {"store": "leased", "grants": "permits"},
	Plain:  {"store": "plain", "grants": "permits"},
}

func loadScripts(files fs.FS) *scripts {
	load := func(f Family, name string) *rueidis.Lua { return rueidis.NewLuaScript(source(files, f, name)) }
	s := &scripts{
		offer:   load(Locks, "offer"),
		force:   load(Locks, "force"),
		inspect: load(Locks, "inspect"),
		put:     load(Plain, "put"),
	}
	for f, names := range map[Family][4]string{
		Locks: {"acquire", "release", "leave", "renew"}, Leased: {"take", "give", "leave", "prolong"}, Plain: {"take", "give", "leave", "prolong"},
	} {
		s.granting[f] = granting{load(f, names[0]), load(f, names[1]), load(f, names[2]), load(f, names[3]), source(files, f, names[3])}
		if f != Locks {
			s.capacity[f], s.destroy[f], s.look[f] = load(f, "capacity"), load(f, "destroy"), load(f, "census")
		}
	}
	return s
}

// source returns a script with its includes, each once, and without its comments, which the server would only have to parse.
func source(files fs.FS, f Family, name string) string {
	var b strings.Builder
	write(&b, files, f, name, map[string]bool{})
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
		if file, ok := strings.CutPrefix(line, "-- include "); ok {
			write(b, files, f, strings.TrimSuffix(strings.TrimSpace(file), ".lua"), included)
		} else if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			b.WriteString(line)
		}
	}
}
