// Package tollgate asks Tollgate, a distributed rate limiter, whether a request may pass.
//
//	client, err := tollgate.New(tollgate.Settings{}) // TOLLGATE_URL and TOLLGATE_DATA_TOKEN
//	decision, err := client.Check(ctx, tollgate.Request{APIKey: "abc", Endpoint: "GET /export/users"})
//	if !decision.Allowed { … }
//
// A client is safe for use by many goroutines. Middleware is in the package httplimit and in the modules chilimit,
// ginlimit and grpclimit; the side of callers of other limited APIs is in the package retry. This package needs nothing
// but the standard library.
package tollgate

// Version is that of the server with which this package is released.
const Version = "0.1.0"
