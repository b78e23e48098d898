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
	acquire, offer, release, leave, renew, force, inspect *rueidis.Lua

	renewal string // the text of renew
}

var current = loadScripts(files)

func loadScripts(files fs.FS) *scripts {
	load := func(name string) *rueidis.Lua { return rueidis.NewLuaScript(source(files, name)) }
	return &scripts{
		acquire: load("acquire"),
		offer:   load("offer"),
		release: load("release"),
		leave:   load("leave"),
		renew:   load("renew"),
		force:   load("force"),
		inspect: load("inspect"),
		renewal: source(files, "renew"),
	}
}

// source returns a script with its includes and without its comments, which the server would only have to parse.
func source(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name+".lua")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if file, ok := strings.CutPrefix(line, "-- include "); ok {
			b.WriteString(source(files, strings.TrimSuffix(strings.TrimSpace(file), ".lua")))
		} else if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}
