package session

import (
	"context"
	"log/slog"
)

// standard is the handler of a client without a logger of its own. It passes warnings and errors to
// slog.Default, which it looks up for each record. So a program may set the default after it has opened the
// client.
type standard struct {
	with func(slog.Handler) slog.Handler // attributes and groups
}

// StandardLogger returns the logger of a client without a logger of its own.
func StandardLogger() *slog.Logger {
	return slog.New(standard{func(h slog.Handler) slog.Handler { return h }})
}

func (s standard) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && slog.Default().Enabled(ctx, level)
}

func (s standard) Handle(ctx context.Context, r slog.Record) error {
	return s.with(slog.Default().Handler()).Handle(ctx, r)
}

func (s standard) WithAttrs(attrs []slog.Attr) slog.Handler {
	return standard{func(h slog.Handler) slog.Handler { return s.with(h).WithAttrs(attrs) }}
}

func (s standard) WithGroup(name string) slog.Handler {
	return standard{func(h slog.Handler) slog.Handler { return s.with(h).WithGroup(name) }}
}
