package httplimit

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// server records what it is asked, and answers what a test says.
type server struct {
	mutex    sync.Mutex
	paths    []string
	requests []map[string]any
}

func newServer(t *testing.T, status int, body string) (*server, *tollgate.Client) {
	t.Helper()
	recorded := &server{}
	http := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request map[string]any
		_ = json.NewDecoder(r.Body).Decode(&request)
		recorded.mutex.Lock()
		recorded.paths = append(recorded.paths, r.URL.Path)
		recorded.requests = append(recorded.requests, request)
		recorded.mutex.Unlock()
		w.Header().Set("X-RateLimit-Limit", "3")
		w.Header().Set("Set-Cookie", "not for users")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(http.Close)
	client, err := tollgate.New(tollgate.Settings{URL: http.URL, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return recorded, client
}

const allowed = `{"allowed":true,"reservation":"tgr_1","settled":true}`

func serve(t *testing.T, client *tollgate.Client, options Options, r *http.Request, handler http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	limiter, err := New(client, options)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	limiter.Middleware(handler).ServeHTTP(w, r)
	return w
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })

func TestThePathIsTheOneThatTheRouterReads(t *testing.T) {
	for target, expected := range map[string]string{
		"/api/orders/1?a=b":          "GET /api/orders/1",
		"//api/orders/1":             "GET //api/orders/1",
		"/api/orders/a%2Fb":          "GET /api/orders/a%2Fb",
		"/api/orders/1%23x":          "GET /api/orders/1%23x",
		"http://app/api/orders/1":    "GET /api/orders/1",
		"/caf%C3%A9":                 "GET /caf%C3%A9",
		"/x/../api/orders/1":         "GET /x/../api/orders/1",
		"/API/%41pi":                 "GET /API/%41pi",
		"/api/orders/1;v=2":          "GET /api/orders/1;v=2",
		"/api/%E0%A4%A":              "",
		"/" + strings.Repeat("a", 9): "GET /aaaaaaaaa",
	} {
		wire := "GET " + target + " HTTP/1.1\r\nHost: app\r\n\r\n"
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire)))
		if (err != nil) != (expected == "") {
			t.Errorf("%s: %v", target, err)
		}
		if err == nil && endpoint(request, false) != expected {
			t.Errorf("%s is asked as %s", target, endpoint(request, false))
		}
	}
	head := httptest.NewRequest("HEAD", "/%41PI/Orders/%2f", nil)
	if got := endpoint(head, true); got != "GET /api/orders/%2f" {
		t.Error(got)
	}
	stripped := ""
	http.StripPrefix("/shop", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stripped = endpoint(r, false)
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/shop/a%2Fb", nil))
	if stripped != "GET /a%2Fb" {
		t.Error(stripped)
	}
}

