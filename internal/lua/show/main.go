// Command show prints the scripts that Redis runs, with all that they include:
//
//	go run ./internal/lua/show              # their names, and how long they are
//	go run ./internal/lua/show lock/acquire # one of them, or several
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
)

func main() {
	all := lua.Composed()
	if len(os.Args) == 1 {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, text := range all[name] {
				fmt.Printf("%-20s %4d lines %6d B\n", name, strings.Count(text, "\n"), len(text))
			}
		}
		return
	}
	for _, name := range os.Args[1:] {
		texts, known := all[name]
		if !known {
			fmt.Fprintf(os.Stderr, "there is no script %s; without a name, show lists all\n", name)
			os.Exit(1)
		}
		for _, text := range texts {
			fmt.Printf("-- %s\n%s", name, text)
		}
	}
}
