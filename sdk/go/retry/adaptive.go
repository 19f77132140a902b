package retry

import (
	"sync"
	"time"
)

const (
	accepting      = 2 // K: requests for each accept that are let through
	adaptiveWindow = 2 * time.Minute
)

// adaptive refuses calls with probability max(0, (requests - K accepts) / (requests + 1)), counted over two minutes in
// slices of a second, so that its size does not depend on the load.
type adaptive struct {
	now    func() time.Time
	random func() float64

	mutex    sync.Mutex
	slices   []slice
	requests int
	accepts  int
}

type slice struct {
	begin             time.Time
	requests, accepts int
}

// refuses is asked before an attempt, which counts as a request either way.
func (a *adaptive) refuses() bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	current := a.current()
	excess := a.requests - accepting*a.accepts
	refused := excess > 0 && a.random() < float64(excess)/float64(a.requests+1)
	current.requests++
	a.requests++
	return refused
}

// answered says what came of an attempt that was made.
func (a *adaptive) answered(accepted bool) {
	if !accepted {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.current().accepts++
	a.accepts++
}

func (a *adaptive) current() *slice {
	now := a.now()
	old := 0
	for old < len(a.slices) && now.Sub(a.slices[old].begin) >= adaptiveWindow {
		a.requests -= a.slices[old].requests
		a.accepts -= a.slices[old].accepts
		old++
	}
	a.slices = append(a.slices[:0], a.slices[old:]...)
	begin := now.Truncate(time.Second)
	if len(a.slices) == 0 || a.slices[len(a.slices)-1].begin.Before(begin) {
		a.slices = append(a.slices, slice{begin: begin})
	}
	return &a.slices[len(a.slices)-1]
}
