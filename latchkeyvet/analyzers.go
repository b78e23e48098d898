// Package latchkeyvet reports code that uses github.com/latchkey-go/latchkey in a way that compiles and is
// wrong. Each of [Analyzers] is a go/analysis pass for one mistake. README.md shows wrong and right code for
// each. Command latchkeyvet runs them, by itself or in go vet.
//
// The analyzers keep silent in doubt. They go by types, and not by names: they also look at a type that
// embeds a lock, and at an interface with its methods. They skip a package that does not import the module
// directly, and need nothing of the packages that it imports. "A Do" is here any call whose function gets a
// context that ends with a hold, as of once.Every.
//
// A comment that says why switches off its line and the next:
//
//	_, err := lock.TryLock(ctx) //latchkeyvet:ignore the fixed lease is the pause until the next attempt
//
// Without a reason the comment has no effect. The command has a flag for each analyzer: -lostunlock=false.
package latchkeyvet

import (
	"go/token"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzers returns all analyzers of this package. The command has a flag for each, with its name. Each call
// returns a new slice.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{LostUnlock, LockLoop, SelfLock, OuterContext, NoContext, WaitTimeout, Outlives, DroppedUnlock, PerProcess, PerRequest, ErrCompare}
}

// newAnalyzer returns an analyzer that has nothing to say of a package that does not import this module, and
// nothing of lines that are switched off.
func newAnalyzer(name, doc string, run func(*analysis.Pass), requires ...*analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     name,
		Doc:      doc,
		URL:      "https://github.com/latchkey-go/latchkey/blob/main/latchkeyvet/README.md#" + name,
		Requires: requires,
		Run: func(pass *analysis.Pass) (any, error) {
			if !imports(pass.Pkg) {
				return nil, nil
			}
			all, heard := ignored(pass), *pass
			heard.Report = func(d analysis.Diagnostic) {
				if at := pass.Fset.Position(d.Pos); !all[line{at.Filename, at.Line}] {
					pass.Report(d)
				}
			}
			run(&heard)
			return nil, nil
		},
	}
}

// line is one of a file.
type line struct {
	file string
	n    int
}

// ignore is the comment that switches findings off. It says why, or has no effect.
var ignore = regexp.MustCompile(`^//latchkeyvet:ignore\s+\S`)

// ignored are the lines of which nothing is reported: that of an ignoring comment, and the one after it.
func ignored(pass *analysis.Pass) map[line]bool {
	all := map[line]bool{}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if ignore.MatchString(comment.Text) {
					at := pass.Fset.Position(comment.Pos())
					all[line{at.Filename, at.Line}], all[line{at.Filename, at.Line + 1}] = true, true
				}
			}
		}
	}
	return all
}

// inTest reports whether a position is in a test, or in what tests are made of: a file of tests, or one that
// imports testing.
func inTest(pass *analysis.Pass, pos token.Pos) bool {
	for _, file := range pass.Files {
		if !within(file, pos) {
			continue
		}
		for _, imported := range file.Imports {
			if imported.Path.Value == `"testing"` {
				return true
			}
		}
	}
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}
