package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// What processes of tests do: see redistest.StartWorker. The TestMain of a package runs its modes.

// LeaseVariable is the environment variable with the lease of a worker's client.
const LeaseVariable = "LATCHKEY_TEST_LEASE"

// Connect returns the client of a worker, once its inbox is confirmed.
func Connect(addr string, set ...func(*session.Options)) (*session.Client, error) {
	o := session.DefaultOptions()
	if d, err := time.ParseDuration(os.Getenv(LeaseVariable)); err == nil {
		o.Lease = d
	}
	for _, f := range set {
		f(&o)
	}
	c, err := core.Open(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, o)
	if err != nil {
		return nil, err
	}
	if err = c.Check(context.Background()); err != nil {
		CloseNow(c)
	}
	return c, err
}

// Connected is the client of a worker, as users have one. It dials until the server is there: tests kill
// connections meanwhile. Any other error ends the worker.
func Connected(addr string, opts ...latchkey.Option) *latchkey.Client {
	option := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
	c, err := rueidisclient.New(option, opts...)
	for errors.Is(err, latchkey.ErrUnavailable) {
		c, err = rueidisclient.New(option, opts...)
	}
	Check(err)
	return c
}

// Check ends a worker with an error.
func Check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// Hold is a worker that holds a lock, reports that, and when the hold ends. It never returns.
func Hold(l *lock.Lock) {
	h, err := l.Lock(context.Background())
	Check(err)
	fmt.Println("held", h.Token())
	reported := false
	for {
		// The first look at the clock after a SIGCONT must be right; Done follows within 10 ms.
		if !reported && (h.Remaining() <= 0 || h.Context().Err() != nil || !h.Held()) {
			reported = true
			fmt.Println("ended", time.Now().UnixNano(), h.Held(), h.Context().Err() == nil, h.Err() == nil)
		}
		select {
		case <-h.Context().Done():
			if reported {
				fmt.Println("done", time.Now().UnixNano())
				select {}
			}
		default:
		}
	}
}

// Number reads what a worker has reported.
func Number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
