package chilimit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// ask sends a request through a router with a mounted part, and returns what the server was asked about.
func ask(t *testing.T, target string, templates bool) (string, int) {
	t.Helper()
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Endpoint string `json:"endpoint"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		asked = request.Endpoint
		_, _ = io.WriteString(w, `{"allowed":true}`)
	}))
	defer server.Close()
	client, err := tollgate.New(tollgate.Settings{URL: server.URL, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	router := chi.NewRouter()
	var options httplimit.Options
	if templates {
		options.Endpoint = RouteTemplate(router)
	}
	limiter, err := New(client, options)
	if err != nil {
		t.Fatal(err)
	}
	router.Use(limiter.Middleware)
	router.Route("/shop", func(shop chi.Router) {
		shop.Get("/orders/{order}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	})
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return asked, w.Code
}

func TestThePathIsTheOneThatChiReads(t *testing.T) {
	for target, expected := range map[string]string{
		"/shop/orders/1":     "GET /shop/orders/1",
		"/shop/orders/a%2Fb": "GET /shop/orders/a%2Fb", // chi routes by the raw path: one segment
		"/shop//orders/1":    "",
		"/shop/../orders/1":  "",
		"/shop/orders/%2e":   "",
		"/nowhere":           "GET /nowhere",
	} {
		if asked, _ := ask(t, target, false); asked != expected {
			t.Errorf("%s is asked as %s", target, asked)
		}
	}
}

func TestTemplatesAreThoseOfTheRoute(t *testing.T) {
	for target, expected := range map[string]string{
		"/shop/orders/1":     "GET /shop/orders/{order}",
		"/shop/orders/a%2Fb": "GET /shop/orders/{order}",
		"/nowhere":           "GET /nowhere",
	} {
		if asked, _ := ask(t, target, true); asked != expected {
			t.Errorf("%s is asked as %s", target, asked)
		}
	}
}
