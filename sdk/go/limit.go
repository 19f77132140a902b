package tollgate

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"time"
)

// A Limit allows Requests units per Window, at most Burst at once (0: Requests).
//
// It is GCRA in integer nanoseconds, as the server computes it. The state of a bucket is one time, the moment at which
// it will be full again. A request of cost n pushes it n intervals ahead and passes while it then lies at most burst
// intervals ahead of now. Nothing is rounded.
type Limit struct {
	requests uint64
	window   time.Duration
	burst    uint64
	interval uint64
}

// NewLimit makes a limit. No requests, or a burst that is given as 0 by WithBurst, refuse everything.
func NewLimit(requests uint64, window time.Duration) (*Limit, error) {
	return newLimit(requests, window, requests)
}

// WithBurst is the same limit with another capacity.
func (l *Limit) WithBurst(burst uint64) (*Limit, error) {
	return newLimit(l.requests, l.window, burst)
}

func newLimit(requests uint64, window time.Duration, burst uint64) (*Limit, error) {
	if window <= 0 {
		return nil, errors.New("tollgate: the window of a limit is longer than nothing")
	}
	limit := &Limit{requests: requests, window: window, burst: burst, interval: 1}
	if requests == 0 || burst == 0 {
		limit.burst = 0
		return limit, nil
	}
	limit.interval = uint64(window) / requests
	if limit.interval == 0 {
		return nil, errors.New("tollgate: a limit allows at most one unit in a nanosecond")
	}
	if high, low := bits.Mul64(limit.interval, burst); high > 0 || low > math.MaxInt64 {
		return nil, errors.New("tollgate: the bucket takes more than 292 years to fill")
	}
	return limit, nil
}

var limitText = regexp.MustCompile(`^([0-9]{1,15})/([0-9]{1,9}(?:ms|s|m|h))$`)

// ParseLimit reads "5/1m": requests, and the window with its unit (ms, s, m, h).
func ParseLimit(text string) (*Limit, error) {
	match := limitText.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("tollgate: %q is not a limit; write 100/1m: requests, and a window in ms, s, m or h", text)
	}
	requests, err := strconv.ParseUint(match[1], 10, 64)
	if err != nil {
		return nil, err
	}
	window, err := time.ParseDuration(match[2])
	if err != nil {
		return nil, err
	}
	return NewLimit(requests, window)
}

// Capacity is how many units fit at once.
func (l *Limit) Capacity() uint64 { return l.burst }

// Interval is the time in which one unit is returned.
func (l *Limit) Interval() time.Duration { return time.Duration(l.interval) }

// An Outcome is what a bucket says to one request.
type Outcome struct {
	Allowed    bool
	Limit      uint64
	Remaining  uint64
	RetryAfter time.Duration
	// Never is true if waiting does not help.
	Never      bool
	ResetAfter time.Duration
	// NextUnit is the time until there is one more unit; 0 if the bucket is full.
	NextUnit time.Duration
}

// Take decides a request of a bucket that will be full at fullAt, and returns the bucket's next state: both are
// nanoseconds of any clock. A bucket that is full by now, such as 0, is an unused one.
func (l *Limit) Take(fullAt, now, cost uint64) (Outcome, uint64) {
	tolerance := l.interval * l.burst
	ahead := uint64(0)
	if fullAt > now && l.burst > 0 {
		// A clock that stepped back lets no caller wait for longer than one full bucket.
		ahead = min(fullAt-now, tolerance)
	}
	high, needed := bits.Mul64(l.interval, cost)
	outcome := Outcome{Limit: l.burst, Never: cost > l.burst || l.burst == 0}
	outcome.Allowed = !outcome.Never && high == 0 && needed <= tolerance-ahead
	if outcome.Allowed {
		ahead += needed
	} else if !outcome.Never {
		outcome.RetryAfter = time.Duration(ahead + needed - tolerance)
	}
	outcome.Remaining = (tolerance - ahead) / l.interval
	outcome.ResetAfter = time.Duration(ahead)
	if ahead > 0 {
		outcome.NextUnit = time.Duration(ahead + l.interval*(outcome.Remaining+1) - tolerance)
	}
	outcome.Never = outcome.Never && !outcome.Allowed
	if cost == 0 || ahead == 0 {
		return outcome, fullAt
	}
	return outcome, saturatingAdd(now, ahead)
}

func saturatingAdd(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}
