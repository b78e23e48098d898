module github.com/latchkey-go/latchkey/tools

go 1.25.0

require (
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/exp v0.0.0-20251023183803-a4bb9ffd2546
	golang.org/x/mod v0.38.0
	golang.org/x/tools v0.48.0
)

require golang.org/x/sync v0.22.0 // indirect
