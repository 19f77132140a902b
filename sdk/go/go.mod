module github.com/tollgate-dev/tollgate/sdk/go

go 1.22
