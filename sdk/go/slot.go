package tollgate

import (
	"context"
	"log"
	"sync"
	"sync/atomic"
	"time"
)

// defaultTTL is that of a slot that does not say it.
const defaultTTL = 30 * time.Second

// ttlMax bounds what a server may say, far above what a rule may.
const ttlMax = 24 * time.Hour

// A Slot of a rule that counts requests in flight, or the refusal of one. It renews itself until it is closed.
type Slot struct {
	Decision *Decision
	client   *Client
	stop     chan struct{}
	close    sync.Once
	released bool
	lost     atomic.Bool
}

// AcquireSlot asks for a slot. If the Decision allows it, the work may go on until Close; if not, Close does nothing.
func (c *Client) AcquireSlot(ctx context.Context, request Request) (*Slot, error) {
	decision, err := c.decide(ctx, "/v1/slots/acquire", request)
	if err != nil {
		return nil, err
	}
	slot := &Slot{Decision: decision, client: c, stop: make(chan struct{})}
	if slot.isHeld() {
		go slot.renewUntilClosed()
	}
	return slot, nil
}

// Lost is true once the server said that the slot has expired: the work has no claim any more.
func (s *Slot) Lost() bool { return s.lost.Load() }

// Close gives the slot back, in a time of its own, so that it is given back also when the context of the work has
// ended. It returns whether the slot was still held. If the server is away, the slot expires by itself.
func (s *Slot) Close() bool {
	s.close.Do(func() {
		close(s.stop)
		if !s.isHeld() {
			return
		}
		released, err := s.client.ReleaseSlot(context.Background(), s.Decision.Slot)
		if err != nil {
			log.Printf("a slot was not released and expires by itself: %v", err)
		}
		s.released = released
	})
	return s.released
}

// ReleaseSlot releases a slot by its receipt; a Slot does that itself.
func (c *Client) ReleaseSlot(ctx context.Context, slot string) (bool, error) {
	var result struct {
		Released bool `json:"released"`
	}
	err := c.post(ctx, "/v1/slots/release", map[string]string{"slot": slot}, &result)
	return result.Released, err
}

// RenewSlot renews a slot by its receipt; a Slot does that itself.
func (c *Client) RenewSlot(ctx context.Context, slot string) (bool, error) {
	var result struct {
		Renewed bool `json:"renewed"`
	}
	err := c.post(ctx, "/v1/slots/renew", map[string]string{"slot": slot}, &result)
	return result.Renewed, err
}

func (s *Slot) isHeld() bool { return s.Decision.Allowed && s.Decision.Slot != "" }

func (s *Slot) renewUntilClosed() {
	s.client.renewUntil(s.stop, s.Decision.Slot, s.Decision.TTLMS, func() { s.lost.Store(true) })
}

// KeepReservation renews the slots of a reservation until the returned function is called, which is to be done before
// it is settled. A reservation without slots needs no renewal.
func (c *Client) KeepReservation(decision *Decision) (stop func()) {
	if decision.Reservation == "" || decision.TTLMS <= 0 {
		return func() {}
	}
	stopped := make(chan struct{})
	go c.renewUntil(stopped, decision.Reservation, decision.TTLMS, func() {})
	return sync.OnceFunc(func() { close(stopped) })
}

// renewUntil renews at every third of the time to live: two renewals may fail before the slot is lost.
func (c *Client) renewUntil(stop <-chan struct{}, receipt string, ttlMS int64, lost func()) {
	ttl := defaultTTL
	if ttlMS > 0 {
		ttl = time.Duration(min(ttlMS, int64(ttlMax/time.Millisecond))) * time.Millisecond
	}
	ticker := time.NewTicker(max(ttl/3, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		renewed, err := c.RenewSlot(context.Background(), receipt)
		if err != nil {
			log.Printf("a slot was not renewed: %v", err)
		} else if !renewed {
			lost()
			return
		}
	}
}
