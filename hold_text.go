package latchkey

import (
	"fmt"
	"log/slog"
)

// String is the name and the token. If the hold has ended, it says why.
func (h *Hold) String() string {
	text := fmt.Sprintf("hold of %q with token %d", h.Name(), h.Token())
	if err := h.Err(); err != nil {
		text = fmt.Sprintf("%s, ended: %v", text, err)
	}
	return text
}

// LogValue is a group of name and token. If the hold has ended, it also has the reason.
func (h *Hold) LogValue() slog.Value {
	attributes := []slog.Attr{slog.String("name", h.Name()), slog.Int64("token", h.Token())}
	if err := h.Err(); err != nil {
		attributes = append(attributes, slog.String("ended", err.Error()))
	}
	return slog.GroupValue(attributes...)
}

// String is the name of the lock, in quotes.
func (l *Lock) String() string { return fmt.Sprintf("lock %q", l.Name()) }
