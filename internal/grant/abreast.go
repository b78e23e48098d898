package grant

import "sync"

// abreast runs functions side by side, and returns when all have ended. The last one runs on the caller's
// goroutine.
func abreast(steps []func()) {
	if len(steps) == 0 {
		return
	}
	var running sync.WaitGroup
	for _, step := range steps[:len(steps)-1] {
		running.Go(step)
	}
	steps[len(steps)-1]()
	running.Wait()
}
