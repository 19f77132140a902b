package main

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// newClient reads the settings of the client from the environment.
func newClient() (*tollgate.Client, error) {
	settings := tollgate.Settings{OnError: tollgate.OnError(os.Getenv("CONFORMANCE_ON_ERROR"))}
	if text := os.Getenv("CONFORMANCE_FALLBACK"); text != "" {
		limit, err := tollgate.ParseLimit(text)
		if err != nil {
			return nil, err
		}
		settings.Fallback = limit
	}
	if text := os.Getenv("CONFORMANCE_TIMEOUT_MS"); text != "" {
		milliseconds, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		settings.Timeout = time.Duration(milliseconds) * time.Millisecond
	}
	return tollgate.New(settings)
}

// options are those of the middleware.
func options() httplimit.Options {
	options := httplimit.Options{
		Identify: func(r *http.Request) tollgate.Request {
			return tollgate.Request{APIKey: httplimit.OnlyHeader(r, "X-API-Key")}
		},
		Skip: func(r *http.Request) bool { return r.URL.Path == "/health" },
		Costs: func(r *http.Request) tollgate.Costs {
			if strings.HasPrefix(r.URL.Path, "/api/complete/") {
				return tollgate.Costs{"tokens": 100}
			}
			return nil
		},
		Settle: func(_ *http.Request, result httplimit.Result) tollgate.Costs {
			tokens, _ := strconv.ParseUint(result.Header.Get("X-Tokens"), 10, 32) // 0 without it
			return tollgate.Costs{"tokens": tokens}
		},
		Shadow: os.Getenv("CONFORMANCE_SHADOW") == "1",
	}
	if text := os.Getenv("CONFORMANCE_TRUSTED_PROXIES"); text != "" {
		options.TrustedProxies = strings.Split(text, ",")
	}
	return options
}
