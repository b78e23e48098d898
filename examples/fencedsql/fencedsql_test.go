package fencedsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/fencedsql"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, worker)
}

// staleWrites is how many a holder tries that has lost its lock.
const staleWrites = 1000

const lease = 500 * time.Millisecond

func openDB(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+filepath.ToSlash(path)+
		"?_txlock=immediate&_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
}

func write(ctx context.Context, db *sql.DB, token int64, value string) error {
	return fencedsql.InTx(ctx, db, "a", token, func(tx *sql.Tx) error { return update(ctx, tx, value) })
}

// update is what is guarded.
func update(ctx context.Context, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, value string,
) error {
	_, err := on.ExecContext(ctx, `UPDATE stock SET value = $1`, value)
	return err
}

// worker is a process that takes the lock, and says so. When it is told it writes, fenced or not, without a
// look at its hold, as somebody does who has looked just before.
func worker(args []string) {
	ctx := context.Background()
	c, err := rueidisclient.New(rueidis.ClientOption{InitAddress: []string{args[0]}, ForceSingleClient: true})
	locktest.Check(err)
	db, err := openDB(args[1])
	locktest.Check(err)
	l, err := rlock.New(c, "a", latchkey.WithLease(lease))
	locktest.Check(err)
	hold, err := l.Lock(ctx)
	locktest.Check(err)
	fmt.Println("holds")
	redistest.Told() // that the next holder writes
	stale, done := 0, 0
	for i := range staleWrites {
		value := fmt.Sprint("stale", i)
		if args[2] == "fenced" {
			err = write(ctx, db, hold.Token(), value)
		} else {
			err = update(ctx, db, value)
		}
		switch {
		case errors.Is(err, fencedsql.ErrStale):
			stale++
		case err == nil:
			done++
		default:
			locktest.Check(err)
		}
	}
	fmt.Println("wrote", stale, done)
	select {}
}

func newDB(t *testing.T) (db *sql.DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "stock.db")
	db, err := openDB(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, statement := range []string{
		fencedsql.Schema, `CREATE TABLE stock (value TEXT)`, `INSERT INTO stock VALUES ('')`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	return db, path
}

func value(t *testing.T, db *sql.DB) (text string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT value FROM stock`).Scan(&text))
	return text
}

// A holder is stopped past its lease and goes on while the next one writes: none of its 1,000 writes is done,
// and all of the next one's are there. Without the check its writes replace what the next one wrote.
func TestStoppedHolder(t *testing.T) {
	for _, how := range []string{"fenced", "plain"} {
		t.Run(how, func(t *testing.T) {
			s := redistest.NewProcess(t)
			db, path := newDB(t)
			w := redistest.StartWorker(t, s.Addr+" "+path+" "+how)
			w.Next(t, "holds")
			w.Signal(t, redistest.Stop)
			c, err := rueidisclient.New(s.Option())
			require.NoError(t, err)
			defer c.Close()
			l, err := rlock.New(c, "a")
			require.NoError(t, err)
			hold, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, write(t.Context(), db, hold.Token(), "0"))
			w.Tell(t, "write")
			w.Signal(t, redistest.Continue)
			if how == "plain" {
				require.Equal(t, []string{"0", fmt.Sprint(staleWrites)}, w.Next(t, "wrote"))
				require.NotEqual(t, "0", value(t, db), "otherwise this test shows nothing")
			} else {
				wrote := make(chan []string, 1)
				go func() { wrote <- w.Next(t, "wrote") }()
				mine := "0"
				var answer []string
				for n := 0; answer == nil; n++ {
					require.Equal(t, mine, value(t, db))
					mine = fmt.Sprint("next", n)
					require.NoError(t, write(t.Context(), db, hold.Token(), mine))
					select {
					case answer = <-wrote:
					default:
					}
				}
				require.Equal(t, []string{fmt.Sprint(staleWrites), "0"}, answer)
				require.Equal(t, mine, value(t, db))
			}
			require.NoError(t, hold.Unlock(t.Context()))
		})
	}
}

// Nothing stays of a transaction that was refused, or that failed; not even its token.
func TestAllOrNothing(t *testing.T) {
	db, _ := newDB(t)
	ctx := t.Context()
	require.NoError(t, write(ctx, db, 5, "five"))
	require.ErrorIs(t, write(ctx, db, 4, "four"), fencedsql.ErrStale)
	require.NoError(t, write(ctx, db, 5, "again"), "the same holder")
	failed := errors.New("failed")
	require.ErrorIs(t, fencedsql.InTx(ctx, db, "a", 9, func(tx *sql.Tx) error {
		require.NoError(t, update(ctx, tx, "nine"))
		return failed
	}), failed)
	require.Equal(t, "again", value(t, db))
	require.NoError(t, write(ctx, db, 6, "six"), "9 was rolled back")
	require.NoError(t, fencedsql.InTx(ctx, db, "b", 1, func(*sql.Tx) error { return nil }), "another name")
}

// Transactions of several tokens at the same time: once one is done, none with a smaller token is.
func TestAtTheSameTime(t *testing.T) {
	db, _ := newDB(t)
	ctx := t.Context()
	var mu sync.Mutex
	var order []int64
	var wg sync.WaitGroup
	for token := range int64(32) {
		wg.Go(func() {
			err := fencedsql.InTx(ctx, db, "a", token, func(tx *sql.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, token)
				return update(ctx, tx, fmt.Sprint(token))
			})
			if err != nil && !errors.Is(err, fencedsql.ErrStale) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.IsIncreasing(t, order)
	require.Equal(t, fmt.Sprint(order[len(order)-1]), value(t, db))
}
