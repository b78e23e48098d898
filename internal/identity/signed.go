package identity

import "time"

// Signed is what a client says of itself beside what it does, for those who ask when its own record may be gone.
type Signed struct {
	Record
	Client string `json:"client"`
}

// Sign returns what a client says with this id and label, which was opened then. untold: it has its id alone.
func Sign(id, label string, opened time.Time, untold bool) Signed {
	s := Signed{Client: id}
	if !untold {
		s.Record = New(label, opened)
	}
	return s
}

// Party is who it was. Anybody may have written the text that it was read from: so it is within bounds.
func (s Signed) Party() Party {
	p := Party{
		Client: Clip(s.Client, MaxLabel+RandomLength), Host: Clip(s.Host, MaxLabel), PID: s.PID, Program: Clip(s.Program, MaxLabel),
		Label: Clip(s.Label, MaxLabel), Version: Clip(s.Version, MaxLabel),
	}
	if s.Opened > 0 {
		p.Opened = time.UnixMilli(s.Opened)
	}
	return p
}
