package latchkeyweb

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/look"
)

// sparkline is the hand-offs a second of the last minutes.
type sparkline struct {
	Lines []string // the points of each, in a box of 300 by 40; none: they are not counted, or not for long enough
	Most  float64  // a second
	Now   float64
	Over  string // for how long
}

// gap is for how long no page was open, where there is no line.
const gap = 5 * time.Second

// drawn draws what was counted.
func drawn(past []moment) (s sparkline) {
	for len(past) > 0 && !past[0].counted {
		past = past[1:]
	}
	if len(past) < 2 || !past[len(past)-1].counted {
		return s
	}
	begin, end := past[0].at, past[len(past)-1].at
	for _, m := range past {
		s.Most = max(s.Most, m.handOffs)
	}
	s.Now, s.Over = past[len(past)-1].handOffs, briefly(end.Sub(begin))
	const wide, high, line = 300.0, 40.0, 2.0
	var points []string
	for i, m := range past {
		if i > 0 && m.at.Sub(past[i-1].at) > gap {
			s.Lines, points = append(s.Lines, strings.Join(points, " ")), nil
		}
		x := wide * m.at.Sub(begin).Seconds() / end.Sub(begin).Seconds()
		y := high - line
		if s.Most > 0 {
			y -= (high - 2*line) * m.handOffs / s.Most
		}
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
	}
	s.Lines = append(s.Lines, strings.Join(points, " "))
	return s
}

// circle is a deadlock as a drawing: the waiters stand around, and an arrow goes from each to the one it waits for.
type circle struct {
	Size  int
	Nodes []node
}

// node is one of a circle.
type node struct {
	look.Link

	Number       int
	X, Y         float64 // of it
	FromX, FromY float64 // of the arrow to the next one
	ToX, ToY     float64
}

// circlesOf places them.
func circlesOf(found [][]look.Link) (all []circle) {
	const size, far, radius = 320, 105.0, 24.0
	for _, links := range found {
		c := circle{Size: size}
		at := func(i int, far float64) (x, y float64) {
			angle := 2*math.Pi*float64(i)/float64(len(links)) - math.Pi/2
			return size/2 + far*math.Cos(angle), size/2 + far*math.Sin(angle)
		}
		for i, l := range links {
			n := node{Link: l, Number: i + 1}
			n.X, n.Y = at(i, far)
			nextX, nextY := at(i+1, far)
			long := math.Hypot(nextX-n.X, nextY-n.Y)
			// Two who wait for each other have two arrows beside each other.
			aside := 0.0
			if len(links) == 2 {
				aside = 10
			}
			dx, dy := (nextX-n.X)/long, (nextY-n.Y)/long
			n.FromX, n.FromY = n.X+dx*radius-dy*aside, n.Y+dy*radius+dx*aside
			n.ToX, n.ToY = nextX-dx*(radius+8)-dy*aside, nextY-dy*(radius+8)+dx*aside
			c.Nodes = append(c.Nodes, n)
		}
		all = append(all, c)
	}
	return all
}
