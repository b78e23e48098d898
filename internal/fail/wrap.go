package fail

import (
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Error is an error as callers see it: the module's prefix once, the name, and one line in which nothing is
// said twice. Of a long name it has the beginning. errors.Is and errors.As see what is inside. Callers find it as
// the root package's Error: see [Publish].
type Error struct {
	Name   string          // of the primitive; empty: the error is of none
	Holder identity.Holder // who had the lock when the attempt was refused; the zero value: not known
	Err    error

	held string // says the same of the holder, as of then
}

func (w *Error) Error() string {
	text := w.Err.Error()
	if w.held != "" {
		text += ": " + w.held
	}
	if lua.Forbidden(w.Err) && !strings.Contains(text, tenants) {
		text = "the user may not use a key or run a command, which ACL LOG names, see " + tenants + ": " + text
	}
	if w.Name == "" {
		return prefix + oneLine(text)
	}
	brief := lua.Brief(w.Name)
	name := strconv.Quote(brief)
	if brief != w.Name {
		long := strconv.Quote(w.Name)
		text = strings.ReplaceAll(text, w.Name, brief) // as Redis says it
		text = strings.ReplaceAll(text, long[1:len(long)-1], name[1:len(name)-1])
	}
	return prefix + name + ": " + oneLine(text, name)
}

// Unwrap returns what is inside.
func (w *Error) Unwrap() error { return w.Err }

// As implements what errors.As asks for: see [Publish].
func (w *Error) As(target any) bool { return published != nil && published(w, target) }

// published is what [Publish] was given.
var published func(*Error, any) bool

// Publish sets how errors.As makes the root package's Error of an Error: f fills a target of that type, and reports
// false for any other target. The root package calls it once, before a program begins. So the type that users see
// stands where they read it, and the packages below need not import it.
func Publish(f func(e *Error, target any) bool) struct{} {
	published = f
	return struct{}{}
}

const prefix = "latchkey: "

// tenants is where the access rule stands. Servers name neither the key nor, all of them, the command.
const tenants = "Tenants in docs/operations.md"

// Wrap puts the module's prefix and the name of a primitive before an error. With an empty name it puts the
// prefix alone.
func Wrap(name string, err error) error { return &Error{Name: name, Err: err} }

// HeldBy adds to the error of a refused attempt who holds the lock. If no client does any more, it returns err.
func HeldBy(name string, err error, holder identity.Holder) error {
	if holder.Owner == "" {
		return err
	}
	return &Error{Name: name, Holder: holder, Err: err, held: holder.HeldBy(time.Now())}
}

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

// Error leaves out a text that an earlier one has, as of a function that returns why its hold was lost.
func (j joined) Error() string {
	text := ""
	for i, err := range j {
		switch next := err.Error(); {
		case i == 0:
			text = next
		case !strings.Contains(text, next):
			text += "; " + next
		}
	}
	return text
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
