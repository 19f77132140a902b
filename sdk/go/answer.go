package tollgate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
)

// isFailure is true for answers that say nothing but that the server fails. A decision may have any status.
func (a *answer) isFailure() bool {
	if a.status < http.StatusInternalServerError {
		return false
	}
	_, ok := readDecision(a.body)
	return !ok
}

func (a *answer) decision() (*Decision, error) {
	decision, ok := readDecision(a.body)
	if !ok || (decision.Allowed && a.status != http.StatusOK) {
		return nil, apiError(a.status, a.body)
	}
	decision.Fields = a.userFields()
	if !decision.Allowed {
		decision.Refusal = a.refusal(decision.Fields)
	}
	return decision, nil
}

var plainRefusal = []byte(`{"type":"about:blank","title":"Too many requests","status":429}`)

func (a *answer) refusal(fields []Field) *Answer {
	if a.status == http.StatusOK { // no status was asked for, and the body is not for users
		return &Answer{Status: http.StatusTooManyRequests, ContentType: problemType, Fields: fields, Body: plainRefusal}
	}
	if wait := a.header.Get("Retry-After"); wait != "" {
		fields = append([]Field{{"Retry-After", wait}}, fields...)
	}
	media := first(a.header.Get("Content-Type"), problemType)
	return &Answer{Status: a.status, ContentType: media, Fields: fields, Body: a.body}
}

// userFields are sorted, because net/http does not keep the order of fields.
func (a *answer) userFields() []Field {
	var fields []Field
	for name, values := range a.header {
		for _, value := range values {
			if isUserField(name) {
				fields = append(fields, Field{name, value})
			}
		}
	}
	sort.SliceStable(fields, func(i, j int) bool { return fields[i].Name < fields[j].Name })
	return fields
}

func readOK(response *answer, result any) error {
	if response.status != http.StatusOK {
		return apiError(response.status, response.body)
	}
	if err := json.Unmarshal(response.body, result); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// apiError is the error in place of what was asked for.
func apiError(status int, body []byte) error {
	problem := &APIError{}
	if status == http.StatusRequestEntityTooLarge && json.Unmarshal(body, problem) != nil { // by a proxy
		*problem = APIError{Code: "body_too_large", Detail: "the request is longer than the server reads"}
	} else if json.Unmarshal(body, problem) != nil || status == http.StatusOK {
		return fmt.Errorf("%w: an answer with status %d cannot be read", ErrUnavailable, status)
	}
	problem.Status = status
	return problem
}
