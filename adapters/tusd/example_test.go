package latchkeytusd_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/latchkey-go/latchkey"
	latchkeytusd "github.com/latchkey-go/latchkey/adapters/tusd"
)

// One instance of several that share a directory.
func Example() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	locker, err := latchkeytusd.New(c)
	if err != nil {
		log.Panic(err)
	}
	directory, err := os.MkdirTemp("", "uploads") // yours stays
	if err != nil {
		log.Panic(err)
	}
	defer os.RemoveAll(directory)
	composer := handler.NewStoreComposer()
	filestore.New(directory).UseIn(composer)
	locker.UseIn(composer)
	uploads, err := handler.NewHandler(handler.Config{
		BasePath: "/files/", StoreComposer: composer,
		Logger: quiet, GracefulRequestCompletionTimeout: time.Millisecond, // for this example
	})
	if err != nil {
		log.Panic(err)
	}

	// The beginning of an upload:
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
	request.Header.Set("Tus-Resumable", "1.0.0")
	request.Header.Set("Upload-Length", "10")
	response := httptest.NewRecorder()
	uploads.ServeHTTP(response, request)
	fmt.Println(response.Code)
	// Output: 201
}
