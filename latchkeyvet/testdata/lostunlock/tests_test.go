package lostunlock

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey"
)

func lockForTest(t *testing.T, lock *latchkey.Lock) {
	_, err := lock.Lock(context.Background()) // the client ends with the test
	if err != nil {
		t.Fatal(err)
	}
}
