package tollgate

import (
	"encoding/json"
	"strings"
	"time"
)

// A Decision says whether a request may pass.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Mode is what decided: "store" and so on as the server says; "open", "closed" or "fallback" without the server.
	Mode         string `json:"mode"`
	Limit        *int64 `json:"limit"`
	Remaining    *int64 `json:"remaining"`
	ResetAt      *int64 `json:"reset_at"`
	RetryAfter   *int64 `json:"retry_after"`
	RetryAfterMS *int64 `json:"retry_after_ms"`
	Never        bool   `json:"never"`
	Rule         string `json:"rule"`
	DelayMS      int64  `json:"delay_ms"`
	Reservation  string `json:"reservation"`
	Slot         string `json:"slot"`
	TTLMS        int64  `json:"ttl_ms"`

	// Raw is all of it, as the server spells it.
	Raw json.RawMessage `json:"-"`
	// Fields are header fields for the user, if the server was asked for them.
	Fields []Field `json:"-"`
	// Refusal is what to answer the user if the request may not pass, if the server was asked for it.
	Refusal *Answer `json:"-"`
}

// A Field of a header.
type Field struct{ Name, Value string }

// An Answer is a response for the user of the application.
type Answer struct {
	Status      int
	ContentType string
	Fields      []Field
	Body        []byte
}

// AllFields are the header fields, those of the body included.
func (a *Answer) AllFields() []Field {
	about := []Field{{"Content-Type", a.ContentType}, {"Cache-Control", "no-store"}}
	return append(about, a.Fields...)
}

// Delay is how long a rule that queues holds the request back.
func (d *Decision) Delay() time.Duration {
	return time.Duration(min(max(d.DelayMS, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond
}

// isUserField is true for header fields of a decision; nothing else of the server's answer reaches a user.
func isUserField(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "x-ratelimit-") ||
		strings.HasPrefix(name, "x-rate-limit-")
}

// readDecision reads JSON that has to be a decision.
func readDecision(body []byte) (*Decision, bool) {
	var allowed struct {
		Allowed *bool `json:"allowed"`
	}
	decision := &Decision{Raw: body}
	if json.Unmarshal(body, &allowed) != nil || allowed.Allowed == nil || json.Unmarshal(body, decision) != nil {
		return nil, false
	}
	if decision.Mode == "" {
		decision.Mode = "store"
	}
	return decision, true
}
