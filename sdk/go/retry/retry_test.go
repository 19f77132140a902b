package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// The waits themselves are those of sdk/conformance/retry.json.

func noSleep(context.Context, time.Duration) error { return nil }

func TestABodyIsSentAgainWhole(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(map[bool]int{true: 429, false: 200}[len(bodies) < 3])
	}))
	defer server.Close()
	client := &http.Client{Transport: New(nil, Options{Sleep: noSleep})}
	response, err := client.Post(server.URL, "text/plain", strings.NewReader("hello"))
	if err != nil || response.StatusCode != 200 || strings.Join(bodies, ",") != "hello,hello,hello" {
		t.Error(err, bodies)
	}
	// One that cannot be made anew is sent once.
	bodies = nil
	response, err = client.Post(server.URL, "text/plain", io.MultiReader(strings.NewReader("stream")))
	if err != nil || response.StatusCode != 429 || len(bodies) != 1 {
		t.Error(err, bodies)
	}
}

func TestTheBodyOfA400IsStillThere(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, strings.Repeat("x", 2*bodyBytesMax))
	}))
	defer server.Close()
	response, err := (&http.Client{Transport: New(nil, Options{Sleep: noSleep})}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || len(body) != 2*bodyBytesMax {
		t.Error(err, len(body))
	}
}

func TestACallerThatIsCancelledWaitsNoLonger(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(503)
	}))
	defer server.Close()
	transport := New(nil, Options{Sleep: func(ctx context.Context, wait time.Duration) error {
		cancel()
		return sleep(ctx, wait)
	}})
	request, err := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.RoundTrip(request); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCallersOfAPacerWaitInTheirOrder(t *testing.T) {
	limit, err := tollgate.ParseLimit("2/1s")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	var waits []time.Duration
	pacer := NewPacer(limit)
	pacer.now = func() time.Time { return now }
	pacer.sleep = func(_ context.Context, wait time.Duration) error {
		waits = append(waits, wait)
		return nil
	}
	for range 4 {
		if err := pacer.Acquire(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if waits[1] != 0 || waits[2] != 500*time.Millisecond || waits[3] != time.Second {
		t.Error(waits)
	}
	ctx, cancel := context.WithDeadline(context.Background(), now.Add(time.Millisecond))
	defer cancel()
	if ctx.Err() == nil && !errors.Is(pacer.Acquire(ctx, 1), context.DeadlineExceeded) {
		t.Error("it cannot be in time")
	}
	if pacer.Acquire(context.Background(), 3) == nil {
		t.Error("three never fit two")
	}
}
