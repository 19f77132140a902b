// Package ginlimit is middleware for gin.
//
//	limiter, err := ginlimit.New(client, httplimit.Options{})
//	router.Use(limiter)
package ginlimit

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// New makes a handler for Use.
func New(client *tollgate.Client, options httplimit.Options) (gin.HandlerFunc, error) {
	options.RefuseEmptySegments = true // :id matches nothing, too
	limiter, err := httplimit.New(client, options)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		pass := limiter.Begin(c.Writer, c.Request)
		if pass == nil {
			c.Abort()
			return
		}
		result := httplimit.Result{Status: http.StatusInternalServerError, Header: http.Header{}} // if it panics
		defer func() { pass.Finish(result) }()
		c.Next()
		result = httplimit.Result{Status: c.Writer.Status(), Header: c.Writer.Header()}
	}, nil
}

// WithRouteTemplates makes a handler that asks by "METHOD /orders/{id}" where a route matched, and by the path of the
// request where none did.
func WithRouteTemplates(client *tollgate.Client, options httplimit.Options) (gin.HandlerFunc, error) {
	options.Endpoint = func(r *http.Request) string {
		template, _ := r.Context().Value(templateKey{}).(string)
		return template
	}
	limit, err := New(client, options)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), templateKey{}, routeTemplate(c)))
		limit(c)
	}, nil
}

type templateKey struct{}

func routeTemplate(c *gin.Context) string {
	path := c.FullPath()
	if path == "" {
		return ""
	}
	segments := strings.Split(path, "/")
	for index, segment := range segments {
		switch {
		case strings.HasPrefix(segment, ":"):
			segments[index] = "{" + segment[1:] + "}"
		case strings.HasPrefix(segment, "*"):
			segments[index] = "*"
		}
	}
	method := c.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return method + " " + strings.Join(segments, "/")
}
