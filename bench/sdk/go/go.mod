module github.com/tollgate-dev/tollgate/bench/sdk/go

go 1.22

require (
	github.com/tollgate-dev/tollgate/sdk/go v0.1.0
	github.com/ulule/limiter/v3 v3.11.2
)

require github.com/pkg/errors v0.9.1 // indirect

replace github.com/tollgate-dev/tollgate/sdk/go => ../../../sdk/go
