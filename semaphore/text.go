package semaphore

import (
	"fmt"
	"log/slog"
)

// String is the number, the name and the token. If the hold has ended, it says why.
func (p *Permits) String() string {
	text := fmt.Sprintf("%d permits of %q with token %d", p.Count(), p.Name(), p.Token())
	if err := p.Err(); err != nil {
		text = fmt.Sprintf("%s, ended: %v", text, err)
	}
	return text
}

// LogValue is a group of name, count and token. If the hold has ended, it also has the reason.
func (p *Permits) LogValue() slog.Value {
	attributes := []slog.Attr{slog.String("name", p.Name()), slog.Int("count", p.Count()), slog.Int64("token", p.Token())}
	if err := p.Err(); err != nil {
		attributes = append(attributes, slog.String("ended", err.Error()))
	}
	return slog.GroupValue(attributes...)
}
