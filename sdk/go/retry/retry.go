// Package retry is the side of callers of other people's limited APIs: calls that are told "later" are repeated, when
// it is safe and not too often.
//
//	client := &http.Client{Transport: retry.New(http.DefaultTransport, retry.Options{})}
//
// The package knows nothing of Tollgate's server.
package retry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand"
	"net/http"
	"strings"
	"time"
)

// ErrThrottled is a call that was not made, because the API refuses most calls at the moment.
var ErrThrottled = errors.New("retry: not called, because the API refuses most calls at the moment")

// Options of a Transport. The zero value is: 3 attempts within a minute, full jitter from 100 ms to 20 s.
type Options struct {
	Attempts int
	Base     time.Duration
	Cap      time.Duration
	// Deadline of all attempts together. That of the context counts too.
	Deadline time.Duration
	// EqualJitter waits half to one and a half of the backoff instead of nothing to all of it.
	EqualJitter bool
	// Adaptive refuses calls here that an overloaded API would refuse.
	Adaptive bool
	// Now, Sleep and Random replace the clock and the dice in tests.
	Now    func() time.Time
	Sleep  func(context.Context, time.Duration) error
	Random func() float64
}

// A Transport is an http.RoundTripper that repeats calls to one API. Its budget is that of all its calls.
type Transport struct {
	next     http.RoundTripper
	options  Options
	budget   *budget
	adaptive *adaptive
}

// New makes a transport over another one, http.DefaultTransport if nil.
func New(next http.RoundTripper, options Options) *Transport {
	if next == nil {
		next = http.DefaultTransport
	}
	options.Attempts = or(options.Attempts, 3)
	options.Base = or(options.Base, 100*time.Millisecond)
	options.Cap = or(options.Cap, 20*time.Second)
	options.Deadline = or(options.Deadline, time.Minute)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Sleep == nil {
		options.Sleep = sleep
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	transport := &Transport{next: next, options: options, budget: &budget{now: options.Now, balance: budgetMax}}
	if options.Adaptive {
		transport.adaptive = &adaptive{now: options.Now, random: options.Random}
	}
	return transport
}

// RoundTrip makes a call, and repeats it.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	start := t.options.Now()
	t.budget.earn()
	next := request
	for attempt := 1; ; attempt++ {
		if t.adaptive != nil && t.adaptive.refuses() {
			closeBody(next)
			return nil, ErrThrottled
		}
		response, err := t.next.RoundTrip(next)
		if err != nil {
			return nil, err
		}
		later := saysLater(response)
		if t.adaptive != nil {
			t.adaptive.answered(!later)
		}
		if !later || attempt >= t.options.Attempts || !isSafe(request, response.StatusCode) {
			return response, nil
		}
		wait := t.wait(attempt, response.Header)
		if t.late(request, start, wait) {
			return response, nil
		}
		again, ok := repeat(request)
		if !ok || !t.budget.spend() {
			return response, nil
		}
		discard(response)
		if err := t.options.Sleep(request.Context(), wait); err != nil {
			closeBody(again)
			return nil, err
		}
		next = again
	}
}

func (t *Transport) wait(attempt int, header http.Header) time.Duration {
	draw := t.options.Random()
	if wait, ok := named(header, t.options.Now()); ok {
		return wait + time.Duration(draw*float64(wait)/10)
	}
	backoff := t.options.Cap
	if shift := attempt - 1; shift < 32 && t.options.Base < t.options.Cap>>shift {
		backoff = t.options.Base << shift
	}
	if t.options.EqualJitter {
		return time.Duration(float64(backoff) * (0.5 + draw))
	}
	return time.Duration(float64(backoff) * draw)
}

// late is true if the wait would end after the deadline.
func (t *Transport) late(request *http.Request, start time.Time, wait time.Duration) bool {
	now := t.options.Now()
	if now.Sub(start)+wait > t.options.Deadline {
		return true
	}
	deadline, ok := request.Context().Deadline()
	return ok && time.Until(deadline) < wait
}

// isSafe is true if a repetition cannot do twice what was done once: 429 is an answer before anything was done.
func isSafe(request *http.Request, status int) bool {
	switch request.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return status == http.StatusTooManyRequests || request.Header.Get("Idempotency-Key") != ""
}

// repeat is the request with its body from the beginning, if that can be had.
func repeat(request *http.Request) (*http.Request, bool) {
	again := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return again, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	again.Body = body
	return again, err == nil
}

const bodyBytesMax = 64 << 10

// saysLater is true if the same call may succeed later.
func saysLater(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusForbidden:
		return strings.TrimSpace(response.Header.Get("X-RateLimit-Remaining")) == "0"
	case http.StatusBadRequest:
		return namesThrottling(response)
	default:
		return false
	}
}

// namesThrottling reads the beginning of the body, and puts it back.
func namesThrottling(response *http.Response) bool {
	if response.Body == nil {
		return false
	}
	beginning, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax))
	rest := response.Body
	if err != nil {
		rest = io.NopCloser(errorReader{err})
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(beginning), rest), response.Body}
	return bytes.Contains(beginning, []byte("ThrottlingException"))
}

type errorReader struct{ err error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.err }

// discard reads what is short, so that the connection can be used again.
func discard(response *http.Response) {
	if response.Body != nil {
		_, _ = io.CopyN(io.Discard, response.Body, bodyBytesMax) // an error ends it as well
		_ = response.Body.Close()
	}
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func or[T int | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
