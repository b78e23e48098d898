// Package fencedsql shows how a database checks fencing tokens: a transaction begins with a statement that
// fails for a holder whose token is smaller than one that was there, and the writes follow in the same
// transaction. The statements are those of SQLite, and of PostgreSQL as they stand.
package fencedsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrStale says that a transaction was refused, and nothing was written: one with a greater token was there.
var ErrStale = errors.New("stale token")

// Schema makes the table that has the greatest token of each name.
const Schema = `CREATE TABLE IF NOT EXISTS fences (name TEXT PRIMARY KEY, token BIGINT NOT NULL)`

// check notes a token, and changes no row if a greater one was there. It writes the row in any other case: so
// two transactions of one name exclude each other from here to their ends. In PostgreSQL the second one waits
// for the first, and then compares its token with the one that the first has left.
const check = `INSERT INTO fences (name, token) VALUES ($1, $2)
	ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE fences.token <= excluded.token`

// InTx runs f in a transaction that is fenced by the token of a hold: hold.Token(). name is that of the lock.
// What f reads and writes must go through tx. Reads count as well: no holder with a smaller token changes any
// more what f has read there.
//
// With SQLite, transactions must begin with the right to write (_txlock=immediate): otherwise one that finds
// the database locked fails, where it could have waited.
func InTx(ctx context.Context, db *sql.DB, name string, token int64, f func(tx *sql.Tx) error) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}()
	result, err := tx.ExecContext(ctx, check, name, token)
	if err != nil {
		return fmt.Errorf("check the token: %w", err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("check the token: %w", err)
	}
	if rows == 0 {
		return fmt.Errorf("%w: %s, %d", ErrStale, name, token)
	}
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// ignoreDone leaves out the error of a transaction that is over, as after a Commit that failed.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}
