module github.com/tollgate-dev/tollgate/sdk/go/chilimit

go 1.24

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/tollgate-dev/tollgate/sdk/go v0.1.0
)

replace github.com/tollgate-dev/tollgate/sdk/go => ../
