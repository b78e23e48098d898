package session_test

import (
	"bytes"
	"log"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Attributes and groups go along to what slog.Default is by then.
func TestStandardLoggerKeepsAttributes(t *testing.T) {
	before, flags := slog.Default(), log.Flags()
	defer func() { slog.SetDefault(before); log.SetOutput(os.Stderr); log.SetFlags(flags) }()
	logger := session.StandardLogger().With("name", "a").WithGroup("of")
	var text bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	logger.Info("dropped")
	logger.Error("said", "x", 1)
	require.Contains(t, text.String(), "level=ERROR msg=said name=a of.x=1\n")
	require.NotContains(t, text.String(), "dropped")
}
