// Package invariant is the switch of assertions that only tests pay for.
package invariant

// Checked makes a broken assertion panic. Tests switch it on before they run, and no code writes it after
// that: internal/test/redistest does so for every test that needs a server. In a program it is false.
var Checked bool
