// Package docs_test holds what the documents say against the code, and tests the rules that all files keep. Its tests run in the root of the repository.
package docs_test

import (
	"os"
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	redistest.Main(m)
}
