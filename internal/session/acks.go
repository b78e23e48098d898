package session

import (
	"slices"
	"strings"
	"sync"
)

// Acks are acknowledgements: the numbers of commands that Redis has answered and the client does not send again. So
// Redis may forget its records of these commands. Acks go with the next command of the same name. The zero value is
// empty. Methods are safe for concurrent use.
type Acks struct {
	mu      sync.Mutex
	numbers []uint64
}

// acksPerScript is how many acknowledgements go with one script at most.
const acksPerScript = 100

// Add acknowledges commands. The caller knows that none of them can still be under way.
func (a *Acks) Add(numbers ...uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.numbers = append(a.numbers, numbers...)
}

// With sends a command together with up to a hundred acknowledgements, in the form in which a script takes them: ids
// without the client, each followed by a space. After an error the acknowledgements stay, because Redis may not have
// received them.
func (a *Acks) With(by *IDs, send func(acks string) error) error {
	numbers, text := a.take(by)
	err := send(text)
	if err != nil {
		a.Add(numbers...)
	}
	return err
}

func (a *Acks) take(by *IDs) (numbers []uint64, text string) {
	a.mu.Lock()
	rest := max(0, len(a.numbers)-acksPerScript)
	numbers = slices.Clone(a.numbers[rest:])
	a.numbers = a.numbers[:rest]
	a.mu.Unlock()
	var b strings.Builder
	for _, n := range numbers {
		b.WriteString(by.Suffix(n))
		b.WriteByte(' ')
	}
	return numbers, b.String()
}
