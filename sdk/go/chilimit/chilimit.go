// Package chilimit is middleware for chi. It is that of net/http, and knows the templates of chi's routes.
//
//	limiter, err := chilimit.New(client, httplimit.Options{})
//	router.Use(limiter.Middleware)
package chilimit

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// New makes a limiter, whose Middleware is for Use.
func New(client *tollgate.Client, options httplimit.Options) (*httplimit.Limiter, error) {
	options.RefuseEmptySegments = true // {id} matches nothing, too
	return httplimit.New(client, options)
}

// RouteTemplate is an Options.Endpoint that asks by "METHOD /orders/{id}" where a route of the router matches, and by
// the path of the request where none does.
func RouteTemplate(router chi.Routes) func(*http.Request) string {
	return func(r *http.Request) string {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		path := r.URL.RawPath // as chi chooses between the two
		if path == "" {
			path = r.URL.Path
		}
		if template := router.Find(chi.NewRouteContext(), method, path); template != "" {
			return method + " " + template
		}
		return ""
	}
}
