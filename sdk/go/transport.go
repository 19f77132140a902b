package tollgate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	bodyBytesMax = 1 << 20
	headBytesMax = 16 << 10
	// idleMax is half of what the server allows a connection without a request: so it is not the server that closes
	// one just when the next call takes it.
	idleMax = 30 * time.Second
)

// transport makes calls over a bounded number of connections. It follows no redirects and asks no proxy.
type transport struct {
	base    string
	token   string
	http    *http.Transport
	permits chan struct{}
}

func newTransport(settings Settings, base *url.URL) *transport {
	return &transport{
		base:    strings.TrimRight(base.String(), "/"),
		token:   settings.Token,
		permits: make(chan struct{}, settings.Connections),
		http: &http.Transport{
			DialContext:            dial,
			TLSClientConfig:        settings.TLS,
			MaxConnsPerHost:        settings.Connections,
			MaxIdleConnsPerHost:    settings.Connections,
			IdleConnTimeout:        idleMax,
			MaxResponseHeaderBytes: headBytesMax,
			DisableCompression:     true,
		},
	}
}

// answer is the server's response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes one call. One that got no connection is sent once more; one that may have arrived never is. (net/http
// itself repeats a POST only if nothing of it was written to a connection that the server had closed.)
func (t *transport) send(ctx context.Context, method, path string, body []byte) (*answer, error) {
	select {
	case t.permits <- struct{}{}:
		defer func() { <-t.permits }()
	case <-ctx.Done():
		return nil, errBusy
	}
	response, err := t.attempt(ctx, method, path, body)
	if errors.Is(err, ErrNotSent) && ctx.Err() == nil {
		response, err = t.attempt(ctx, method, path, body)
	}
	return response, err
}

func (t *transport) attempt(ctx context.Context, method, path string, body []byte) (*answer, error) {
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	request, err := t.request(httptrace.WithClientTrace(ctx, trace), method, path, body)
	if err != nil {
		return nil, err
	}
	response, err := t.http.RoundTrip(request)
	if err != nil && !connected {
		return nil, fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrNotSent, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(read) > bodyBytesMax {
		return nil, fmt.Errorf("%w: the body is larger than %d bytes", ErrUnavailable, bodyBytesMax)
	}
	return &answer{status: response.StatusCode, header: response.Header, body: read}, nil
}

func (t *transport) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	deadline, _ := ctx.Deadline() // a client sets one for every call
	left := time.Until(deadline).Milliseconds()
	if left < 1 {
		return nil, errBusy
	}
	request, err := http.NewRequestWithContext(ctx, method, t.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	request.Header["User-Agent"] = nil
	request.Header.Set("Content-Type", "application/json")
	// The server charges nothing after the caller has left.
	request.Header.Set("Request-Timeout", strconv.FormatInt(left, 10)+"ms")
	if t.token != "" {
		request.Header.Set("Authorization", "Bearer "+t.token)
	}
	return request, nil
}
