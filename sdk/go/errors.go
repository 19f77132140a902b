package tollgate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ErrNotSent is wrapped by errors of calls of which nothing reached the server: they may be repeated.
var ErrNotSent = errors.New("nothing reached the server")

// ErrUnavailable is wrapped by errors of calls without a usable answer. Unless the error is ErrNotSent too, the server
// may have charged the call.
var ErrUnavailable = errors.New("no answer from Tollgate")

// errBusy is a wait for a connection that took too long: it says nothing about the server.
var errBusy = fmt.Errorf("%w: all connections were in use until the deadline", ErrNotSent)

// errCircuitOpen is a call that was not made.
var errCircuitOpen = fmt.Errorf("%w: no call is made, because the last ones had no answer", ErrNotSent)

// An APIError is an answer of the server that is not what was asked for.
type APIError struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
}

func (e *APIError) Error() string {
	return fmt.Sprintf("tollgate: %d %s: %s", e.Status, e.Code, e.Detail)
}

// IsPath is true if a text that a user of the application sent is malformed: method or path, which servers could read in
// different ways, or a value that is no text or longer than the server reads. Never pass such a request on.
func (e *APIError) IsPath() bool {
	if e.Status == http.StatusRequestEntityTooLarge {
		return true
	}
	if e.Status != http.StatusBadRequest {
		return false
	}
	switch e.Code {
	case "bad_method", "value_too_long", "bad_text":
		return true
	}
	return e.Field == "endpoint" || strings.HasPrefix(e.Code, "path_")
}

// AsInvalidPath returns the error about a malformed text of the user's, if err is one: see APIError.IsPath.
func AsInvalidPath(err error) (*APIError, bool) {
	var api *APIError
	ok := errors.As(err, &api) && api.IsPath()
	return api, ok
}
