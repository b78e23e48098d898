package core

import "github.com/latchkey-go/latchkey/internal/session"

// Options returns what a client's options set, and the defaults of the others. A nil option does nothing.
func Options[O session.Setter](opts []O) session.Options {
	o := session.DefaultOptions()
	for _, opt := range opts {
		if any(opt) != nil {
			opt.SetClient(&o)
		}
	}
	return o
}
