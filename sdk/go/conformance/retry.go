package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/sdk/go/retry"
)

// retryCall is a table of responses, on a clock that only waits and attempts move.
type retryCall struct {
	Options        retryOptions    `json:"options"`
	NowMS          int64           `json:"now_ms"`
	Random         []float64       `json:"random"`
	Responses      []givenResponse `json:"responses"`
	Method         string          `json:"method"`
	IdempotencyKey string          `json:"idempotency_key"`
	Calls          int             `json:"calls"`
	EveryMS        int64           `json:"every_ms"`
}

type retryOptions struct {
	Attempts   int    `json:"attempts"`
	BaseMS     int64  `json:"base_ms"`
	CapMS      int64  `json:"cap_ms"`
	Jitter     string `json:"jitter"`
	DeadlineMS int64  `json:"deadline_ms"`
	Adaptive   bool   `json:"adaptive"`
}

type givenResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	TookMS  int64             `json:"took_ms"`
}

type retryResult struct {
	WaitsMS []int64  `json:"waits_ms"`
	Status  int      `json:"status"`
	Keys    []string `json:"keys,omitempty"`
}

// fakeAPI answers with the responses of the table.
type fakeAPI struct {
	call  *retryCall
	now   time.Time
	draws int
	next  int
	waits []int64
	keys  []string
}

func (f *fakeAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	if f.next >= len(f.call.Responses) {
		return nil, errors.New("the table has no more responses")
	}
	given := f.call.Responses[f.next]
	f.next++
	f.now = f.now.Add(time.Duration(given.TookMS) * time.Millisecond)
	if key := request.Header.Get("Idempotency-Key"); key != "" {
		f.keys = append(f.keys, key)
	}
	header := http.Header{}
	for name, value := range given.Headers {
		header.Set(name, value)
	}
	body := io.NopCloser(strings.NewReader(given.Body))
	return &http.Response{StatusCode: given.Status, Header: header, Body: body, Request: request}, nil
}

func (f *fakeAPI) sleep(_ context.Context, wait time.Duration) error {
	f.waits = append(f.waits, wait.Milliseconds())
	f.now = f.now.Add(wait)
	return nil
}

func (f *fakeAPI) random() float64 {
	draw := f.call.Random[min(f.draws, len(f.call.Random)-1)]
	f.draws++
	return draw
}

func (r *retryCall) run() (any, error) {
	api := &fakeAPI{call: r, now: time.UnixMilli(r.NowMS)}
	transport := retry.New(api, retry.Options{
		Attempts:    r.Options.Attempts,
		Base:        time.Duration(r.Options.BaseMS) * time.Millisecond,
		Cap:         time.Duration(r.Options.CapMS) * time.Millisecond,
		Deadline:    time.Duration(r.Options.DeadlineMS) * time.Millisecond,
		EqualJitter: r.Options.Jitter == "equal",
		Adaptive:    r.Options.Adaptive,
		Now:         func() time.Time { return api.now },
		Sleep:       api.sleep,
		Random:      api.random,
	})
	results := make([]retryResult, 0, max(r.Calls, 1))
	for index := range max(r.Calls, 1) {
		if index > 0 {
			api.now = api.now.Add(time.Duration(r.EveryMS) * time.Millisecond)
		}
		api.waits = []int64{}
		status, err := r.once(transport)
		if err != nil {
			return nil, err
		}
		results = append(results, retryResult{WaitsMS: api.waits, Status: status, Keys: api.keys})
	}
	if r.Calls == 0 {
		return results[0], nil
	}
	return map[string]any{"calls": results}, nil
}

func (r *retryCall) once(transport *retry.Transport) (int, error) {
	request, err := http.NewRequest(r.Method, "http://api.example/", nil)
	if err != nil {
		return 0, err
	}
	if r.IdempotencyKey != "" {
		request.Header.Set("Idempotency-Key", r.IdempotencyKey)
	}
	response, err := transport.RoundTrip(request)
	if errors.Is(err, retry.ErrThrottled) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
