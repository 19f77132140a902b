package tollgate

import (
	"strconv"
	"testing"
	"time"
)

// fakeClock moves when a test says so.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time          { return c.now }
func (c *fakeClock) pass(span time.Duration) { c.now = c.now.Add(span) }

func newFakeClock() *fakeClock { return &fakeClock{now: time.Unix(1_800_000_000, 0)} }

func newLimiter(t *testing.T, text string, clock *fakeClock) *fallbackLimiter {
	t.Helper()
	limit, err := ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := newFallbackLimiter(limit, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func TestFiveAMinuteIsFiveAtOnceAndOneEveryTwelveSeconds(t *testing.T) {
	clock := newFakeClock()
	limiter := newLimiter(t, "5/1m", clock)
	for index := range 6 {
		if outcome := limiter.decide("a", 1, false); outcome.Allowed != (index < 5) {
			t.Errorf("%d: %+v", index, outcome)
		}
	}
	if wait := limiter.decide("a", 1, false).RetryAfter; wait != 12*time.Second {
		t.Error(wait)
	}
	clock.pass(12 * time.Second)
	if !limiter.decide("a", 1, false).Allowed || limiter.decide("a", 1, false).Allowed || !limiter.decide("b", 1, true).Allowed {
		t.Error("one comes back every twelve seconds")
	}
}

func TestAFloodOfKeysIsBoundedAndFreesNoKey(t *testing.T) {
	clock := newFakeClock()
	limiter := newLimiter(t, "1/1m", clock)
	limiter.decide("victim", 1, false)
	allowed := 0
	for number := range 3 * keysMax {
		if limiter.decide(strconv.Itoa(number), 1, false).Allowed {
			allowed++
		}
	}
	if allowed != keysMax || len(limiter.fullAt) > keysMax+1 {
		t.Errorf("%d allowed, %d buckets", allowed, len(limiter.fullAt))
	}
	if limiter.decide("victim", 1, false).Allowed {
		t.Error("a flood freed a key")
	}
	clock.pass(time.Minute)
	limiter.decide("later", 1, false)
	if len(limiter.fullAt) > 2 {
		t.Errorf("%d buckets are kept that equal unused ones", len(limiter.fullAt))
	}
}

func TestWrongLimitsAreRefused(t *testing.T) {
	for _, text := range []string{"5", "5/m", "-5/1m", "5/1", "5/0s", "1.5/1m", " 5/1m", "99999999999999/1s"} {
		if limit, err := ParseLimit(text); err == nil {
			t.Errorf("%q is %+v", text, limit)
		}
	}
}

func TestTheBreakerOpensAfterFiveFailuresAndDoublesItsPause(t *testing.T) {
	clock := newFakeClock()
	breaker := &breaker{clock: clock.Now, pause: pauseMin}
	fail := func() bool {
		report := breaker.admit()
		if report != nil {
			report(failed)
		}
		return report != nil
	}
	for index := range 7 {
		if fail() != (index < 5) {
			t.Errorf("call %d", index)
		}
	}
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		clock.pass(pause*time.Second - 1)
		if fail() {
			t.Errorf("tried before %d s", pause)
		}
		clock.pass(1)
		if !fail() || fail() {
			t.Errorf("not tried once after %d s", pause)
		}
	}
}

func TestOneCallTriesAndItsSuccessClosesTheBreaker(t *testing.T) {
	clock := newFakeClock()
	breaker := &breaker{clock: clock.Now, pause: pauseMin}
	for range 5 {
		breaker.admit()(failed)
	}
	clock.pass(time.Second)
	probe := breaker.admit()
	if probe == nil || breaker.admit() != nil {
		t.Fatal("one call tries")
	}
	probe(abandoned)
	probe = breaker.admit()
	probe(succeeded)
	if breaker.admit() == nil {
		t.Error("it is closed after a success")
	}
}
