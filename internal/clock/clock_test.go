package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// reader reads a clock that is set, over a network with trips of some length.
type reader struct {
	Clock
	off time.Duration
}

// read returns what a question shows that takes so long until the server reads its clock, and so long after
// that.
func (r *reader) read(there, back time.Duration) Jump {
	sent := time.Now()
	time.Sleep(there)
	shown := time.Now().Add(r.off).UnixMicro()
	time.Sleep(back)
	return r.Record(shown, sent)
}

// A jump is what no length of the trips explains, and its size is bounded by them.
// Rule 24.
func TestJumpsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		require.Zero(t, r.read(0, time.Second), "the first reading says nothing")
		require.Zero(t, r.read(time.Second, 0))
		require.Zero(t, r.read(0, time.Second))
		require.Zero(t, r.read(time.Millisecond, time.Millisecond))
		r.off += 10 * time.Second
		j := r.read(time.Millisecond, 3*time.Millisecond)
		require.LessOrEqual(t, j.Least, int64(10e6))
		require.GreaterOrEqual(t, j.Most, int64(10e6))
		require.InDelta(t, 10e6, j.Least, 10e3)
		require.InDelta(t, 10e6, j.Most, 10e3)
		require.Zero(t, r.read(0, 0), "it is told once")
		r.off -= time.Hour
		j = r.read(0, 5*time.Millisecond)
		require.InDelta(t, -3600e6, j.Least, 10e3)
		require.LessOrEqual(t, j.Most, j.Least)
		r.off += 15 * time.Millisecond
		require.Zero(t, r.read(0, 0), "what is as small does not count")
	})
}

// Two clocks never run alike: what adds up while nobody reads is no jump.
func TestDriftIsNoJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		r.read(0, 0)
		time.Sleep(time.Hour)
		r.off += 3 * time.Second
		require.Zero(t, r.read(0, 0))
		time.Sleep(time.Second)
		r.off += 3 * time.Second
		require.NotZero(t, r.read(0, 0))
	})
}

// Answers are compared in the order of the questions, in whatever order they are looked at.
func TestReadingsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		r.read(0, 0)
		time.Sleep(time.Second)
		asked, before := time.Now(), time.Now().UnixMicro()
		time.Sleep(time.Millisecond)
		r.off += time.Hour
		require.NotZero(t, r.read(0, 0))
		require.Zero(t, r.Record(before, asked), "it was overtaken")
		time.Sleep(time.Second)
		require.Zero(t, r.read(0, 0))
	})
}

// fits is FitsToken without what it says of reckoning.
func (r *reader) fits(token int64, sent time.Time) bool {
	fits, _ := r.FitsToken(token, sent)
	return fits
}

// Tokens tell the clock as long as a reading says that they do, and says it to a few milliseconds.
func TestTokensTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		tells := func() bool {
			fits, tells := r.FitsToken(time.Now().UnixMicro(), time.Now())
			require.True(t, fits)
			return tells
		}
		require.True(t, tells(), "a name that is used once needs no reading")
		require.False(t, tells(), "there was none")
		r.read(50*time.Millisecond, 50*time.Millisecond)
		require.False(t, tells(), "it took too long")
		r.read(time.Millisecond, time.Millisecond)
		require.True(t, tells())
	})
}

// What tokens and messages say is a reason to ask, and no more.
func TestHintsOfAJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		require.True(t, r.FitsMessage(1), "nothing is known")
		require.True(t, r.fits(time.Now().UnixMicro(), time.Now()), "it is all that is known")
		require.False(t, r.fits(time.Now().Add(-time.Minute).UnixMicro(), time.Now()), "one of the two is no reading")
		r.read(0, 0)
		time.Sleep(time.Second)
		now := time.Now()
		require.True(t, r.fits(now.UnixMicro(), now))
		require.True(t, r.fits(now.Add(5*time.Millisecond).UnixMicro(), now), "reserved ahead of the clock")
		require.False(t, r.fits(now.Add(time.Minute).UnixMicro(), now))
		require.False(t, r.fits(now.Add(-time.Minute).UnixMicro(), now))
		require.True(t, r.fits(now.Add(-time.Minute).UnixMicro(), now.Add(-2*time.Minute)), "an answer that took long")
		require.True(t, r.FitsMessage(now.Add(-time.Minute).UnixMicro()), "as a message may")
		require.False(t, r.FitsMessage(now.Add(time.Minute).UnixMicro()))
		require.InDelta(t, now.UnixMicro(), r.At(now), 20e3)
	})
}

// The clock is reckoned for a moment after it was told, by an answer or by a token, and never too high.
// Rule 24.
func TestReckon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{off: time.Hour}
		require.Zero(t, r.Reckon(), "nobody has told it")
		sent := time.Now()
		require.True(t, r.fits(sent.Add(r.off).UnixMicro(), sent))
		require.Zero(t, r.Reckon(), "tokens alone do not tell it")
		r.read(time.Millisecond, 3*time.Millisecond)
		now := func() int64 { return time.Now().Add(r.off).UnixMicro() }
		require.LessOrEqual(t, r.Reckon(), now())
		require.InDelta(t, now(), r.Reckon(), 3000)
		time.Sleep(reckoned - 4*time.Millisecond)
		require.NotZero(t, r.Reckon())
		time.Sleep(time.Millisecond)
		require.Zero(t, r.Reckon(), "it may have been set since")
		sent = time.Now()
		require.True(t, r.fits(now(), sent))
		require.NotZero(t, r.Reckon())
		time.Sleep(reckoned + time.Millisecond)
		require.Zero(t, r.Reckon())
	})
}

// What the clock shows at most grows with the age of the last reading, by what clocks may run apart.
func TestAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{off: time.Hour}
		require.Zero(t, r.AtMost(time.Now()), "nobody has told it")
		r.read(time.Millisecond, 3*time.Millisecond)
		shows := func() int64 { return time.Now().Add(r.off).UnixMicro() }
		require.GreaterOrEqual(t, r.AtMost(time.Now()), shows())
		require.InDelta(t, shows(), r.AtMost(time.Now()), 5000)
		time.Sleep(time.Minute)
		require.GreaterOrEqual(t, r.AtMost(time.Now()), shows()+60_000, "a thousandth of a minute")
		require.InDelta(t, shows()+60_000, r.AtMost(time.Now()), 5000)
	})
}
