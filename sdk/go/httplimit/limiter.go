// Package httplimit is middleware for net/http and every router that takes it.
//
//	limiter, err := httplimit.New(client, httplimit.Options{})
//	http.ListenAndServe(":3000", limiter.Middleware(mux))
package httplimit

import (
	"context"
	"log"
	"net/http"
	"strconv"
	"time"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// A Limiter asks Tollgate before a handler runs.
type Limiter struct {
	client  *tollgate.Client
	options Options
	proxies proxies
}

// New makes a limiter.
func New(client *tollgate.Client, options Options) (*Limiter, error) {
	proxies, err := parseProxies(options.TrustedProxies)
	return &Limiter{client: client, options: options, proxies: proxies}, err
}

// Middleware asks before every request of the handler.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pass := l.Begin(w, r)
		switch {
		case pass == nil:
		case !pass.settles():
			next.ServeHTTP(w, r)
		default:
			recorder := &recorder{ResponseWriter: w}
			defer func() { pass.Finish(recorder.result()) }()
			next.ServeHTTP(recorder, r)
			recorder.returned = true
		}
	})
}

// A Pass is a request that may go on to its handler. Adapters for frameworks call Finish when it is answered.
type Pass struct {
	limiter     *Limiter
	request     *http.Request
	reservation string
	stop        func()
}

func (p *Pass) settles() bool { return p.reservation != "" }

// Begin asks about a request. It returns nil if the request was answered, because it may not pass.
func (l *Limiter) Begin(w http.ResponseWriter, r *http.Request) *Pass {
	pass := &Pass{limiter: l, request: r, stop: func() {}}
	if l.options.Skip != nil && l.options.Skip(r) {
		return pass
	}
	decision, err := l.ask(r)
	if err != nil {
		return l.withoutDecision(w, r, pass, err)
	}
	if l.options.OnDecision != nil {
		l.options.OnDecision(r, decision)
	}
	if !decision.Allowed && !l.options.Shadow {
		l.refuse(w, r, decision)
		return nil
	}
	if !l.options.Shadow {
		addFields(w, decision.Fields)
		wait(r.Context(), decision.Delay())
	}
	if decision.Allowed {
		pass.reservation = decision.Reservation
		pass.stop = l.client.KeepReservation(decision)
	}
	return pass
}

// Finish settles a request that was reserved.
func (p *Pass) Finish(result Result) {
	p.stop()
	if !p.settles() || p.limiter.options.Settle == nil {
		return
	}
	costs := p.limiter.options.Settle(p.request, result)
	if costs == nil {
		return // the estimate stays charged
	}
	// Not with the context of the request, which has ended if the caller went away.
	if _, err := p.limiter.client.Settle(context.WithoutCancel(p.request.Context()), p.reservation, costs); err != nil {
		log.Printf("a reservation was not settled, its estimate stays charged: %v", err)
	}
}

func (l *Limiter) ask(r *http.Request) (*tollgate.Decision, error) {
	if problem := ambiguous(r.URL.EscapedPath(), l.options.RefuseEmptySegments); problem != nil {
		return nil, problem
	}
	request := l.Fields(r)
	if l.options.Settle != nil && request.Costs != nil {
		return l.client.ReserveForUser(r.Context(), request)
	}
	return l.client.CheckForUser(r.Context(), request)
}

// Fields are what is asked about a request.
func (l *Limiter) Fields(r *http.Request) tollgate.Request {
	var request tollgate.Request
	if l.options.Identify != nil {
		request = l.options.Identify(r)
	}
	if request.IP == "" {
		request.IP = l.proxies.client(r)
	}
	if l.options.Endpoint != nil {
		request.Endpoint = l.options.Endpoint(r)
	}
	if request.Endpoint == "" {
		request.Endpoint = endpoint(r, l.options.CaseInsensitivePaths)
	}
	if l.options.Cost != nil {
		request.Cost = tollgate.Cost(l.options.Cost(r))
	}
	if l.options.Costs != nil {
		request.Costs = l.options.Costs(r)
	}
	return request
}

// withoutDecision handles a malformed path, which is never passed on, and a caller that has left.
func (l *Limiter) withoutDecision(w http.ResponseWriter, r *http.Request, pass *Pass, err error) *Pass {
	if l.options.Shadow {
		return pass
	}
	if problem, isPath := tollgate.AsInvalidPath(err); isPath {
		write(w, r, tollgate.BadPath(problem.Code, problem.Detail))
		return nil
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	return nil
}

func (l *Limiter) refuse(w http.ResponseWriter, r *http.Request, decision *tollgate.Decision) {
	if l.options.OnDenied != nil {
		addFields(w, decision.Refusal.Fields)
		if l.options.OnDenied(w, r, decision) {
			return
		}
		for _, field := range decision.Refusal.Fields {
			w.Header().Del(field.Name)
		}
	}
	write(w, r, decision.Refusal)
}

func write(w http.ResponseWriter, r *http.Request, answer *tollgate.Answer) {
	addFields(w, answer.AllFields())
	w.Header().Set("Content-Length", strconv.Itoa(len(answer.Body)))
	w.WriteHeader(answer.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(answer.Body) // the caller may have left
	}
}

func addFields(w http.ResponseWriter, fields []tollgate.Field) {
	for _, field := range fields {
		w.Header().Add(field.Name, field.Value)
	}
}

// wait holds a request back for as long as a rule that queues says.
func wait(ctx context.Context, delay time.Duration) {
	if delay <= 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
