// Command metrics shows what Prometheus sees of locks: some goroutines want one lock and some permits, again
// and again, and http://127.0.0.1:9464/metrics tells of it. Beside it is dashboard.json, a dashboard for
// Grafana.
//
//	go run . redis://localhost:6379
//
// The address is that of Redis or Valkey; with none, the server is embedded in the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	latchkeyotel "github.com/latchkey-go/latchkey/otel"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func main() {
	url := ""
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if err := serve(url); err != nil {
		log.Fatal(err)
	}
}

// serve runs until Ctrl-C.
func serve(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:9464")
	if err != nil {
		return err
	}
	fmt.Println("see http://" + listener.Addr().String() + "/metrics")
	return run(ctx, url, listener)
}

// run works and serves the metrics until ctx ends. An empty url is for a server of its own.
func run(ctx context.Context, url string, listener net.Listener) error {
	if url == "" {
		server := miniredis.NewMiniRedis()
		if err := server.Start(); err != nil {
			return err
		}
		defer server.Close()
		url = "redis://" + server.Addr()
	}
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return err
	}
	hooks, err := latchkeyotel.Observer(latchkeyotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))))
	if err != nil {
		return err
	}
	c, err := latchkey.Open(url, latchkey.WithObserver(hooks))
	if err != nil {
		return err
	}
	defer c.Close()
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	var all errgroup.Group
	all.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	for range 8 {
		all.Go(func() error { return untilDone(ctx, work(c)) })
	}
	<-ctx.Done()
	return errors.Join(server.Close(), all.Wait())
}

// work returns what each goroutine does again and again.
func work(c *latchkey.Client) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		err := rlock.Do(ctx, c, "reports", func(ctx context.Context, _ *latchkey.Hold) error { return pause(ctx, 5) })
		if err != nil {
			return err
		}
		return semaphore.Do(ctx, c, "uploads", 1, func(ctx context.Context, _ *semaphore.Permits) error {
			return pause(ctx, 20)
		}, semaphore.WithCapacity(3))
	}
}

func pause(ctx context.Context, most int) error {
	select {
	case <-time.After(time.Duration(rand.IntN(most)) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// untilDone calls f until ctx ends. What comes of that is no error.
func untilDone(ctx context.Context, f func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
