package tollgate

import (
	"sync"
	"time"
)

const (
	failuresMax = 5
	pauseMin    = time.Second
	pauseMax    = 30 * time.Second
)

// breaker makes no calls to a server that does not answer: it opens after failuresMax failures in a row, then lets one
// call pass after each pause.
type breaker struct {
	clock func() time.Time

	mutex    sync.Mutex
	failures int
	pause    time.Duration
	tryAt    time.Time
	probing  bool
}

// result is what became of a call that the breaker admitted.
type result int

const (
	succeeded result = iota
	failed
	abandoned // the caller left before it was known
)

// admit returns a function to tell what became of the call, or nil while no call is to be made.
func (b *breaker) admit() func(result) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	probe := b.failures >= failuresMax
	if probe && (b.probing || b.clock().Before(b.tryAt)) {
		return nil
	}
	b.probing = b.probing || probe
	return func(of result) { b.report(of, probe) }
}

func (b *breaker) report(of result, probe bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if probe {
		b.probing = false
	}
	switch of {
	case abandoned:
	case succeeded:
		b.failures, b.pause = 0, pauseMin
	case failed:
		wasOpen := b.failures >= failuresMax
		b.failures = min(b.failures+1, failuresMax)
		if probe && wasOpen {
			b.pause = min(2*b.pause, pauseMax)
		}
		// Calls that were already under way when it opened do not prolong the pause.
		if b.failures == failuresMax && (probe || !wasOpen) {
			b.pause = max(b.pause, pauseMin)
			b.tryAt = b.clock().Add(b.pause)
		}
	}
}
