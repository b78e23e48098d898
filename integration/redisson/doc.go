// Package redisson tests that processes of latchkey and of the real Redisson take turns at the same objects,
// in the versions that LATCHKEY_REDISSON lists. It needs what package internal/test/redistest/redisson needs.
// Without that its tests are skipped, which is said once, at the end; redisson in LATCHKEY_REQUIRE makes it a
// failure.
package redisson
