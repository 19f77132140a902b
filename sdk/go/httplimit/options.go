package httplimit

import (
	"net/http"
	"strings"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// Options of the middleware. The zero value limits by the address of the connection.
type Options struct {
	// Identify returns further fields of the request to ask about: APIKey, UserID, Tier, … Only what the application has
	// verified belongs there.
	Identify func(*http.Request) tollgate.Request
	// Skip names requests that are not asked about.
	Skip func(*http.Request) bool
	// Cost is 1 if nil.
	Cost func(*http.Request) uint64
	// Costs are amounts of further meters; nil for requests that have none.
	Costs func(*http.Request) tollgate.Costs
	// Settle returns the real amounts once the response is there. Requests that have Costs are then reserved before the
	// handler runs, and settled after it, also if it panics or the caller goes away.
	Settle func(*http.Request, Result) tollgate.Costs
	// Shadow asks and reports, but passes everything on.
	Shadow bool
	// OnDenied answers in place of the server's refusal, if it returns true. Header fields of the decision are set.
	OnDenied func(http.ResponseWriter, *http.Request, *tollgate.Decision) bool
	// OnDecision is told every decision.
	OnDecision func(*http.Request, *tollgate.Decision)
	// TrustedProxies are networks whose X-Forwarded-For counts, such as 10.0.0.0/8.
	TrustedProxies []string
	// CaseInsensitivePaths is for routers that fold case. Write rules in lower case.
	CaseInsensitivePaths bool
	// RefuseEmptySegments answers 400 to paths such as /a//b: for routers that take nothing for a segment, and would run
	// the handler of /a/{id}/b, whereas Tollgate reads /a/b. chilimit and ginlimit set it.
	RefuseEmptySegments bool
	// Endpoint replaces "METHOD /path", for example by the template of the route.
	Endpoint func(*http.Request) string
}

// A Result is what became of a request.
type Result struct {
	Status int
	Header http.Header
}

// OnlyHeader returns the value of a field if there is exactly one of that name, and no comma in it: two could be read
// in two ways.
func OnlyHeader(r *http.Request, name string) string {
	values := r.Header.Values(name)
	if len(values) != 1 || strings.Contains(values[0], ",") {
		return ""
	}
	return strings.TrimSpace(values[0])
}

// endpoint is "METHOD /path" of the path as a router reads it, still escaped. Routers answer HEAD by the handler of GET.
func endpoint(r *http.Request, foldCase bool) string {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path := r.URL.EscapedPath()
	if foldCase {
		path = folded(path)
	}
	return method + " " + path
}

// ambiguous says what is wrong with a path that the router and Tollgate would read differently.
//
// Tollgate resolves dot segments. A router does not, or answers by a redirect: chi and gin run the handler of
// /files/* for /files/../x, and ServeMux does for /files/%2e%2e/x. Browsers and clients resolve them before they send.
func ambiguous(path string, refuseEmpty bool) *tollgate.APIError {
	segments := strings.Split(path, "/")
	for index, segment := range segments {
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".", "..":
			return malformed("path_dot_segment", "the path has a dot segment, which servers read differently")
		case "":
			if refuseEmpty && index > 0 && index < len(segments)-1 {
				return malformed("path_empty_segment", "the path has an empty segment, which servers read differently")
			}
		}
	}
	return nil
}

func malformed(code, detail string) *tollgate.APIError {
	return &tollgate.APIError{Status: http.StatusBadRequest, Code: code, Detail: detail, Field: "endpoint"}
}

// folded makes letters lower case, escaped ones too.
func folded(path string) string {
	var out strings.Builder
	for index := 0; index < len(path); index++ {
		if letter, ok := escapedLetter(path[index:]); ok {
			out.WriteByte(letter)
			index += 2
			continue
		}
		out.WriteByte(path[index])
	}
	return strings.ToLower(out.String())
}

func escapedLetter(text string) (byte, bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	high, low := strings.IndexByte(hexDigits, lower(text[1])), strings.IndexByte(hexDigits, lower(text[2]))
	if high < 0 || low < 0 {
		return 0, false
	}
	letter := lower(byte(high<<4 | low))
	return letter, letter >= 'a' && letter <= 'z'
}

const hexDigits = "0123456789abcdef"

func lower(char byte) byte {
	if char >= 'A' && char <= 'Z' {
		return char + 'a' - 'A'
	}
	return char
}
