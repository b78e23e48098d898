package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/leader"
)

func Example() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	ctx := context.Background()

	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	l, err := leader.New(c, "scheduler")
	if err != nil {
		log.Panic(err)
	}
	done := errors.New("all is scheduled")
	err = l.Run(ctx, func(ctx context.Context, term leader.Term) error {
		who, err := l.Leader(ctx)
		fmt.Println(who.Token == term.Token(), err)
		return done
	})
	fmt.Println(errors.Is(err, done))
	who, err := l.Leader(ctx)
	fmt.Println("nobody leads:", who.Token == 0, err)
	// Output:
	// true <nil>
	// true
	// nobody leads: true <nil>
}
