package latchkeytusd

// Key is key.
func Key(id string) string { return key(id) }
