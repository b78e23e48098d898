package identity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Record is what a client tells of itself in Redis: a string in JSON, so that anybody can read it there.
type Record struct {
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid"`
	Program string   `json:"program,omitempty"` // its name without the path
	Label   string   `json:"label"`
	Version string   `json:"version,omitempty"` // of this library; empty where the build does not say
	Opened  int64    `json:"opened"`            // ms since 1970, by the clock of the client
	Tenures []Tenure `json:"tenures,omitempty"` // the oldest of those that have lasted, oldest first
	Waits   []Wait   `json:"waits,omitempty"`   // of those that have lasted, and hold something meanwhile
}

// Tenure is what a record says of one owner id.
type Tenure struct {
	Number string `json:"n"`               // behind the client in the owner id
	Since  int64  `json:"since"`           // ms since 1970, by the clock of the server if that is known
	Holds  bool   `json:"holds,omitempty"` // otherwise it waits
	Key    Name   `json:"k,omitempty"`     // what is held or waited for, with the prefix; empty: the record had no room
	Note   string `json:"note,omitempty"`
}

// The bounds of what a record says.
const (
	MaxTenures = 100
	MaxLabel   = 100
	// MaxKeysSize is how many bytes of the keys of all tenures are told.
	MaxKeysSize = 32 << 10
	maxRecord   = 512 << 10 // with the longest notes and names, of which JSON has each byte as six
)

// New returns the record of a client of this process. An empty label is the name of the program.
func New(label string, opened time.Time) Record {
	r := process()
	r.Label, r.Opened = label, opened.UnixMilli()
	if label == "" {
		r.Label = r.Program
	}
	return r
}

// process is what is the same for all clients of this one.
var process = sync.OnceValue(func() Record {
	r := Record{PID: os.Getpid(), Version: version()}
	if host, err := os.Hostname(); err == nil {
		r.Host = Clip(host, MaxLabel)
	}
	if len(os.Args) > 0 {
		r.Program = Clip(filepath.Base(os.Args[0]), MaxLabel)
	}
	return r
})

// Module is the path of this library, with which the names of its functions begin.
const Module = "github.com/latchkey-go/latchkey"

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == Module {
			return strings.Trim(m.Version, "()") // of a working tree: (devel)
		}
	}
	return ""
}

// String is the record as it stands in Redis.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it has nothing that JSON has not
	}
	return string(text)
}

// Parse undoes String. It reports false for what no client writes.
func Parse(text string) (r Record, ok bool) {
	if len(text) > maxRecord || json.Unmarshal([]byte(text), &r) != nil || len(r.Tenures) > MaxTenures || len(r.Waits) > MaxWaits {
		return Record{}, false
	}
	for _, s := range []*string{&r.Host, &r.Program, &r.Label, &r.Version} {
		*s = Clip(*s, MaxLabel)
	}
	for i := range r.Tenures {
		r.Tenures[i].Note = Clip(r.Tenures[i].Note, MaxNote)
	}
	for i := range r.Waits {
		r.Waits[i].clip()
	}
	return r, true
}

// OwnerOf is an owner id without what stands behind its number, as of a writer.
func OwnerOf(field string) string {
	client, rest, _ := strings.Cut(field, ":")
	number, _, _ := strings.Cut(rest, ":")
	return client + ":" + number
}

// Party is the inside of the root package's Identity, which has the same fields.
type Party struct {
	Client, Host            string
	PID                     int
	Program, Label, Version string
	Opened, Since           time.Time
	Note                    string
}

// PartyOf returns who has that owner id, by the record of its client.
func PartyOf(owner string, r Record) Party {
	client, rest, _ := strings.Cut(owner, ":")
	number, _, _ := strings.Cut(rest, ":")
	p := Party{Client: client, Host: r.Host, PID: r.PID, Program: r.Program, Label: r.Label, Version: r.Version}
	if r.Opened > 0 {
		p.Opened = time.UnixMilli(r.Opened)
	}
	for _, t := range r.Tenures {
		if t.Number == number {
			p.Since, p.Note = time.UnixMilli(t.Since), t.Note
			break
		}
	}
	return p
}
