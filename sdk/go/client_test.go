package tollgate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

func mode(t *testing.T, client *Client) string {
	t.Helper()
	decision, err := client.Check(context.Background(), Request{APIKey: "a", Endpoint: "GET /x"})
	if err != nil {
		t.Fatal(err)
	}
	return decision.Mode
}

func TestACallSaysHowLongItWaitsAndWhoAsks(t *testing.T) {
	server := newFakeServer(t, answering(response("200 OK", "", allowedBody)))
	token := strings.Repeat("t", 32)
	mode(t, newClient(t, Settings{URL: server.url, Token: token}))
	header := server.requests[0].Header
	wait, err := time.ParseDuration(header.Get("Request-Timeout"))
	if err != nil || wait <= 0 || wait > patient {
		t.Errorf("Request-Timeout: %q", header.Get("Request-Timeout"))
	}
	if header.Get("Authorization") != "Bearer "+token || header.Get("User-Agent") != "" {
		t.Errorf("%v", header)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	server := newFakeServer(t, answering(response("200 OK", "", allowedBody)))
	client := newClient(t, Settings{URL: server.url})
	for range 20 {
		if mode(t, client) != "store" {
			t.Fatal("no decision")
		}
	}
	if server.connections.Load() != 1 || server.count() != 20 {
		t.Errorf("%d connections, %d requests", server.connections.Load(), server.count())
	}
}

func TestAConnectionThatTheServerClosedBetweenCallsIsNoFailure(t *testing.T) {
	closed := make(chan struct{}, 10)
	server := newFakeServer(t, func(server *fakeServer, connection net.Conn) {
		closingAfterOne(server, connection)
		connection.Close()
		closed <- struct{}{}
	})
	var causes atomic.Int64
	client := newClient(t, Settings{URL: server.url, OnUnavailable: func(error) { causes.Add(1) }})
	for count := 1; count <= 8; count++ {
		if got := mode(t, client); got != "store" || server.count() != count {
			t.Fatalf("call %d: %s, %d requests", count, got, server.count())
		}
		<-closed
	}
	if causes.Load() != 0 {
		t.Errorf("%d failures", causes.Load())
	}
}

func TestWhatMayHaveArrivedIsNeverSentAgain(t *testing.T) {
	server := newFakeServer(t, cutting)
	if got := mode(t, newClient(t, Settings{URL: server.url})); got != "open" || server.count() != 1 {
		t.Errorf("%s after %d requests", got, server.count())
	}
}

func TestNoAnswerInTimeIsADecisionInTime(t *testing.T) {
	server := newFakeServer(t, halted)
	client := newClient(t, Settings{URL: server.url, Timeout: 50 * time.Millisecond, OnError: Closed})
	if got := mode(t, client); got != "closed" {
		t.Error(got)
	}
	slow := newClient(t, Settings{URL: server.url, OnError: Closed})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if decision, err := slow.Check(ctx, Request{APIKey: "a"}); err != nil || decision.Mode != "closed" {
		t.Error("the deadline of the context counts", decision, err)
	}
}

func TestACallerWhoLeavesGetsItsOwnError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	server := newFakeServer(t, func(server *fakeServer, connection net.Conn) {
		reader := bufio.NewReader(connection)
		server.read(reader)
		cancel()
		_, _ = reader.ReadByte()
	})
	client := newClient(t, Settings{URL: server.url, OnError: Closed})
	if _, err := client.Check(ctx, Request{APIKey: "a"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if client.breaker.failures != 0 {
		t.Error("a caller who leaves is no failure of the server")
	}
}

func TestHostileAnswersAreNoDecisions(t *testing.T) {
	hostile := map[string]string{
		"a huge body":           response("200 OK", "", strings.Repeat(" ", 1<<20)+allowedBody),
		"a length of terabytes": "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n" + allowedBody + strings.Repeat(" ", 2<<20),
		"a negative length":     "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"two lengths":           response("200 OK", "Content-Length: 3\r\n", allowedBody),
		"a huge head":           "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 50000) + "\r\n",
		"a NUL in a field":      response("200 OK", "RateLimit: a\x00b\r\n", allowedBody),
		"another protocol":      "SSH-2.0-x\r\n\r\n",
		"a huge chunk":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"no object":             response("200 OK", "", "[true]"),
		"deep JSON":             response("200 OK", "", strings.Repeat("[", 100_000)),
		"a long number":         response("200 OK", "", `{"allowed":true,"limit":`+strings.Repeat("9", 100_000)+"}"),
		"allowed by an error":   response("500 Internal Server Error", "", allowedBody),
		"allowed by a redirect": response("307 Temporary Redirect", "Location: /\r\n", allowedBody),
		"a text as allowed":     response("200 OK", "", `{"allowed":"yes"}`),
	}
	for name, data := range hostile {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t, answering(data))
			client := newClient(t, Settings{URL: server.url, OnError: Closed})
			if got := mode(t, client); got != "closed" || server.count() != 1 {
				t.Errorf("%s after %d requests", got, server.count())
			}
		})
	}
}

