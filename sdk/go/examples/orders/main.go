// Command orders is an application with keys, health checks and a fallback limit, on port 3000.
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// keys stand in for the table in which an application looks its keys up.
var keys = map[string]tollgate.Request{
	"key-of-ada": {APIKey: "ada", Tier: "paid"},
	"key-of-bob": {APIKey: "bob", Tier: "free"},
}

func main() {
	handler, err := application(tollgate.Settings{}) // TOLLGATE_URL, TOLLGATE_DATA_TOKEN
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:3000", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func application(settings tollgate.Settings) (http.Handler, error) {
	fallback, err := tollgate.ParseLimit("100/1m") // in this process, while there is no answer
	if err != nil {
		return nil, err
	}
	settings.Fallback = fallback
	client, err := tollgate.New(settings)
	if err != nil {
		return nil, err
	}
	limiter, err := httplimit.New(client, httplimit.Options{
		// Only keys that are known name a client; every other caller is an address.
		Identify: func(r *http.Request) tollgate.Request { return keys[httplimit.OnlyHeader(r, "X-API-Key")] },
		Skip:     func(r *http.Request) bool { return r.URL.Path == "/health" },
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/orders/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "{\"path\":%q}\n", r.URL.Path)
	})
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return limiter.Middleware(mux), nil
}
