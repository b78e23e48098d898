package lua

import (
	"embed"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed lock rwlock permit latch barrier basket shared
var files embed.FS

// Script is a Lua script with all that it includes. It is safe for concurrent use.
type Script struct {
	text string
	lua  *rueidis.Lua
}

// MustCompose returns the script of a primitive outside of this package. A line
//
//	-- include <folder>/<file>.lua
//
// of the text stands for that file of this package, with what that includes; each file is included once.
// shared/keys.lua is included first, as by all scripts for one name, so the text may use KEYS and ARGV as
// those do. A text that uses lock/take.lua and lock/contend.lua, as lock/acquire.lua does, is for
// [Conn.AcquireBy]; any other for [Conn.Run].
//
// It panics when a file does not exist: like a regular expression, a text is part of the program.
func MustCompose(text string) *Script { return compose("-- include shared/keys.lua\n" + text) }

// script is the script for one name that consists of these files, in this order, with what they include.
func script(paths ...string) *Script { return MustCompose(includes(paths)) }

// bare is a script for many names or for none, which begins without shared/keys.lua.
func bare(path string) *Script { return compose(includes([]string{path})) }

func includes(paths []string) string {
	return "-- include " + strings.Join(paths, "\n-- include ")
}

func compose(text string) *Script {
	var b strings.Builder
	write(&b, text, map[string]bool{})
	return &Script{text: b.String(), lua: rueidis.NewLuaScript(b.String())}
}

// write writes a text with what it includes, and without its comment lines, which the server would only have
// to parse.
func write(b *strings.Builder, text string, included map[string]bool) {
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		path, ok := strings.CutPrefix(trimmed, "-- include ")
		switch {
		case ok && !included[path]:
			included[path] = true
			file, err := files.ReadFile(path)
			if err != nil {
				panic(err)
			}
			write(b, string(file), included)
		case !ok && trimmed != "" && !strings.HasPrefix(trimmed, "--"):
			b.WriteString(strings.TrimRight(line, "\n") + "\n") // a composed text may end without one
		}
	}
}
