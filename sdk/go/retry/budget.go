package retry

import (
	"sync"
	"time"
)

const (
	budgetMax = 100
	retryCost = 10
)

// budget keeps retries to a tenth of the calls, or one a second.
type budget struct {
	now     func() time.Time
	mutex   sync.Mutex
	balance int
	last    time.Time
}

func (b *budget) earn() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.balance = min(b.balance+1, budgetMax)
}

func (b *budget) spend() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	now := b.now()
	rested := b.last.IsZero() || now.Sub(b.last) >= time.Second
	if b.balance >= retryCost {
		b.balance -= retryCost
	} else if !rested {
		return false
	}
	b.last = now
	return true
}
