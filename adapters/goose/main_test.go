package latchkeygoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	adapter "github.com/latchkey-go/latchkey/adapters/goose"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// TestMain also looks for goroutines that are left behind, by goleak.
func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// openFile opens a database of SQLite.
func openFile(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
}

// provide returns a provider with one migration.
func provide(db *sql.DB, migrate func(context.Context, *sql.DB) error, opts ...goose.ProviderOption) (*goose.Provider, error) {
	opts = append(opts, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunDB: migrate}, nil)))
	return goose.NewProvider(goose.DialectSQLite3, db, nil, opts...)
}

// worker is a process that migrates a database: address of the server, and the file. The migration waits for
// the test.
func worker(args []string) {
	lock, err := fairlock.New(locktest.Connected(args[0]), "migrations")
	locktest.Check(err)
	db, err := openFile(args[1])
	locktest.Check(err)
	p, err := provide(db, func(ctx context.Context, db *sql.DB) error {
		fmt.Println("migrates")
		redistest.Told()
		_, err := db.ExecContext(ctx, "CREATE TABLE stock (n INT)") // a second one fails
		return err
	}, goose.WithLocker(adapter.New(lock)))
	locktest.Check(err)
	results, err := p.Up(context.Background())
	locktest.Check(err)
	fmt.Println("applied", len(results))
	select {}
}
