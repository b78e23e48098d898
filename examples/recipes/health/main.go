// Readiness over HTTP, and what to count: how long locks were waited for, and which holds were lost.
package main

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	waited, lost := expvar.NewInt("locks_waited_ms"), expvar.NewInt("locks_lost")
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithLazyConnect(), latchkey.WithObserver(latchkey.Observer{
		Acquired: func(e latchkey.Event) { waited.Add(e.Waited.Milliseconds()) },
		Lost:     func(latchkey.Event) { lost.Add(1) },
	}))
	if err != nil {
		return err
	}
	defer c.Close()
	http.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := c.Check(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	listener, err := net.Listen("tcp", os.Getenv("LISTEN")) // empty: any free port
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	fmt.Println("listens at", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
