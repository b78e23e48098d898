package lease

// items is a heap by next.
type items []*Item

func (h items) Len() int           { return len(h) }
func (h items) Less(a, b int) bool { return h[a].next.Before(h[b].next) }
func (h items) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].index, h[b].index = a+1, b+1
}

// Push is of [container/heap.Interface].
func (h *items) Push(x any) {
	i := x.(*Item)
	*h = append(*h, i)
	i.index = len(*h)
}

// Pop is of [container/heap.Interface].
func (h *items) Pop() any {
	old := *h
	i := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	i.index = 0
	return i
}
