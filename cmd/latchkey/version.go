package main

import (
	"fmt"
	"runtime/debug"
)

// version is what was built: the version of the module, its commit where Go has noted that, and Go itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	if text == "" {
		text = "(devel)"
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			text += ", commit " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			text += " with changes"
		}
	}
	return fmt.Sprintf("%s, %s", text, info.GoVersion)
}
