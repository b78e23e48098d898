package nocontext

import (
	"context"
	"database/sql"
	"net/http"
	"os/exec"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/semaphore"
)

func charge(context.Context, int64) error { return nil }

func fresh(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		return charge(context.Background(), hold.Token()) // want `context.Background\(\) does not end when what is held here is lost: pass the context that this function is given`
	})
}

func database(ctx context.Context, lock *latchkey.Lock, db *sql.DB) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		_, err := db.Exec("UPDATE stock SET n = n - 1") // want `db.Exec goes on when what is held here is lost: use ExecContext, with the context that this function is given`
		return err
	})
}

func network(ctx context.Context, uploads *semaphore.Semaphore) error {
	return uploads.Do(ctx, 1, func(context.Context, *semaphore.Permits) error {
		_, err := http.Get("https://example.org") // want `use http.NewRequestWithContext`
		return err
	})
}

func program(ctx context.Context, migration *once.Once) error {
	return migration.Do(ctx, func(context.Context, *once.Run) error {
		return exec.Command("migrate").Run() // want `use exec.CommandContext`
	})
}

func sleeps(ctx context.Context, lock *latchkey.Lock) error {
	return lock.TryDo(ctx, func(_ context.Context, _ *latchkey.Hold) error {
		time.Sleep(time.Minute) // want `time.Sleep goes on when what is held here is lost: use a select on time.After`
		return nil
	})
}
