package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/chilimit"
	"github.com/tollgate-dev/tollgate/sdk/go/ginlimit"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// frameworks make the example application.
var frameworks = map[string]func(*tollgate.Client) (http.Handler, error){
	"nethttp": netHTTP,
	"chi":     withChi,
	"gin":     withGin,
}

// serve serves until standard input ends.
func serve(framework string) error {
	client, err := newClient()
	if err != nil {
		return err
	}
	application, ok := frameworks[framework]
	if !ok {
		return fmt.Errorf("no framework %q", framework)
	}
	handler, err := application(client)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("ready http://%s\n", listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, handler)
}

func netHTTP(client *tollgate.Client) (http.Handler, error) {
	limiter, err := httplimit.New(client, options())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/orders/{order}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"order":%q}`, r.PathValue("order"))
	})
	mux.HandleFunc("POST /api/orders", createOrder)
	mux.HandleFunc("GET /api/fail", fail)
	mux.HandleFunc("GET /health", health)
	mux.HandleFunc("POST /api/complete/{tokens}", func(w http.ResponseWriter, r *http.Request) {
		complete(w, r.PathValue("tokens"))
	})
	return middleware.Recoverer(limiter.Middleware(mux)), nil
}

func withChi(client *tollgate.Client) (http.Handler, error) {
	limiter, err := chilimit.New(client, options())
	if err != nil {
		return nil, err
	}
	router := chi.NewRouter()
	router.Use(middleware.Recoverer, limiter.Middleware)
	router.Get("/api/orders/{order}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"order":%q}`, chi.URLParam(r, "order"))
	})
	router.Post("/api/orders", createOrder)
	router.Get("/api/fail", fail)
	router.Get("/health", health)
	router.Post("/api/complete/{tokens}", func(w http.ResponseWriter, r *http.Request) {
		complete(w, chi.URLParam(r, "tokens"))
	})
	return router, nil
}

func withGin(client *tollgate.Client) (http.Handler, error) {
	limit, err := ginlimit.New(client, options())
	if err != nil {
		return nil, err
	}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(gin.RecoveryWithWriter(os.Stderr), limit)
	router.GET("/api/orders/:order", func(c *gin.Context) {
		fmt.Fprintf(c.Writer, `{"order":%q}`, c.Param("order"))
	})
	router.POST("/api/orders", gin.WrapF(createOrder))
	router.GET("/api/fail", gin.WrapF(fail))
	router.GET("/health", gin.WrapF(health))
	router.POST("/api/complete/:tokens", func(c *gin.Context) { complete(c.Writer, c.Param("tokens")) })
	return router, nil
}

func createOrder(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"created":true}`)
}

func fail(http.ResponseWriter, *http.Request) { panic("this handler fails") }

func health(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// complete uses as many tokens as its path says, and fails for "fail".
func complete(w http.ResponseWriter, tokens string) {
	used, err := strconv.ParseUint(tokens, 10, 32)
	if err != nil {
		panic(err)
	}
	w.Header().Set("X-Tokens", strconv.FormatUint(used, 10))
	fmt.Fprintf(w, `{"tokens":%d}`, used)
}
