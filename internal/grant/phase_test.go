package grant

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The transitions of the table are legal, and no others.
func TestTransitions(t *testing.T) {
	legal := map[[2]phase]bool{{waiting, held}: true, {held, released}: true, {held, lost}: true}
	for from := waiting; from <= lost; from++ {
		for to := waiting; to <= lost; to++ {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				x := &tenure{phase: from}
				if legal[[2]phase{from, to}] {
					x.become(to)
					require.Equal(t, to, x.phase)
				} else {
					require.Panics(t, func() { x.become(to) })
				}
			})
		}
	}
}
