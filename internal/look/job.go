package look

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

// Run is one of the last runs of a job.
type Run struct {
	Tick    time.Time `json:"tick"`
	Attempt int       `json:"attempt"`
	Began   time.Time `json:"began"`
	Took    float64   `json:"took_seconds,omitempty"`
	Host    Told      `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Label   Told      `json:"label,omitempty"`
	Client  Told      `json:"client"`
	End     string    `json:"end"`
	Error   Told      `json:"error,omitempty"`
}

// addJob says where a job has come to.
func (r *Report) addJob(ctx context.Context, client *latchkey.Client) error {
	s, err := once.InspectJob(ctx, client, string(r.Name))
	if err != nil {
		return err
	}
	if !s.Next.IsZero() {
		r.Next = &s.Next
	}
	for _, j := range s.Runs {
		r.Runs = append(r.Runs, Run{
			Tick: j.Tick, Attempt: j.Attempt, Began: j.Began, Took: j.Took.Seconds(), Host: Told(j.By.Host), PID: j.By.PID,
			Label: Told(j.By.Label), Client: Told(j.By.Client), End: j.End.String(), Error: Told(j.Err),
		})
	}
	return nil
}
