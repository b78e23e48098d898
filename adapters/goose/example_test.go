package latchkeygoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/latchkey-go/latchkey"
	latchkeygoose "github.com/latchkey-go/latchkey/adapters/goose"
	"github.com/latchkey-go/latchkey/fairlock"
)

// Each process runs this when it starts, and one at a time migrates.
func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := fairlock.New(c, "migrations:shop") // one name for each database
	if err != nil {
		log.Panic(err)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)                                                                             // this one is in the memory of its connection
	files := fstest.MapFS{"1_stock.sql": {Data: []byte("-- +goose Up\nCREATE TABLE stock (n INT);")}} // yours is an embed.FS
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithLocker(latchkeygoose.New(lock)))
	if err != nil {
		log.Panic(err)
	}
	for range 2 {
		results, err := provider.Up(ctx)
		fmt.Println(len(results), err)
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
}
