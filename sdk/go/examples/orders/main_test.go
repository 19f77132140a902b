package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

func TestTheApplicationAsksForThoseWhoAreKnownAndForAddresses(t *testing.T) {
	var asked []map[string]any
	limits := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request map[string]any
		_ = json.NewDecoder(r.Body).Decode(&request)
		asked = append(asked, request)
		_, _ = w.Write([]byte(`{"allowed":true}`))
	}))
	defer limits.Close()
	handler, err := application(tollgate.Settings{URL: limits.URL, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"key-of-ada", "made-up", ""} {
		request := httptest.NewRequest("GET", "/api/orders/1", nil)
		request.Header.Set("X-API-Key", key)
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, request); w.Code != http.StatusOK {
			t.Error(w.Code)
		}
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/health", nil))
	if len(asked) != 3 || asked[0]["api_key"] != "ada" || asked[0]["tier"] != "paid" || asked[1]["api_key"] != nil ||
		asked[1]["ip"] != "192.0.2.1" {
		t.Error(asked)
	}
}
