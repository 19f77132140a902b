package tollgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// logEvery is how often a cause is logged at most.
const logEvery = 10 * time.Second

// A Client asks Tollgate. Many goroutines may share it.
type Client struct {
	settings  Settings
	transport *transport
	breaker   *breaker
	fallback  *fallbackLimiter

	logMutex sync.Mutex
	loggedAt time.Time
}

// New makes a client. It connects with the first call.
func New(settings Settings) (*Client, error) {
	settings, base, err := settings.complete()
	if err != nil {
		return nil, err
	}
	client := &Client{
		settings:  settings,
		transport: newTransport(settings, base),
		breaker:   &breaker{clock: settings.Clock, pause: pauseMin},
	}
	if settings.Fallback != nil {
		client.fallback, err = newFallbackLimiter(settings.Fallback, settings.Clock)
	}
	return client, err
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.transport.http.CloseIdleConnections() }

// Check decides whether a request may pass. The error is an APIError about a malformed request (IsPath), which must not be passed
// on, or the context was cancelled; everything else is a decision by OnError.
func (c *Client) Check(ctx context.Context, request Request) (*Decision, error) {
	return c.decide(ctx, "/v1/check", request)
}

// CheckForUser is Check with what a user should see of the decision: Fields, and a Refusal to answer with.
func (c *Client) CheckForUser(ctx context.Context, request Request) (*Decision, error) {
	return c.decide(ctx, "/v1/check?status=429", request)
}

// Reserve decides about estimates. Settle its Reservation with the real amounts.
func (c *Client) Reserve(ctx context.Context, request Request) (*Decision, error) {
	return c.decide(ctx, "/v1/reserve", request)
}

// ReserveForUser is Reserve with what a user should see of the decision.
func (c *Client) ReserveForUser(ctx context.Context, request Request) (*Decision, error) {
	return c.decide(ctx, "/v1/reserve?status=429", request)
}

// A BatchResult is a decision, or the error about a malformed request, which must not be passed on.
type BatchResult struct {
	Decision *Decision
	Err      error
}

// CheckBatch decides requests in their order.
func (c *Client) CheckBatch(ctx context.Context, requests []Request) ([]BatchResult, error) {
	results := make([]BatchResult, len(requests))
	if len(requests) == 0 {
		return results, nil
	}
	items, cause := c.batch(ctx, requests)
	if err := c.callersFault(ctx, cause); err != nil {
		return nil, err
	}
	for index := range requests {
		err := cause
		if cause == nil {
			results[index].Decision, err = batchItem(items[index])
		}
		if _, isPath := AsInvalidPath(err); isPath {
			results[index].Err = err
		} else if err != nil {
			results[index].Decision = c.withoutServer(&requests[index], err)
		}
	}
	return results, nil
}

func (c *Client) batch(ctx context.Context, requests []Request) ([]json.RawMessage, error) {
	var batch struct {
		Results []json.RawMessage `json:"results"`
	}
	err := c.post(ctx, "/v1/check/batch", map[string]any{"requests": requests}, &batch)
	if err == nil && len(batch.Results) != len(requests) {
		err = fmt.Errorf("%w: the answer to a batch has another length", ErrUnavailable)
	}
	return batch.Results, err
}

func batchItem(item json.RawMessage) (*Decision, error) {
	if decision, ok := readDecision(item); ok {
		return decision, nil
	}
	return nil, apiError(http.StatusBadRequest, item)
}

// Extend takes the next step of a reservation: the new Reservation replaces the old one. If there is no answer, the old
// one stays good.
func (c *Client) Extend(ctx context.Context, reservation string, costs Costs) (*Decision, error) {
	var raw json.RawMessage
	if err := c.post(ctx, "/v1/extend", map[string]any{"reservation": reservation, "costs": costs}, &raw); err != nil {
		return nil, err
	}
	decision, ok := readDecision(raw)
	if !ok {
		return nil, fmt.Errorf("%w: it is not a decision", ErrUnavailable)
	}
	return decision, nil
}

// A Settlement is what settling changed: buckets that got units back, and buckets that were charged more.
type Settlement struct {
	Settled  bool            `json:"settled"`
	Refunded int             `json:"refunded"`
	Extended int             `json:"extended"`
	Raw      json.RawMessage `json:"-"`
}

// Settle settles a reservation with the real amounts. If there is no answer, settling again changes nothing twice.
func (c *Client) Settle(ctx context.Context, reservation string, costs Costs) (*Settlement, error) {
	settlement := &Settlement{}
	body := map[string]any{"reservation": reservation, "costs": costs}
	if err := c.post(ctx, "/v1/settle", body, &settlement.Raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(settlement.Raw, settlement); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return settlement, nil
}

// Usage is what a client, named by the fields of a request, has used of each rule, as the server writes it.
func (c *Client) Usage(ctx context.Context, of Request) (json.RawMessage, error) {
	fields, err := of.query()
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, value := range fields {
		query.Set(name, value)
	}
	response, err := c.call(ctx, http.MethodGet, "/v1/usage?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var usage json.RawMessage
	return usage, readOK(response, &usage)
}

func (c *Client) decide(ctx context.Context, path string, request Request) (*Decision, error) {
	decision, err := c.ask(ctx, path, &request)
	if err == nil {
		return decision, nil
	}
	if err := c.callersFault(ctx, err); err != nil {
		return nil, err
	}
	if _, isPath := AsInvalidPath(err); isPath {
		return nil, err
	}
	return c.withoutServer(&request, err), nil
}

func (c *Client) ask(ctx context.Context, path string, request *Request) (*Decision, error) {
	if err := request.checkLengths(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	response, err := c.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return nil, err
	}
	return response.decision()
}

// callersFault is the error of a caller that has left: it needs no decision any more.
func (c *Client) callersFault(ctx context.Context, cause error) error {
	if cause != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}

func (c *Client) post(ctx context.Context, path string, request, result any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := c.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return readOK(response, result)
}

// call makes a call if the breaker admits one, and tells it what became of it.
func (c *Client) call(ctx context.Context, method, path string, body []byte) (*answer, error) {
	report := c.breaker.admit()
	if report == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errCircuitOpen)
	}
	became := abandoned
	defer func() { report(became) }()
	timed, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	response, err := c.transport.send(timed, method, path, body)
	switch {
	case err == nil && response.isFailure():
		became = failed
	case err == nil:
		became = succeeded
	case errors.Is(err, errBusy) || errors.Is(ctx.Err(), context.Canceled):
	default:
		became = failed
	}
	return response, err
}

func (c *Client) withoutServer(request *Request, cause error) *Decision {
	c.report(cause)
	if c.settings.OnError == Local {
		outcome := c.fallback.decide(request.bucket(), request.units(), request.Peek)
		return fallbackDecision(c.settings.Fallback, outcome, c.settings.Clock())
	}
	return policyDecision(c.settings.OnError == Open)
}

func (c *Client) report(cause error) {
	if c.settings.OnUnavailable != nil {
		c.settings.OnUnavailable(cause)
	}
	c.logMutex.Lock()
	defer c.logMutex.Unlock()
	now := c.settings.Clock()
	if c.loggedAt.IsZero() || now.Sub(c.loggedAt) >= logEvery {
		c.loggedAt = now
		log.Printf("no decision from Tollgate, %s applies: %v", c.settings.OnError, cause)
	}
}
