package fence

import (
	"fmt"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
)

// Reply is what the script of an Eval returned. Redis turns numbers of Lua into integers, false and nil into nil, and
// a table into a list. The zero value is nil. Its methods are safe for concurrent use.
type Reply struct{ message *rueidis.RedisMessage }

// IsNil reports whether the script returned nil or false, or nothing.
func (r Reply) IsNil() bool { return r.message == nil || r.message.IsNil() }

// Int64 returns an integer, or a text that is one. For any other reply it returns an error.
func (r Reply) Int64() (int64, error) {
	if r.IsNil() {
		return 0, errNil
	}
	if n, err := r.message.AsInt64(); err == nil {
		return n, nil
	}
	return 0, r.isNo("integer")
}

// Text returns a text. For any other reply it returns an error.
func (r Reply) Text() (string, error) {
	if r.IsNil() {
		return "", errNil
	}
	if text, err := r.message.ToString(); err == nil {
		return text, nil
	}
	return "", r.isNo("text")
}

// List returns the replies of a list. For any other reply it returns an error.
func (r Reply) List() ([]Reply, error) {
	if r.IsNil() {
		return nil, errNil
	}
	messages, err := r.message.ToArray()
	if err != nil {
		return nil, r.isNo("list")
	}
	list := make([]Reply, len(messages))
	for i := range messages {
		list[i].message = &messages[i]
	}
	return list, nil
}

var errNil = fail.Wrap("", fmt.Errorf("the script returned nil"))

func (r Reply) isNo(kind string) error {
	return fail.Wrap("", fmt.Errorf("the script returned no %s", kind))
}

// ScriptError is an error that the script of an Eval returned, or that a command in it got. What it had written before
// stays.
type ScriptError struct{ err error }

// Error is the text as Redis sent it. The zero value has none.
func (e *ScriptError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}
