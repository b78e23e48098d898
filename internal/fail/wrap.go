package fail

import (
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// wrapped is an error as callers see it: the module's prefix once, the name, and one line in which nothing is
// said twice. Of a long name it has the beginning. errors.Is and errors.As see what is inside.
type wrapped struct {
	name string // of the primitive; empty: the error is of none
	err  error
}

func (w *wrapped) Error() string {
	text := w.err.Error()
	if lua.Forbidden(w.err) && !strings.Contains(text, tenants) {
		text = "the user may not use a key or run a command, which ACL LOG names, see " + tenants + ": " + text
	}
	if w.name == "" {
		return prefix + oneLine(text)
	}
	brief := lua.Brief(w.name)
	name := strconv.Quote(brief)
	if brief != w.name {
		long := strconv.Quote(w.name)
		text = strings.ReplaceAll(text, w.name, brief) // as Redis says it
		text = strings.ReplaceAll(text, long[1:len(long)-1], name[1:len(name)-1])
	}
	return prefix + name + ": " + oneLine(text, name)
}

func (w *wrapped) Unwrap() error { return w.err }

const prefix = "latchkey: "

// tenants is where the access rule stands. Servers name neither the key nor, all of them, the command.
const tenants = "Tenants in docs/operations.md"

// Wrap puts the module's prefix and the name of a primitive before an error. With an empty name it puts the
// prefix alone.
func Wrap(name string, err error) error { return &wrapped{name, err} }

// oneLine makes one line of a text. What errors.Join puts on a line of its own follows a semicolon. A phrase
// is left out when it was said before, is among said, or is the prefix: a cause may be an error of this
// module, or come twice.
func oneLine(text string, said ...string) string {
	before := map[string]bool{strings.TrimSuffix(prefix, ": "): true}
	for _, phrase := range said {
		before[phrase] = true
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\n", "; "), "; ") {
		separator := "; "
		for phrase := range strings.SplitSeq(part, ": ") {
			if phrase == "" || before[phrase] {
				continue
			}
			before[phrase] = true
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

// Join returns all errors that are not nil as one, whose text is one line. It returns nil when there are
// none, and the error itself when there is one.
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
