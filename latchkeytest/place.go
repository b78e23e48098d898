package latchkeytest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

const module = "github.com/latchkey-go/latchkey"

// isOurs reports whether a function is of latchkey, or of this kit, and not of a test of either.
func isOurs(function string) bool {
	rest, found := strings.CutPrefix(function, module)
	if !found || rest == "" || rest[0] != '.' && rest[0] != '/' {
		return false
	}
	last := strings.LastIndexByte(function, '/')
	name, _, _ := strings.Cut(function[last+1:], ".")
	return !strings.HasSuffix(name, "_test")
}

// call is how a program came to a hook of its client.
type call struct {
	method string // of latchkey that the program called; empty when it is in a goroutine of the client
	place  string // file:line of that
}

// deepest is how many frames are looked at: from a hook to the program there are less than thirty.
const deepest = 64

// caller looks at the goroutine that it is called on.
func caller() (c call) {
	pcs := make([]uintptr, deepest)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for outermost := ""; ; {
		frame, more := frames.Next()
		if !isOurs(frame.Function) {
			if strings.HasPrefix(frame.Function, "runtime.") { // no function has called it: it is the goroutine's first
				return call{place: "a goroutine of latchkey"}
			}
			return call{outermost, place(frame.File, frame.Line)}
		}
		if name := method(frame.Function); name != "" {
			outermost = name
		}
		if !more {
			return call{place: "a goroutine of latchkey"}
		}
	}
}

// method is the last part of the name of a function.
func method(function string) string {
	name, _, _ := strings.Cut(function, "[")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// waits reports whether the method is one that waits for what it wants.
func (c call) waits() bool {
	switch c.method {
	case "Lock", "TryLockFor", "Do", "TryDoFor", "Acquire", "TryAcquireFor":
		return true
	default:
		return false
	}
}

// tries reports whether the method is one that does not wait.
func (c call) tries() bool {
	switch c.method {
	case "TryLock", "TryDo", "TryAcquire", "Drain":
		return true
	default:
		return false
	}
}

// place names a line, from where the test runs if it is below that. Where a program was built with -trimpath it
// has no paths of the machine, and the file's name has to do.
func place(file string, line int) string {
	if !filepath.IsAbs(file) {
		return fmt.Sprintf("%s:%d", path.Base(file), line)
	}
	if here, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(below) {
			file = below
		}
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(file), line)
}
