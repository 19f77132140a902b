package tollgate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// keysMax is how many buckets the fallback limiter has at most.
const keysMax = 10_000

// fallbackLimiter is the limiter of this process, for while the server is away.
//
// A bucket is dropped only when it equals an unused one; while there is none to drop, new keys share a bucket, so that a
// flood of keys can neither take memory nor let others pass for free. Keys are not kept, only their keyed digests.
type fallbackLimiter struct {
	limit *Limit
	clock func() time.Time
	start time.Time
	salt  [32]byte

	mutex     sync.Mutex
	fullAt    map[[16]byte]uint64
	nextSweep uint64
}

func newFallbackLimiter(limit *Limit, clock func() time.Time) (*fallbackLimiter, error) {
	// Times are counted from a minute ago, so that no bucket's is the 0 of an unused one.
	start := clock().Add(-time.Minute)
	limiter := &fallbackLimiter{limit: limit, clock: clock, start: start, fullAt: map[[16]byte]uint64{}}
	_, err := rand.Read(limiter.salt[:])
	return limiter, err
}

// decide decides one request of a key, and records it unless it only peeks.
func (f *fallbackLimiter) decide(key string, cost uint64, peek bool) Outcome {
	digest := hmac.New(sha256.New, f.salt[:])
	digest.Write([]byte(key))
	name := [16]byte(digest.Sum(nil)[:16])
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := uint64(max(0, f.clock().Sub(f.start))) // monotonic
	name = f.bucket(name, now)
	outcome, after := f.limit.Take(f.fullAt[name], now, cost)
	if !peek && after > now {
		f.fullAt[name] = after
	}
	return outcome
}

// overflow is the bucket of new keys while there is no room.
var overflow [16]byte

func (f *fallbackLimiter) bucket(name [16]byte, now uint64) [16]byte {
	if _, known := f.fullAt[name]; known || len(f.fullAt) < keysMax {
		return name
	}
	if now >= f.nextSweep {
		f.sweep(now)
	}
	if len(f.fullAt) < keysMax {
		return name
	}
	return overflow
}

// sweep drops what equals an unused bucket. Nothing can be dropped before the first of the others is full, so that
// there is no sweep for each request.
func (f *fallbackLimiter) sweep(now uint64) {
	earliest := uint64(0)
	for name, fullAt := range f.fullAt {
		if fullAt <= now {
			delete(f.fullAt, name)
		} else if earliest == 0 || fullAt < earliest {
			earliest = fullAt
		}
	}
	f.nextSweep = max(earliest, now)
}
