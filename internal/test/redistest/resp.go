package redistest

import (
	"bufio"
	"errors"
	"io"
	"strconv"
)

// errRESP is for what is not the protocol of Redis.
var errRESP = errors.New("not RESP")

// ReplyError is an error that Redis replied.
type ReplyError string

// Error is what Redis said.
func (e ReplyError) Error() string { return string(e) }

// value is one request, reply or push as it is on the wire, and what it says: nil, a string, an int64, a
// [ReplyError], or a list of these.
type value struct {
	raw  []byte
	kind byte
	is   any
}

// readValue reads one.
func readValue(r *bufio.Reader) (v value, err error) {
	v.kind, v.is, err = v.next(r)
	return v, err
}

func (v *value) next(r *bufio.Reader) (kind byte, is any, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	v.raw = append(v.raw, line...)
	if len(line) < 3 {
		return 0, nil, errRESP
	}
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '-':
		return kind, ReplyError(text), nil
	case ':':
		n, err := strconv.ParseInt(text, 10, 64)
		return kind, n, err
	case '$', '!', '=', '*', '>', '~', '%', '|':
	case '_':
		return kind, nil, nil
	default:
		return kind, text, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return kind, nil, err
	}
	switch kind {
	case '$', '!', '=':
		from := len(v.raw)
		v.raw = append(v.raw, make([]byte, n+2)...)
		if _, err := io.ReadFull(r, v.raw[from:]); err != nil {
			return kind, nil, err
		}
		return kind, string(v.raw[from : from+n]), nil
	case '%', '|':
		n *= 2
	}
	list := make([]any, n)
	for i := range list {
		if _, list[i], err = v.next(r); err != nil {
			return kind, nil, err
		}
	}
	return kind, list, nil
}

// words is a list of texts; nil: it is none.
func (v value) words() []string {
	list, ok := v.is.([]any)
	if !ok {
		return nil
	}
	words := make([]string, len(list))
	for i, x := range list {
		if words[i], ok = x.(string); !ok {
			return nil
		}
	}
	return words
}
