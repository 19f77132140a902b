// Sdk measures what Tollgate costs a program in Go: a call of the client beside a bare one of net/http, and the middleware
// beside ulule/limiter. CPU time of this process; candidates take turns; a row is "name<TAB>nanoseconds", the median.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

const rounds = 9

type candidate struct {
	name string
	call func(number int)
}

func main() {
	log.SetFlags(0)
	url := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	race(clients(url), count)
	race(middleware(url), count)
}

func clients(url string) []candidate {
	client := must(tollgate.New(tollgate.Settings{URL: url, Timeout: 10 * time.Second}))
	request := tollgate.Request{APIKey: "abc", Endpoint: "GET /api/orders/7"}
	return []candidate{
		{"go net/http", func(int) { plain(url) }},
		{"go client", func(int) { allowed(must(client.Check(context.Background(), request)).Allowed) }},
	}
}

// plain is a call as it is written by hand.
func plain(url string) {
	body := must(json.Marshal(map[string]string{"api_key": "abc", "endpoint": "GET /api/orders/7"}))
	answer := must(http.Post(url+"/v1/check", "application/json", strings.NewReader(string(body))))
	text := must(io.ReadAll(answer.Body))
	answer.Body.Close()
	var decision struct{ Allowed bool }
	check(json.Unmarshal(text, &decision))
	allowed(decision.Allowed)
}

func middleware(url string) []candidate {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"order":"7"}`)
	})
	limit := must(tollgate.ParseLimit("1000000000/1m"))
	quiet := func(error) {}
	away := tollgate.Settings{URL: "http://127.0.0.1:1", Fallback: limit, OnUnavailable: quiet}
	there := tollgate.Settings{URL: url, Timeout: 10 * time.Second}
	ulule := limiter.New(memory.NewStore(), limiter.Rate{Period: time.Minute, Limit: 1_000_000_000})
	return []candidate{
		{"net/http", handled(mux)},
		{"net/http tollgate, in process", handled(limited(away, mux))},
		{"net/http ulule/limiter", handled(stdlib.NewMiddleware(ulule).Handler(mux))},
		{"net/http tollgate, asks a server", handled(limited(there, mux))},
	}
}

func limited(settings tollgate.Settings, next http.Handler) http.Handler {
	return must(httplimit.New(must(tollgate.New(settings)), httplimit.Options{})).Middleware(next)
}

func handled(handler http.Handler) func(int) {
	return func(number int) {
		request := httptest.NewRequest(http.MethodGet, "/api/orders/7", nil)
		request.RemoteAddr = fmt.Sprintf("10.0.%d.%d:4711", number/250%40, number%250)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		allowed(recorder.Code == http.StatusOK)
	}
}

func race(candidates []candidate, count int) {
	times := make([][]float64, len(candidates))
	for round := 0; round <= rounds; round++ {
		for index, candidate := range candidates {
			start := cpu()
			for number := 0; number < count; number++ {
				candidate.call(number)
			}
			if round > 0 { // the first one opens connections and the circuit
				times[index] = append(times[index], float64(cpu()-start)/float64(count))
			}
		}
	}
	for index, candidate := range candidates {
		sort.Float64s(times[index])
		fmt.Printf("%s\t%.0f\n", candidate.name, times[index][rounds/2])
	}
}

func cpu() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func allowed(isAllowed bool) {
	if !isAllowed {
		log.Fatal("a request was refused that the limit has room for")
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
