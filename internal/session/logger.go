package session

import (
	"context"
	"log/slog"
)

// standard is the handler of a client without a logger of its own: warnings and errors go to what slog.Default is when they
// are logged, so that a program may set it after the client was opened.
type standard struct {
	with func(slog.Handler) slog.Handler // attributes and groups
}

// StandardLogger is the logger of a client that was given none.
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
