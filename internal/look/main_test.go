package look

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// limit is how long what must happen may take, on a machine that is busy.
const limit = 2 * time.Minute

func TestMain(m *testing.M) { redistest.Main(m) }
