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

// OnRedis runs the test on the real Redis or Valkey of a URL, as latchkey.Open takes it, and not on the
// embedded server. The names of the test get a prefix of their own there ([Server.Prefix]), and keys that
// have it are removed when the test ends. Nothing else is touched. With an empty URL the server is embedded:
// so the URL may come from the environment, as in OnRedis(os.Getenv("TEST_REDIS")).
//
// What differs there: [Server.Pass] takes the time that it passes. Everything else goes wrong in the same
// way, as it happens between the clients and the server.
func OnRedis(url string) Option { return func(c *config) { c.url = url } }

// WithClass says of which class a name is, for the order of locks. A name whose class is the name itself has
// an order of its own. Default, and nil: [Class].
func WithClass(class func(name string) string) Option { return func(c *config) { c.class = class } }

// WithoutOrder switches the check of the order of locks off. Default: it is on.
func WithoutOrder() Option { return func(c *config) { c.withoutRule = true } }

// AcrossTests compares the order of locks with those of all tests of the binary that have this option. The
// test that comes later fails. Default: with those of the same test.
func AcrossTests() Option { return func(c *config) { c.across = true } }

// WithoutLeakCheck does not look for goroutines that are left behind when the test ends. It is for tests that
// run at the same time as clients of latchkey that were not opened by this kit. Default: it looks.
func WithoutLeakCheck() Option { return func(c *config) { c.leaky = true } }
