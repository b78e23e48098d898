package lua

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// Foreign returns the error of foreign data with a text that says which key has which type, and which it
// should have. For that it asks for the types of the keys. The text is that of the script when there is no
// answer, or all types are right.
func (c Conn) Foreign(ctx context.Context, k *Keys, err error) error {
	var misfits []string
	shapes := shapes[k.family]
	commands := make([]rueidis.Completed, len(shapes))
	for i := range shapes {
		commands[i] = c.Client.B().Type().Key(k.keys[shapes[i].key]).Build()
	}
	for i, reply := range c.Client.DoMulti(ctx, commands...) {
		s := shapes[i]
		if is, err := reply.ToString(); err == nil && is != "none" && is != s.kind {
			misfits = append(misfits, fmt.Sprintf("%s is %s, not %s (%s)", k.keys[s.key], kind(is), s.role, kind(s.kind)))
		}
	}
	if misfits == nil {
		return &foreign{said(err), err}
	}
	return &foreign{strings.Join(misfits, "; "), err}
}

// foreign is an error with another text.
type foreign struct {
	text string
	err  error
}

func (f *foreign) Error() string { return f.text }
func (f *foreign) Unwrap() error { return f.err }

// kind is a type of Redis' in words.
func kind(name string) string {
	if name == "zset" {
		name = "sorted set"
	}
	return "a " + name
}

// said is what a script says of foreign data, without the text that Redis puts around it.
func said(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "WRONGTYPE "); ok {
		text = after
	}
	for _, rest := range []string{" script: ", "stack traceback"} { // by Redis, by the embedded server
		text, _, _ = strings.Cut(text, rest)
	}
	return strings.TrimSpace(text)
}
