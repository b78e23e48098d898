package main

import (
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colors are those of Okabe and Ito, which everybody can tell apart.
var colors = map[string]color.Color{
	"floor": color.Gray{0x99}, "x/sync semaphore": color.Gray{0x99}, "ping-pong": color.Gray{0x99}, "ping-pong with pauses": color.Gray{0x99}, "no lock": color.Gray{0x99},
	"rlock": rgb(0xd55e00), "rlock lingering": rgb(0xd55e00), "fairlock": rgb(0xe69f00), "redisson": rgb(0x000000), "rueidislock": rgb(0x0072b2), "redislock": rgb(0x009e73),
	"redsync": rgb(0xcc79a7), "etcd": rgb(0x56b4e9), "watch": rgb(0x0072b2), "market lock": rgb(0xe69f00), "item lock": rgb(0xd55e00),
}

func rgb(x uint32) color.Color { return color.RGBA{uint8(x >> 16), uint8(x >> 8), uint8(x), 0xff} }

// shapes tell the contenders apart also without colors.
var shapes = map[string]draw.GlyphDrawer{
	"floor": draw.CrossGlyph{}, "x/sync semaphore": draw.PlusGlyph{}, "ping-pong": draw.CrossGlyph{}, "ping-pong with pauses": draw.PlusGlyph{}, "no lock": draw.CrossGlyph{},
	"rlock": draw.CircleGlyph{}, "rlock lingering": draw.RingGlyph{}, "fairlock": draw.SquareGlyph{}, "redisson": draw.CrossGlyph{}, "rueidislock": draw.TriangleGlyph{}, "redislock": draw.PyramidGlyph{},
	"redsync": draw.BoxGlyph{}, "etcd": draw.RingGlyph{}, "watch": draw.TriangleGlyph{}, "market lock": draw.SquareGlyph{}, "item lock": draw.CircleGlyph{},
}

// dots is a chart of one figure of many contenders in some scenarios: a line for each scenario, on a
// logarithmic scale, which dots do not distort as bars would.
type dots struct {
	file, title, axis string
	scenarios         []string
	of                func(Round) float64
}

func charts(r *Results, out string) error {
	for _, c := range []dots{
		{"throughput.svg", "Acquisitions per second", "per second, more is better", []string{"uncontended", "keys", "one process", "fleet", "fleet 1 ms"}, rate},
		{"longest.svg", "Longest wait", "ms, less is better", []string{"one process", "fleet", "fleet 1 ms"}, func(r Round) float64 { return r.Longest / 1000 }},
		{"handoff.svg", "From Unlock to Lock in another process, median", "µs, less is better", []string{"hand-off"}, func(r Round) float64 { return r.HandoffP50 }},
	} {
		if err := c.draw(r, out); err != nil {
			return err
		}
	}
	return errors.Join(commandsChart(r, out), barsChart(r, out))
}

func (c dots) draw(r *Results, out string) error {
	p := newPlot(c.title)
	p.X.Label.Text = c.axis + " (logarithmic)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	var labels []string
	points := map[string]plotter.XYs{}
	var names []string
	for _, scenario := range slices.Backward(c.scenarios) {
		rows := r.rows(scenario)
		if len(rows) == 0 {
			continue
		}
		for i, row := range rows {
			x := row.median(c.of)
			if x <= 0 {
				continue
			}
			if !slices.Contains(names, row.Contender) {
				names = append(names, row.Contender)
			}
			offset := 0.5 * (float64(i)/float64(max(len(rows)-1, 1)) - 0.5) // so that none hides another
			points[row.Contender] = append(points[row.Contender], plotter.XY{X: x, Y: float64(len(labels)) - offset})
		}
		labels = append(labels, scenario)
	}
	if len(names) == 0 { // a logarithmic scale of nothing cannot be drawn
		return nil
	}
	p.NominalY(labels...)
	p.Y.Padding = vg.Points(14)
	p.Add(plotter.NewGrid())
	legend := newLegend()
	for _, name := range ordered(names) {
		s, err := plotter.NewScatter(points[name])
		if err != nil {
			return err
		}
		s.GlyphStyle = glyph(name)
		p.Add(s)
		legend.Add(name, s)
	}
	p.Y.Min, p.Y.Max = -0.5, float64(len(labels))-0.5
	widen(&p.X)
	return save(p, legend, filepath.Join(out, c.file), vg.Length(90+62*len(labels)))
}

// commandsChart shows the commands per acquisition for numbers of waiters and of processes.
func commandsChart(r *Results, out string) error {
	for name, axis := range map[string]string{"waiters": "waiting goroutines of one process", "processes": "waiting processes"} {
		rows := r.rows(name)
		if len(rows) == 0 {
			continue
		}
		p := newPlot("Commands per acquisition and its release")
		p.X.Label.Text, p.Y.Label.Text = axis+" (logarithmic)", "commands (logarithmic)"
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
		p.Add(plotter.NewGrid())
		points := map[string]plotter.XYs{}
		var names []string
		for _, row := range rows {
			y := row.median(func(r Round) float64 { return r.Commands })
			if y <= 0 || row.median(rate) == 0 {
				continue
			}
			if !slices.Contains(names, row.Contender) {
				names = append(names, row.Contender)
			}
			points[row.Contender] = append(points[row.Contender], plotter.XY{X: float64(row.X), Y: y})
		}
		if len(names) == 0 {
			continue
		}
		legend := newLegend()
		for _, contender := range ordered(names) {
			line, dots, err := plotter.NewLinePoints(points[contender])
			if err != nil {
				return err
			}
			line.Color, line.Width, dots.GlyphStyle = colors[contender], vg.Points(1.5), glyph(contender)
			p.Add(line, dots)
			legend.Add(contender, line, dots)
		}
		widen(&p.X)
		widen(&p.Y)
		if err := save(p, legend, filepath.Join(out, "commands-"+name+".svg"), 300); err != nil {
			return err
		}
	}
	return nil
}

// ordered are names in the order of the tables.
func ordered(names []string) []string {
	place := func(name string) int {
		return slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
	}
	slices.SortFunc(names, func(a, b string) int { return place(a) - place(b) })
	return names
}

func glyph(name string) draw.GlyphStyle {
	return draw.GlyphStyle{Color: colors[name], Radius: vg.Points(5), Shape: shapes[name]}
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(14), vg.Points(8)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = vg.Points(11), vg.Points(11)
	}
	p.Y.Padding = vg.Points(14)     // the reader's font may be wider
	p.BackgroundColor = color.White // also on a dark page
	return p
}

func newLegend() *plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left, l.TextStyle.Font.Size, l.Padding, l.ThumbnailWidth = true, true, vg.Points(11), vg.Points(3), vg.Points(24)
	return &l
}

// wider is how much wider than the font that a chart names the reader's may be: the file has no font in it.
const wider = 1.3

// save draws the plot with the legend beside it, where it hides nothing.
func save(p *plot.Plot, legend *plot.Legend, path string, height vg.Length) error {
	const width = 760
	canvas := vgsvg.New(width, height)
	paint(draw.New(canvas), p, legend)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	return f.Close()
}

func paint(c draw.Canvas, p *plot.Plot, legend *plot.Legend) {
	const gap, least = 12, 120
	names := legend.Rectangle(c).Size().X - legend.ThumbnailWidth
	aside := max(least, gap+legend.ThumbnailWidth+wider*names+gap)
	c.SetColor(color.White)
	c.Fill(c.Path())
	p.Draw(draw.Crop(c, 4, -aside, 4, -4))
	legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-aside+gap, -gap, 0, -30))
}