func TestTheAddressIsTheLastThatIsNoTrustedProxy(t *testing.T) {
	proxies, err := parseProxies([]string{"127.0.0.1", "10.0.0.0/8", " 2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		peer   string
		fields []string
		want   string
	}{
		{"203.0.113.9:1", []string{"1.2.3.4"}, "203.0.113.9"},
		{"127.0.0.1:1", nil, "127.0.0.1"},
		{"127.0.0.1:1", []string{"6.6.6.6, 9.9.9.9", "10.0.0.7"}, "9.9.9.9"},
		{"[2001:db8::7]:1", []string{"9.9.9.9"}, "9.9.9.9"},
		{"[::ffff:127.0.0.1]:1", []string{"::ffff:9.9.9.9"}, "9.9.9.9"},
		{"127.0.0.1:1", []string{"9.9.9.9, unknown"}, "127.0.0.1"},
		{"127.0.0.1:1", []string{"9.9.9.9, 010.0.0.1"}, "127.0.0.1"},
		{"127.0.0.1:1", []string{"9.9.9.9:80"}, "127.0.0.1"},
		{"127.0.0.1:1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"127.0.0.1:1", []string{""}, "127.0.0.1"},
		{"@", []string{"9.9.9.9"}, "9.9.9.9"},
		{"@", nil, ""},
		{"nowhere", []string{"9.9.9.9"}, ""},
	} {
		request := &http.Request{RemoteAddr: test.peer, Header: http.Header{"X-Forwarded-For": test.fields}}
		if got := proxies.client(request); got != test.want {
			t.Errorf("%s %v: %q", test.peer, test.fields, got)
		}
	}
	if _, err := parseProxies([]string{"10.0.0.0/33"}); err == nil {
		t.Error("a network of 33 bits")
	}
}

func TestOnlyFieldsOfTheDecisionReachTheUser(t *testing.T) {
	_, client := newServer(t, 200, `{"allowed":true}`)
	w := serve(t, client, Options{}, httptest.NewRequest("GET", "/x", nil), ok)
	if w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "3" || w.Header().Get("Set-Cookie") != "" {
		t.Error(w.Code, w.Header())
	}
	_, client = newServer(t, 429, `{"allowed":false}`)
	w = serve(t, client, Options{}, httptest.NewRequest("HEAD", "/x", nil), ok)
	if w.Code != 429 || w.Header().Get("Set-Cookie") != "" || w.Body.Len() != 0 {
		t.Error(w.Code, w.Header(), w.Body)
	}
	w = serve(t, client, Options{OnDenied: func(w http.ResponseWriter, _ *http.Request, _ *tollgate.Decision) bool {
		w.WriteHeader(420)
		return true
	}}, httptest.NewRequest("GET", "/x", nil), ok)
	if w.Code != 420 || w.Header().Get("X-RateLimit-Limit") != "3" {
		t.Error(w.Code, w.Header())
	}
}

func TestAMalformedPathIsNeverPassedOn(t *testing.T) {
	_, client := newServer(t, 400, `{"code":"path_above_root","detail":"no"}`)
	w := serve(t, client, Options{}, httptest.NewRequest("GET", "/x", nil), ok)
	if w.Code != 400 || strings.Contains(w.Body.String(), "field") {
		t.Error(w.Code, w.Body)
	}
}

func TestAPathThatIsReadInTwoWaysIsNeverPassedOn(t *testing.T) {
	recorded, client := newServer(t, 200, `{"allowed":true}`)
	for path, expected := range map[string]int{
		"/files/../x": 400, "/files/%2e%2E/x": 400, "/./x": 400, "/x/.": 400, "/files/...": 200, "/.well-known/x": 200,
		"/a//b": 200, "/a/": 200,
	} {
		request := httptest.NewRequest("GET", "/", nil)
		request.URL = &url.URL{Path: path}
		if unescaped, err := url.PathUnescape(path); err == nil {
			request.URL = &url.URL{Path: unescaped, RawPath: path}
		}
		if w := serve(t, client, Options{}, request, ok); w.Code != expected {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := serve(t, client, Options{RefuseEmptySegments: true}, httptest.NewRequest("GET", "http://app/a//b", nil), ok); w.Code != 400 {
		t.Error(w.Code)
	}
	if len(recorded.requests) != 4 {
		t.Error(recorded.requests)
	}
}

func TestWhatIsReservedIsSettled(t *testing.T) {
	options := Options{
		Costs: func(*http.Request) tollgate.Costs { return tollgate.Costs{"tokens": 100} },
		Settle: func(_ *http.Request, result Result) tollgate.Costs {
			return tollgate.Costs{"tokens": uint64(result.Status)}
		},
	}
	settled := func(ctx context.Context, handler http.HandlerFunc) any {
		recorded, client := newServer(t, 200, allowed)
		func() {
			defer func() { _ = recover() }()
			serve(t, client, options, httptest.NewRequest("GET", "/x", nil).WithContext(ctx), handler)
		}()
		recorded.mutex.Lock()
		defer recorded.mutex.Unlock()
		if len(recorded.paths) != 2 || recorded.paths[0] != "/v1/reserve" || recorded.paths[1] != "/v1/settle" {
			t.Fatal(recorded.paths)
		}
		return recorded.requests[1]["costs"].(map[string]any)["tokens"]
	}
	background := context.Background()
	if got := settled(background, ok); got != 200.0 {
		t.Error(got)
	}
	if got := settled(background, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }); got != 204.0 {
		t.Error(got)
	}
	if got := settled(background, func(http.ResponseWriter, *http.Request) { panic("it fails") }); got != 500.0 {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(background)
	if got := settled(ctx, func(http.ResponseWriter, *http.Request) { cancel() }); got != 200.0 {
		t.Error("the caller went away", got)
	}
}

func TestAStreamCanStillBeFlushed(t *testing.T) {
	_, client := newServer(t, 200, allowed)
	options := Options{
		Costs:  func(*http.Request) tollgate.Costs { return tollgate.Costs{"tokens": 1} },
		Settle: func(*http.Request, Result) tollgate.Costs { return nil },
	}
	w := serve(t, client, options, httptest.NewRequest("GET", "/x", nil), http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }))
	if !w.Flushed {
		t.Error("not flushed")
	}
}
