package lua

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts so
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// Texts returns the texts of the scripts for a name of a lock, a read-write lock or a semaphore, by what they
// do: as their files are called, without the folder. It is for tests that watch what Redis runs: see [SHA].
func Texts(k *Keys) map[string]string {
	texts := map[string]string{"renew": renewals[k.family]}
	scripts := map[string]*Script{
		"acquire": acquire[k.family], "offer": offer[k.family], "release": release[k.family], "force": force[k.family],
		"inspect": inspect[k.family], "leave": leave[k.family],
	}
	switch k.family {
	case ReadWrite:
		scripts["downgrade"] = downgrade
	case Leased, Plain:
		scripts = map[string]*Script{
			"trade": permitTrade[k.family], "capacity": permitCapacity[k.family], "inspect": permitInspect[k.family],
			"delete": permitDelete[k.family], "leave": leave[k.family],
		}
	}
	for name, s := range scripts {
		texts[name] = s.text(k.variant)
	}
	if k.family == Plain { // no lease
		delete(texts, "renew")
	}
	return texts
}

// SHA is what Redis calls the script with a text.
func SHA(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// registered are all scripts. None is added once the program runs: their texts, by file.
var registered = map[string][]func() []string{}

func register(path string, texts func() []string) {
	registered[path] = append(registered[path], texts)
}

// Composed returns what Redis runs of each script, by its file, as "lock/acquire": with all that it includes,
// and without comments. There are several texts of a script that names of several kinds share. What a cluster
// client and one without channels run differs in a few lines, and is not here.
func Composed() map[string][]string {
	composed := map[string][]string{}
	for path, all := range registered {
		name := strings.TrimSuffix(path, ".lua")
		for _, texts := range all {
			if text := texts()[0]; !slices.Contains(composed[name], text) {
				composed[name] = append(composed[name], text)
			}
		}
		slices.Sort(composed[name])
	}
	return composed
}

var names = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for path, all := range registered {
		for _, texts := range all {
			for _, text := range texts() {
				names[SHA(text)] = strings.TrimSuffix(path, ".lua")
			}
		}
	}
	return names
})

// NameOf is the name of the script that Redis calls so: its file, as "lock/acquire"; empty for a script that
// is none of this package. Of several files that make a script it is the last. It is for tests that watch
// what is sent. It is safe for concurrent use.
func NameOf(sha string) string { return names()[sha] }
