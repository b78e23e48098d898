package main

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// decades marks a logarithmic axis: powers of ten have a number, and where few of those are in sight so have
// twice and five times each.
type decades struct{}

// Ticks is of [plot.Ticker].
func (decades) Ticks(low, high float64) (marks []plot.Tick) {
	few := high/low < 1000
	for exponent := int(math.Floor(math.Log10(low))); math.Pow10(exponent) <= high; exponent++ {
		for digit := 1; digit < 10; digit++ {
			mark := plot.Tick{Value: float64(digit) * math.Pow10(exponent)}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				mark.Label = strconv.FormatFloat(mark.Value, 'f', -1, 64)
			}
			marks = append(marks, mark)
		}
	}
	return marks
}

// widen keeps what is drawn off the edges of a logarithmic axis.
func widen(a *plot.Axis) { a.Min, a.Max = a.Min/1.3, a.Max*1.3 }