func TestErrorsSayWhoseFaultTheyAre(t *testing.T) {
	problem := `{"status":400,"detail":"no","code":"path_escaped_slash","field":"endpoint"}`
	server := newFakeServer(t, answering(response("400 Bad Request", "", problem)))
	client := newClient(t, Settings{URL: server.url})
	_, err := client.Check(context.Background(), Request{APIKey: "a"})
	if problem, ok := AsInvalidPath(err); !ok || problem.Code != "path_escaped_slash" {
		t.Error(err)
	}
	away := newClient(t, Settings{URL: newFakeServer(t, cutting).url})
	_, err = away.Settle(context.Background(), "tgr_x", Costs{"requests": 1})
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotSent) {
		t.Error(err)
	}
	nowhere := newClient(t, Settings{URL: "http://127.0.0.1:1"})
	if _, err = nowhere.Settle(context.Background(), "tgr_x", nil); !errors.Is(err, ErrNotSent) {
		t.Error(err)
	}
}

func TestWhatTheServerCannotReadIsNotSent(t *testing.T) {
	server := newFakeServer(t, answering(response("200 OK", "", allowedBody)))
	client := newClient(t, Settings{URL: server.url})
	for _, c := range []struct {
		request Request
		code    string
	}{
		{Request{Endpoint: "GET /" + strings.Repeat("a", 8192)}, "path_too_long"},
		{Request{Endpoint: "/" + strings.Repeat("a", 8192)}, "path_too_long"},
		{Request{Endpoint: "GET /?" + strings.Repeat("a", 8300)}, "path_too_long"},
		{Request{UserID: strings.Repeat("a", 4097)}, "value_too_long"},
		{Request{Attributes: map[string]string{"region": strings.Repeat("a", 4097)}}, "value_too_long"},
	} {
		if problem, ok := check(client, c.request); !ok || problem.Code != c.code {
			t.Errorf("%v instead of %s", problem, c.code)
		}
	}
	if server.count() != 0 {
		t.Errorf("%d requests", server.count())
	}
	longest := Request{Endpoint: "GET /" + strings.Repeat("a", 8191), UserID: strings.Repeat("a", 4096)}
	if problem, ok := check(client, longest); ok {
		t.Error(problem)
	}
	proxied := newClient(t, Settings{URL: newFakeServer(t, answering(response("413 Content Too Large", "", "too large"))).url})
	if problem, ok := check(proxied, Request{APIKey: "a"}); !ok {
		t.Error(problem)
	}
}

func check(client *Client, request Request) (*APIError, bool) {
	_, err := client.Check(context.Background(), request)
	return AsInvalidPath(err)
}

func TestAThousandGoroutinesShareABoundedNumberOfConnections(t *testing.T) {
	server := newFakeServer(t, answering(response("200 OK", "", allowedBody)))
	client := newClient(t, Settings{URL: server.url, Connections: 8})
	var group sync.WaitGroup
	var decided atomic.Int64
	for range 1000 {
		group.Add(1)
		go func() {
			defer group.Done()
			decision, err := client.Check(context.Background(), Request{APIKey: "a"})
			if err == nil && decision.Mode == "store" {
				decided.Add(1)
			}
		}()
	}
	group.Wait()
	if decided.Load() != 1000 || server.count() != 1000 || server.connections.Load() > 8 {
		t.Errorf("%d decisions, %d requests, %d connections", decided.Load(), server.count(), server.connections.Load())
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, settings := range []Settings{
		{URL: "ftp://x"}, {URL: "http://"}, {URL: "http://a:b@c"}, {URL: "http://x/?y"}, {OnError: "maybe"}, {OnError: Local},
		{Timeout: time.Microsecond}, {Connections: -1}, {Token: "a b"}, {Token: "a\r\nX: y"},
	} {
		if _, err := New(settings); err == nil {
			t.Errorf("%+v is accepted", settings)
		}
	}
}
