package latchkeycertmagic_test

import (
	"context"
	"fmt"
	"log"
	"os"

	host "github.com/caddyserver/certmagic"

	"github.com/latchkey-go/latchkey"
	latchkeycertmagic "github.com/latchkey-go/latchkey/adapters/certmagic"
)

// Certificates of several machines, in a directory that they share.
func Example() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	locker, err := latchkeycertmagic.New(c)
	if err != nil {
		log.Panic(err)
	}
	directory, err := os.MkdirTemp("", "certificates") // yours stays
	if err != nil {
		log.Panic(err)
	}
	defer os.RemoveAll(directory)
	storage := locker.Storage(&host.FileStorage{Path: directory})
	host.Default.Storage = storage // and all configurations have it

	// What certmagic does when a certificate is due:
	ctx := context.Background()
	if err := storage.Lock(ctx, "issue_cert_example.com"); err != nil {
		log.Panic(err)
	}
	fmt.Println(storage.Store(ctx, "certificates/example.com", []byte("...")))
	fmt.Println(storage.Unlock(ctx, "issue_cert_example.com")) // ErrLost if it may not have been alone
	// Output:
	// <nil>
	// <nil>
}
