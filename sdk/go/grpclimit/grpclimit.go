// Package grpclimit is server-side interceptors for gRPC, unary and stream.
//
//	limiter, err := grpclimit.New(client, grpclimit.Options{})
//	grpc.NewServer(grpc.UnaryInterceptor(limiter.Unary), grpc.StreamInterceptor(limiter.Stream))
package grpclimit

import (
	"context"
	"log"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	tollgate "github.com/tollgate-dev/tollgate/sdk/go"
)

// Options of the interceptors. The zero value limits by the address of the connection.
type Options struct {
	// Identify returns further fields of the request to ask about. Only what the application has verified belongs there.
	Identify func(ctx context.Context, method string) tollgate.Request
	// Skip names methods that are not asked about, such as those of health checks.
	Skip func(method string) bool
	// Shadow asks and reports, but passes everything on.
	Shadow bool
	// OnDecision is told every decision.
	OnDecision func(method string, decision *tollgate.Decision)
}

// A Limiter asks Tollgate before a method runs: with the endpoint "POST /package.Service/Method", which is what a call
// of gRPC is over HTTP.
type Limiter struct {
	client  *tollgate.Client
	options Options
}

// New makes a limiter.
func New(client *tollgate.Client, options Options) *Limiter {
	return &Limiter{client: client, options: options}
}

// Unary is for grpc.UnaryInterceptor.
func (l *Limiter) Unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	fields, err := l.ask(ctx, info.FullMethod)
	if headerErr := grpc.SetHeader(ctx, fields); headerErr != nil {
		log.Printf("header fields of a decision were not set: %v", headerErr)
	}
	if err != nil {
		return nil, err
	}
	return handler(ctx, request)
}

// Stream is for grpc.StreamInterceptor. A stream is asked about once, when it begins.
func (l *Limiter) Stream(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	fields, err := l.ask(stream.Context(), info.FullMethod)
	if headerErr := stream.SetHeader(fields); headerErr != nil {
		log.Printf("header fields of a decision were not set: %v", headerErr)
	}
	if err != nil {
		return err
	}
	return handler(server, stream)
}

func (l *Limiter) ask(ctx context.Context, method string) (metadata.MD, error) {
	if l.options.Skip != nil && l.options.Skip(method) {
		return nil, nil
	}
	var request tollgate.Request
	if l.options.Identify != nil {
		request = l.options.Identify(ctx, method)
	}
	if request.IP == "" {
		request.IP = address(ctx)
	}
	if request.Endpoint == "" {
		request.Endpoint = "POST " + method
	}
	decision, err := l.client.CheckForUser(ctx, request)
	if err != nil {
		return nil, l.withoutDecision(err)
	}
	if l.options.OnDecision != nil {
		l.options.OnDecision(method, decision)
	}
	if l.options.Shadow {
		return nil, nil
	}
	if !decision.Allowed {
		return header(decision.Refusal.Fields), refusal(decision)
	}
	return header(decision.Fields), wait(ctx, decision.Delay())
}

func (l *Limiter) withoutDecision(err error) error {
	if l.options.Shadow {
		return nil
	}
	if problem, isPath := tollgate.AsInvalidPath(err); isPath {
		return status.Error(codes.InvalidArgument, problem.Detail)
	}
	return status.FromContextError(err).Err()
}

// refusal is RESOURCE_EXHAUSTED for the caller's own limits and UNAVAILABLE for the rest, with RetryInfo if waiting helps.
func refusal(decision *tollgate.Decision) error {
	code, message := codes.ResourceExhausted, "rate limited"
	if decision.Refusal.Status == 503 {
		code, message = codes.Unavailable, "limits cannot be checked at the moment"
	}
	state := status.New(code, message)
	if wait := decision.RetryAfterMS; wait != nil {
		delay := durationpb.New(time.Duration(min(max(*wait, 0), maxWaitMS)) * time.Millisecond)
		if detailed, err := state.WithDetails(&errdetails.RetryInfo{RetryDelay: delay}); err == nil {
			state = detailed
		}
	}
	return state.Err()
}

const maxWaitMS = int64(365 * 24 * time.Hour / time.Millisecond)

func header(fields []tollgate.Field) metadata.MD {
	md := metadata.MD{}
	for _, field := range fields {
		md.Append(strings.ToLower(field.Name), field.Value)
	}
	return md
}

func address(ctx context.Context) string {
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return ""
	}
	parsed, err := netip.ParseAddrPort(from.Addr.String())
	if err != nil {
		return ""
	}
	return parsed.Addr().WithZone("").Unmap().String()
}

func wait(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
