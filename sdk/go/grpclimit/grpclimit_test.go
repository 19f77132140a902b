package grpclimit

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// server is a gRPC server behind interceptors, which ask a limiter that answers what a test says.
func server(t *testing.T, code int, body string, options Options) (healthpb.HealthClient, *tollgate.Request) {
	t.Helper()
	asked := &tollgate.Request{}
	limits := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(asked)
		w.Header().Set("X-RateLimit-Limit", "3")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(limits.Close)
	client, err := tollgate.New(tollgate.Settings{URL: limits.URL, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	limiter := New(client, options)
	serving := grpc.NewServer(grpc.UnaryInterceptor(limiter.Unary), grpc.StreamInterceptor(limiter.Stream))
	healthpb.RegisterHealthServer(serving, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = serving.Serve(listener) }()
	t.Cleanup(serving.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return healthpb.NewHealthClient(connection), asked
}

func TestAnAllowedCallHasTheFieldsOfTheDecision(t *testing.T) {
	client, asked := server(t, 200, `{"allowed":true}`, Options{})
	var header metadata.MD
	if _, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if header.Get("x-ratelimit-limit")[0] != "3" || asked.IP != "127.0.0.1" ||
		asked.Endpoint != "POST /grpc.health.v1.Health/Check" {
		t.Error(header, asked)
	}
}

func TestARefusedCallSaysWhenToComeBack(t *testing.T) {
	client, _ := server(t, 429, `{"allowed":false,"retry_after_ms":1500}`, Options{})
	_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{})
	state := status.Convert(err)
	if state.Code() != codes.ResourceExhausted || len(state.Details()) != 1 {
		t.Fatal(err)
	}
	if info := state.Details()[0].(*errdetails.RetryInfo); info.RetryDelay.AsDuration() != 1500*time.Millisecond {
		t.Error(info)
	}
}

func TestAStreamIsAskedAboutOnce(t *testing.T) {
	client, asked := server(t, 503, `{"allowed":false,"error_code":"store_unavailable"}`, Options{})
	stream, err := client.Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable || asked.Endpoint != "POST /grpc.health.v1.Health/Watch" {
		t.Error(err, asked)
	}
}

func TestSkipShadowAndMalformedPaths(t *testing.T) {
	all := func(string) bool { return true }
	refused := `{"allowed":false}`
	for _, test := range []struct {
		options Options
		code    int
		body    string
		want    codes.Code
	}{
		{Options{Skip: all}, 429, refused, codes.OK},
		{Options{Shadow: true}, 429, refused, codes.OK},
		{Options{}, 400, `{"code":"path_too_long"}`, codes.InvalidArgument},
		{Options{}, 401, `{"code":"no_token"}`, codes.OK},
	} {
		client, _ := server(t, test.code, test.body, test.options)
		if _, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{}); status.Code(err) != test.want {
			t.Errorf("%d %s: %v", test.code, test.body, err)
		}
	}
}
