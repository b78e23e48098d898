package latchkeytest

// Option configures a [Server]. A nil one does nothing.
type Option func(*config)

type config struct {
	url         string // of a real Redis; empty: embedded
	class       func(name string) string
	withoutRule bool // of the order of locks
	across      bool
	leaky       bool
}

// OnRedis runs the test on a real Redis or Valkey. The URL is as for latchkey.Open. The names of the test get
// a prefix of their own ([Server.Prefix]). Keys with that prefix are removed when the test ends; nothing else
// is touched. With an empty URL the server is embedded, so the URL may come from the environment:
// OnRedis(os.Getenv("TEST_REDIS")).
//
// On a real server a [Server.Pass] of d takes d. All other faults are the same, because they happen between
// the clients and the server.
func OnRedis(url string) Option { return func(c *config) { c.url = url } }

// WithClass sets the class of each name, for the order of locks. If a name is its own class, it has an order
// of its own. Default, and for nil: [Class].
func WithClass(class func(name string) string) Option { return func(c *config) { c.class = class } }

// WithoutOrder switches the check of the order of locks off. Default: on.
func WithoutOrder() Option { return func(c *config) { c.withoutRule = true } }

// AcrossTests compares the order of locks over all tests of the binary that have this option. The later test
// fails. Default: each test by itself.
func AcrossTests() Option { return func(c *config) { c.across = true } }

// WithoutLeakCheck does not look for goroutines that are left when the test ends. It is for tests that run at
// the same time as clients of latchkey that this kit did not open. Default: the kit looks.
func WithoutLeakCheck() Option { return func(c *config) { c.leaky = true } }
