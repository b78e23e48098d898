// Command latchkeyvet reports code that uses latchkey in a way that compiles and is wrong.
//
//	go install github.com/latchkey-go/latchkey/latchkeyvet/cmd/latchkeyvet@latest
//	latchkeyvet ./...                               # by itself
//	latchkeyvet -fix ./...                          # also makes the changes that are safe
//	go vet -vettool=$(which latchkeyvet) ./...      # in go vet, which remembers what it has looked at
//	latchkeyvet -lostunlock=false ./...             # all but one
//	latchkeyvet help lostunlock                     # what one reports
//
// Package latchkeyvet says what is reported, and how to switch it off for a line. The status is 0 when there
// is nothing to report, and not 0 otherwise.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/latchkey-go/latchkey/latchkeyvet"
)

// main also speaks the protocol of go vet: multichecker hands a .cfg file to the checker of single packages.
func main() {
	multichecker.Main(latchkeyvet.Analyzers()...)
}
