package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// budgetFile has what packages spend of the processor, a line for each. With no name nothing is judged.
type budgetFile struct {
	name  string
	write bool // it is written, and not judged
}

// small is what is not judged: it says more about the machine than about the tests.
const small = 3 * time.Second

// grown is how much more than its budget a package must have spent to be red.
const grown = 1.5

// judge reports whether each package has kept to its budget. A machine may be slower than the one that has written
// the file, or busy: so a package is compared with what the packages as a whole have spent beyond their budgets.
func (b budgetFile) judge(spent map[string]time.Duration, out io.Writer) (green bool, err error) {
	if b.name == "" {
		return true, nil
	}
	if b.write {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(spent)) {
			if spent[name] >= small {
				fmt.Fprintln(&text, name, spent[name].Round(100*time.Millisecond))
			}
		}
		return true, os.WriteFile(b.name, []byte(text.String()), 0o600)
	}
	text, err := os.ReadFile(b.name)
	if err != nil {
		return false, err
	}
	allowed, ratios := map[string]time.Duration{}, []float64(nil)
	for line := range strings.Lines(string(text)) {
		name, figure, _ := strings.Cut(strings.TrimSpace(line), " ")
		if allowed[name], err = time.ParseDuration(figure); err != nil {
			return false, fmt.Errorf("%s: %w", b.name, err)
		}
		if spent[name] > 0 {
			ratios = append(ratios, spent[name].Seconds()/allowed[name].Seconds())
		}
	}
	if len(ratios) == 0 {
		return true, nil
	}
	slices.Sort(ratios)
	usual := ratios[len(ratios)/2]
	green = true
	for _, name := range slices.Sorted(maps.Keys(spent)) {
		limit := time.Duration(usual * grown * float64(max(allowed[name], small)))
		if spent[name] > limit {
			_, _ = fmt.Fprintf(out, "red: %s spent %v of processor; its budget is %v, and all have spent %.2f times theirs (LATCHKEY_BUDGET=write .ci/run writes it anew)\n", name, spent[name], allowed[name], usual)
			green = false
		}
	}
	return green, nil
}
