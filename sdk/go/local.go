package tollgate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"time"
)

const fallbackRule = "fallback"

// policyDecision is the decision of Open and Closed.
func policyDecision(allowed bool) *Decision {
	if allowed {
		return newDecision(localMembers{Allowed: true, Mode: "open"}, nil, nil)
	}
	one, milliseconds := int64(1), int64(1000)
	members := localMembers{Mode: "closed", RetryAfter: &one, RetryAfterMS: &milliseconds}
	return newDecision(members, nil, &Answer{
		Status:      503,
		ContentType: problemType,
		Fields:      []Field{{"Retry-After", "1"}},
		Body: []byte(`{"type":"about:blank","title":"Service unavailable","status":503,` +
			`"detail":"The rate limiter cannot be reached.","error":"limiter_unavailable","error_code":"limiter_unavailable"}`),
	})
}

// fallbackDecision is the decision of the fallback limiter, as one of a rule of that name.
func fallbackDecision(limit *Limit, outcome Outcome, wall time.Time) *Decision {
	capacity, remaining := int64(outcome.Limit), int64(outcome.Remaining)
	resetAt := ceil(wall.UnixNano()+int64(outcome.ResetAfter), int64(time.Second))
	members := localMembers{
		Allowed: outcome.Allowed, Limit: &capacity, Remaining: &remaining, ResetAt: &resetAt,
		Never: outcome.Never, Rule: fallbackRuleText(), Mode: "fallback",
	}
	if !outcome.Allowed && !outcome.Never {
		seconds := max(1, ceil(int64(outcome.RetryAfter), int64(time.Second)))
		milliseconds := max(1, ceil(int64(outcome.RetryAfter), int64(time.Millisecond)))
		members.RetryAfter, members.RetryAfterMS = &seconds, &milliseconds
	}
	fields := fallbackFields(limit, outcome, resetAt)
	if outcome.Allowed {
		return newDecision(members, fields, nil)
	}
	return newDecision(members, fields, fallbackRefusal(members, fields))
}

// localMembers are the members of a decision, in the order in which the server writes them.
type localMembers struct {
	Allowed      bool    `json:"allowed"`
	Limit        *int64  `json:"limit"`
	Remaining    *int64  `json:"remaining"`
	ResetAt      *int64  `json:"reset_at"`
	RetryAfter   *int64  `json:"retry_after"`
	RetryAfterMS *int64  `json:"retry_after_ms"`
	Never        bool    `json:"never,omitempty"`
	Rule         *string `json:"rule"`
	Mode         string  `json:"mode,omitempty"`
}

func fallbackRuleText() *string {
	name := fallbackRule
	return &name
}

func newDecision(members localMembers, fields []Field, refusal *Answer) *Decision {
	raw := encode(members)
	decision, _ := readDecision(raw)
	decision.Fields, decision.Refusal = fields, refusal
	return decision
}

func fallbackFields(limit *Limit, outcome Outcome, resetAt int64) []Field {
	policy := fmt.Sprintf(`"%s";q=%d;w=%d`, fallbackRule, limit.requests, ceil(int64(limit.window), int64(time.Second)))
	if outcome.Limit != limit.requests {
		policy += fmt.Sprintf(";tollgate-burst=%d", outcome.Limit)
	}
	state := fmt.Sprintf(`"%s";r=%d`, fallbackRule, outcome.Remaining)
	if outcome.NextUnit > 0 {
		state += fmt.Sprintf(";t=%d", ceil(int64(outcome.NextUnit), int64(time.Second)))
	}
	return []Field{
		{"X-RateLimit-Limit", strconv.FormatUint(outcome.Limit, 10)},
		{"X-RateLimit-Remaining", strconv.FormatUint(outcome.Remaining, 10)},
		{"X-RateLimit-Reset", strconv.FormatInt(resetAt, 10)},
		{"X-RateLimit-Resource", fallbackRule},
		{"RateLimit-Policy", policy},
		{"RateLimit", state},
	}
}

func fallbackRefusal(members localMembers, fields []Field) *Answer {
	document := struct {
		Type      string   `json:"type"`
		Title     string   `json:"title"`
		Status    int      `json:"status"`
		Detail    string   `json:"detail"`
		Violated  []string `json:"violated-policies"`
		Error     string   `json:"error"`
		Message   string   `json:"message"`
		ErrorCode string   `json:"error_code"`
		localMembers
	}{
		Type: "https://iana.org/assignments/http-problem-types#quota-exceeded", Title: "Quota exceeded", Status: 429,
		Detail: "The limit of the rule '" + fallbackRule + "' is reached.", Violated: []string{fallbackRule},
		Error: "rate_limited", ErrorCode: "rate_limited", localMembers: members,
	}
	document.Mode = "" // not for users
	if members.Never {
		document.Detail = "The request costs more than the rule '" + fallbackRule + "' ever allows at once."
		document.Message = "This request can never pass: its cost exceeds the limit."
		document.ErrorCode = "cost_too_high"
	} else {
		seconds := *members.RetryAfter
		document.Message = fmt.Sprintf("Too many requests. Retry after %ds.", seconds)
		// As the server: up to a tenth is added, so that callers do not come back together.
		header := seconds + rand.Int63n(seconds/10+1)
		fields = append([]Field{{"Retry-After", strconv.FormatInt(header, 10)}}, fields...)
	}
	return &Answer{Status: 429, ContentType: problemType, Fields: fields, Body: encode(document)}
}

// BadPath is what a user is told whose method or path can be read in more than one way, or who sent too long a text.
func BadPath(code, detail string) *Answer {
	document := struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{"about:blank", "Bad request", 400, detail, code}
	return &Answer{Status: 400, ContentType: problemType, Body: encode(document)}
}

const problemType = "application/problem+json"

// encode writes what consists of plain values, which cannot fail.
func encode(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte("{}")
	}
	return bytes.TrimRight(buffer.Bytes(), "\n")
}

func ceil(numerator, denominator int64) int64 {
	return (numerator + denominator - 1) / denominator
}
