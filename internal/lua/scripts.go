package lua

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

//go:embed lock rwlock permit latch barrier basket fence leader once every pause shared
var files embed.FS

// Script is a Lua script for one name, with all that it includes. It is safe for concurrent use.
//
// What never changes for a client and a name is part of the text, and no argument: how the other keys follow
// from the name, the inbox, the verb. So there is a text for each [variant].
type Script struct {
	text     func(variant) string
	variants [variants]func() *rueidis.Lua
}

// MustCompose returns the script of a lock outside of this package. A line
//
//	-- include <folder>/<file>.lua
//
// of the text stands for that file of this package, with what that includes; each file is included once. With
// inline in place of include it stands for the file in any case: inside a block that seldom runs, so that its
// functions are seldom made, each of which costs as much as a command. A word as REPLY_BUSY stands for a code
// of a reply, of which replies.go has the table. A line
//
//	-- keys QUEUE TOKEN
//
// defines these locals, unless they are defined. They are the keys beside NAME, which is the lock's. A line
//
//	-- redisson <line>
//
// is left out unless the client takes turns with processes of Redisson. The first line
//
//	-- moves
//
// is where a client of a cluster learns that the slot of the name moves: see shared/moves.lua. In a text without that
// line it is the first thing. A text that uses lock/take.lua and
// lock/contend.lua, as lock/acquire.lua does, is for [Conn.AcquireBy]; any other for [Conn.Run].
//
// It panics when a file or a key does not exist: like a regular expression, a text is part of the program.
func MustCompose(text string) *Script { return compose(Locks, text) }

// script is the script of a family that consists of these files, in this order, with what they include.
func script(family Family, paths ...string) *Script {
	s := compose(family, includes(paths))
	register(paths[len(paths)-1], s.texts)
	return s
}

// bare is the text of a script for many names or for none.
func bare(path string) string { return behind(TellsDragonfly, path) }

// behind is a text that stands behind a first line, if that is not empty.
func behind(first, path string) string {
	w := writer{included: map[string]bool{}}
	w.WriteString(first)
	w.write(includes([]string{path}))
	register(path, func() []string { return []string{w.String()} })
	return w.String()
}

func compose(family Family, text string) *Script {
	s := &Script{}
	s.text = func(v variant) string {
		w := writer{keys: keysOf(family, v), included: map[string]bool{}, redisson: v&redisson != 0, moves: moves(family, v)}
		w.write(prelude(family, v) + text)
		if w.moves == "" {
			return TellsDragonfly + w.String()
		}
		w = writer{keys: w.keys, included: map[string]bool{}, redisson: w.redisson}
		w.write(prelude(family, v) + moves(family, v) + text)
		return TellsDragonfly + w.String()
	}
	for v := range variants {
		compiled := func() *rueidis.Lua { return rueidis.NewLuaScript(s.text(v)) }
		if v > 0 {
			s.variants[v] = sync.OnceValue(compiled) // few programs need it
			continue
		}
		lua := compiled()
		s.variants[v] = func() *rueidis.Lua { return lua }
	}
	return s
}

// texts are all that the script may be.
func (s *Script) texts() (all []string) {
	for v := range variants {
		if v&careful == 0 || v&sharded != 0 {
			all = append(all, s.text(v))
		}
	}
	return all
}

// of is the script for a name.
func (s *Script) of(k *Keys) *rueidis.Lua { return s.variants[k.variant]() }

// careful is the script for a name whose slot may be moving.
func (s *Script) careful(k *Keys) *rueidis.Lua { return s.variants[k.variant|careful]() }

func includes(paths []string) string {
	return "-- include " + strings.Join(paths, "\n-- include ") + "\n"
}

// replies are the names of codes in a text: see [codes].
var replies = regexp.MustCompile(`\bREPLY_\w+`)

// writer composes a text.
type writer struct {
	strings.Builder

	keys     map[string]string // the definitions of locals; nil: the text has its own
	included map[string]bool   // files, and keys
	redisson bool              // see MustCompose
	moves    string            // what a line "-- moves" stands for, until it has stood there
}

// write writes a text with what it includes, and without its comment lines, which the server would only have
// to parse.
func (w *writer) write(text string) {
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, "-- redisson "); ok {
			if !w.redisson {
				continue
			}
			line, trimmed = rest+"\n", rest
		}
		if trimmed == "-- moves" {
			text := w.moves
			w.moves = ""
			w.write(text)
		} else if path, ok := strings.CutPrefix(trimmed, "-- include "); ok {
			if !w.included[path] {
				w.included[path] = true
				w.file(path)
			}
		} else if keys, ok := strings.CutPrefix(trimmed, "-- inline keys "); ok {
			w.define(strings.Fields(keys), false)
		} else if path, ok := strings.CutPrefix(trimmed, "-- inline "); ok {
			w.file(path)
		} else if keys, ok := strings.CutPrefix(trimmed, "-- keys "); ok {
			w.define(strings.Fields(keys), true)
		} else if trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			if strings.Contains(line, "REPLY_") { // nearly none has one, and all are composed when a program begins
				line = replies.ReplaceAllStringFunc(line, func(name string) string { return code(strings.TrimPrefix(name, "REPLY_")) })
			}
			w.WriteString(strings.TrimRight(line, "\n") + "\n") // a composed text may end without one
		}
	}
}

func (w *writer) file(path string) {
	text, err := files.ReadFile(path)
	if err != nil {
		panic(err)
	}
	w.write(string(text))
}

// define defines locals that are not defined. outside says that they stand outside of any block: then they
// are from now on.
func (w *writer) define(keys []string, outside bool) {
	for _, key := range keys {
		if w.keys == nil || w.included[key] {
			continue
		}
		w.included[key] = outside
		value, ok := w.keys[key]
		if !ok {
			panic(fmt.Sprintf("lua: there is no key %s", key))
		}
		w.WriteString("local " + key + " = " + value + "\n")
	}
}
