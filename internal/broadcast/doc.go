// Package broadcast is how goroutines of many processes wait for something of which all are told at once.
package broadcast
