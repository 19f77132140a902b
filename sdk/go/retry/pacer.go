package retry

import (
	"context"
	"fmt"
	"sync"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// A Pacer is a limit of this process that callers wait for, first come, first served: every caller takes its place when
// it asks, so that none is overtaken and nothing has to be woken.
type Pacer struct {
	limit  *tollgate.Limit
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	mutex  sync.Mutex
	fullAt time.Time
}

// NewPacer makes a pacer.
func NewPacer(limit *tollgate.Limit) *Pacer {
	return &Pacer{limit: limit, now: time.Now, sleep: sleep}
}

// Acquire waits until the limit has room. If that is after the deadline of the context, it fails at once and takes
// nothing; a caller that is cancelled while it waits has used its units.
func (p *Pacer) Acquire(ctx context.Context, units uint64) error {
	if units > p.limit.Capacity() {
		return fmt.Errorf("retry: %d units never fit a limit of %d at once", units, p.limit.Capacity())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	wait, ok := p.take(ctx, units)
	if !ok {
		return context.DeadlineExceeded
	}
	return p.sleep(ctx, wait)
}

func (p *Pacer) take(ctx context.Context, units uint64) (time.Duration, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.now()
	fullAt := p.fullAt
	if fullAt.Before(now) {
		fullAt = now
	}
	fullAt = fullAt.Add(p.limit.Interval() * time.Duration(units))
	wait := max(0, fullAt.Sub(now)-p.limit.Interval()*time.Duration(p.limit.Capacity()))
	if deadline, ok := ctx.Deadline(); ok && now.Add(wait).After(deadline) {
		return 0, false
	}
	p.fullAt = fullAt
	return wait, true
}
