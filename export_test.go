package latchkey

// ErrCredentials is errCredentials.
var ErrCredentials = errCredentials
