package session

import (
	"strconv"
	"strings"
)

// fault is an error as callers see it: the module's prefix once, the name, and one line in which nothing is
// said twice. errors.Is and errors.As see what is inside.
type fault struct {
	name string // empty: it is of no lock
	err  error
}

func (f *fault) Error() string {
	if f.name == "" {
		return prefix + line(f.err.Error())
	}
	name := strconv.Quote(f.name)
	return prefix + name + ": " + line(f.err.Error(), name)
}

func (f *fault) Unwrap() error { return f.err }

const prefix = "latchkey: "

// named puts the prefix and the lock's name before an error, or the prefix alone when there is no name.
func Wrap(name string, err error) error { return &fault{name, err} }

// line makes one line of a text. What errors.Join puts on a line of its own follows a semicolon. A phrase is
// left out where it was said before, or is among those that need not be said, as is the prefix: a cause may
// be an error of this module, or come twice.
func line(text string, said ...string) string {
	heard := map[string]bool{strings.TrimSuffix(prefix, ": "): true}
	for _, phrase := range said {
		heard[phrase] = true
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\n", "; "), "; ") {
		separator := "; "
		for phrase := range strings.SplitSeq(part, ": ") {
			if phrase == "" || heard[phrase] {
				continue
			}
			heard[phrase] = true
			if b.Len() > 0 {
				b.WriteString(separator)
			}
			b.WriteString(phrase)
			separator = ": "
		}
	}
	return b.String()
}

// joined is what errors.Join makes, on one line.
type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }

// join returns all errors that are not nil as one, or nil.
func Join(errs ...error) error {
	var j joined
	for _, err := range errs {
		if err != nil {
			j = append(j, err)
		}
	}
	switch len(j) {
	case 0:
		return nil
	case 1:
		return j[0]
	default:
		return j
	}
}
