package redistest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Examples have a server, and a redlock has three, whatever the environment says of a server of somebody
// else: they would write keys there.
func TestMainServesExamples(t *testing.T) {
	const theirs = "redis://127.0.0.1:1"
	if os.Getenv("REDIS_URL_BEFORE") == "" { // so this is not yet the process below
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), "REDIS_URL_BEFORE=yes", "REDIS_URL="+theirs, "REDIS_URLS="+theirs)
		output, err := again.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS: "+t.Name())
	}
	urls := strings.Split(os.Getenv("REDIS_URLS"), ",")
	require.Len(t, urls, 3)
	require.Equal(t, urls[0], os.Getenv("REDIS_URL"))
	if shared := os.Getenv("LATCHKEY_TEST_REDIS"); shared != "" {
		require.Equal(t, shared, urls[0])
	}
	for n, url := range urls {
		require.NotContains(t, urls[:n], url)
		option, err := rueidis.ParseURL(url)
		require.NoError(t, err)
		server := &redistest.Server{Addr: option.InitAddress[0]}
		client := server.Client(t)
		require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
	}
}
