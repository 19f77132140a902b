package ginlimit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
	"github.com/tollgate-dev/tollgate/sdk/go/httplimit"
)

// ask sends a request through a router, and returns what the server was asked about and the status.
func ask(t *testing.T, status int, body string, router func(*tollgate.Client) *gin.Engine, target string) (string, int) {
	t.Helper()
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Endpoint string `json:"endpoint"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		asked = request.Endpoint
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	client, err := tollgate.New(tollgate.Settings{URL: server.URL, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w := httptest.NewRecorder()
	router(client).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return asked, w.Code
}

func router(make func(*tollgate.Client, httplimit.Options) (gin.HandlerFunc, error), raw bool) func(*tollgate.Client) *gin.Engine {
	return func(client *tollgate.Client) *gin.Engine {
		gin.SetMode(gin.ReleaseMode)
		limit, err := make(client, httplimit.Options{})
		if err != nil {
			panic(err)
		}
		engine := gin.New()
		engine.UseRawPath, engine.RedirectFixedPath, engine.RemoveExtraSlash = raw, true, true
		engine.Use(limit)
		engine.GET("/api/orders/:order", func(c *gin.Context) { c.String(http.StatusOK, "ok") })
		return engine
	}
}

func TestThePathIsTheOneThatGinReads(t *testing.T) {
	for _, raw := range []bool{false, true} {
		for target, expected := range map[string]string{
			"/api/orders/1":     "GET /api/orders/1",
			"/api/orders/a%2Fb": "GET /api/orders/a%2Fb",
			"/api//orders/1":    "",
			"/api/../orders/1":  "",
			"/api/orders/%2e":   "",
			"/nowhere":          "GET /nowhere",
		} {
			if asked, _ := ask(t, 200, `{"allowed":true}`, router(New, raw), target); asked != expected {
				t.Errorf("%s is asked as %s", target, asked)
			}
		}
	}
}

func TestTemplatesAreThoseOfTheRoute(t *testing.T) {
	for target, expected := range map[string]string{
		"/api/orders/1": "GET /api/orders/{order}",
		"/nowhere":      "GET /nowhere",
	} {
		if asked, _ := ask(t, 200, `{"allowed":true}`, router(WithRouteTemplates, false), target); asked != expected {
			t.Errorf("%s is asked as %s", target, asked)
		}
	}
}

func TestARefusedRequestReachesNoHandler(t *testing.T) {
	body := `{"allowed":false,"error_code":"` + strings.Repeat("x", 10) + `"}`
	if _, status := ask(t, 429, body, router(New, false), "/api/orders/1"); status != 429 {
		t.Error(status)
	}
}
