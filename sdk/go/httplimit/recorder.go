package httplimit

import (
	"bufio"
	"net"
	"net/http"
)

// recorder remembers the status of a response. It is there only for requests that are settled.
type recorder struct {
	http.ResponseWriter
	status   int
	returned bool
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(body []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(body)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush is for handlers that stream.
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush() // nothing to do if it cannot
}

// Hijack is for WebSockets.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

func (r *recorder) result() Result {
	switch {
	case r.status != 0:
		return Result{Status: r.status, Header: r.Header()}
	case r.returned:
		return Result{Status: http.StatusOK, Header: r.Header()}
	default: // it panicked
		return Result{Status: http.StatusInternalServerError, Header: http.Header{}}
	}
}
