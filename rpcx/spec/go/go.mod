module rpcx.dev/spec/client

go 1.21
