module github.com/latchkey-go/latchkey/latchkeytest

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/latchkey-go/latchkey v0.0.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/latchkey-go/latchkey => ..
