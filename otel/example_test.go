package latchkeyotel_test

import (
	"context"
	"fmt"
	"log"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/latchkey-go/latchkey"
	latchkeyotel "github.com/latchkey-go/latchkey/otel"
	"github.com/latchkey-go/latchkey/rlock"
)

// A client whose metrics are read here. A program gives its meter provider an exporter.
func Example() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	hooks, err := latchkeyotel.Observer(latchkeyotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		log.Panic(err)
	}
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithObserver(hooks))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	err = rlock.Do(ctx, c, "orders:42", func(context.Context, *latchkey.Hold) error { return nil })
	if err != nil {
		log.Panic(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Panic(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Unit)
	}
	// Unordered output:
	// latchkey.lock.wait.duration s
	// latchkey.lock.hold.duration s
	// latchkey.lock.holds {hold}
}
