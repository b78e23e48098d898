package lua

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts so
	"encoding/hex"
)

// Texts returns the texts of the scripts for a name of a lock or of a read-write lock, by what they do: as
// their files are called, without the folder. It is for tests that watch what Redis runs: see [SHA].
func Texts(k *Keys) map[string]string {
	texts := map[string]string{"renew": renewals[k.family]}
	for name, s := range map[string]*Script{
		"acquire": acquire[k.family], "offer": offer[k.family], "release": release[k.family], "force": force[k.family],
		"inspect": inspect[k.family], "leave": leave[k.family],
	} {
		texts[name] = s.text(k.variant)
	}
	if k.family == ReadWrite {
		texts["downgrade"] = downgrade.text(k.variant)
	}
	return texts
}

// SHA is what Redis calls the script with a text.
func SHA(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
