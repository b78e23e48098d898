package errcompare

import (
	"errors"
	"io"

	"github.com/latchkey-go/latchkey"
)

func is(err error) bool { return errors.Is(err, latchkey.ErrLost) }

func others(err error) bool { return err == nil || err == io.EOF }

func cases(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, latchkey.ErrClosed):
		return "closed"
	}
	return "other"
}

var known = []error{latchkey.ErrLost, latchkey.ErrClosed}

func themselves() bool { return latchkey.ErrLost != latchkey.ErrClosed }
