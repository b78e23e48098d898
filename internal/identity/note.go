package identity

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNote is how many bytes of a note are told.
const MaxNote = 200

type noteKey struct{}

// WithNote is documented by the root package.
func WithNote(ctx context.Context, note string) context.Context {
	return context.WithValue(ctx, noteKey{}, Clip(note, MaxNote))
}

// NoteOf returns the note of a context; empty when it has none, and for nil.
func NoteOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	note, _ := ctx.Value(noteKey{}).(string)
	return note
}

// Printable is a text without what a terminal would obey, or that would make two lines of it: anybody may
// have written it who may write to Redis.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Clip returns at most so many bytes of a text, in whole characters.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
