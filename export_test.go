package latchkey

// Parse is parse, for the tests: it reads the URL of Open, and dials nothing.
var Parse = parse

// ErrCredentials is errCredentials.
var ErrCredentials = errCredentials
