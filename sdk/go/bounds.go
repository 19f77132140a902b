package tollgate

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
)

const (
	pathBytesMax   = 8192
	methodBytesMax = 64
	valueBytesMax  = 4096
)

// checkLengths says what the server would say about a text that is too long. A server that gets much more than it reads
// closes the connection, and that would look like an outage, for which OnError may pass requests: the length of a text
// must not choose it.
func (r *Request) checkLengths() error {
	path := r.Endpoint
	if start := strings.IndexByte(path, '/'); start >= 0 {
		path = path[start:]
	}
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	if len(path) > pathBytesMax || len(r.Endpoint) > pathBytesMax+methodBytesMax {
		return tooLong("path_too_long", "endpoint", fmt.Sprintf("the path is longer than %d bytes", pathBytesMax))
	}
	values := [][2]string{
		{"client_key", r.ClientKey}, {"api_key", r.APIKey}, {"user_id", r.UserID}, {"ip", r.IP}, {"org", r.Org},
		{"tier", r.Tier}, {"namespace", r.Namespace},
	}
	known := len(values)
	for name, value := range r.Attributes {
		values = append(values, [2]string{name, value})
	}
	sort.Slice(values[known:], func(i, j int) bool { return values[known+i][0] < values[known+j][0] })
	for _, value := range values {
		if len(value[1]) > valueBytesMax {
			return tooLong("value_too_long", value[0], fmt.Sprintf("use at most %d bytes", valueBytesMax))
		}
	}
	return nil
}

func tooLong(code, field, detail string) error {
	return &APIError{Status: http.StatusBadRequest, Code: code, Field: field, Detail: detail}
}
