package latchkeytest

import "strings"

// Class returns the class of a name, for the order of locks: the default of [WithClass]. A separator is any
// character but a letter or digit. What stands between separators becomes a star if it is a number, or a
// hexadecimal number of at least eight characters with a digit. So does a UUID. Class("orders:42") is
// "orders:*".
func Class(name string) string {
	var class strings.Builder
	for rest := name; rest != ""; {
		if n := uuidAt(rest); n > 0 {
			class.WriteByte('*')
			rest = rest[n:]
			continue
		}
		word := strings.IndexFunc(rest, separates)
		if word < 0 {
			word = len(rest)
		}
		if tells(rest[:word]) {
			class.WriteByte('*')
		} else {
			class.WriteString(rest[:word])
		}
		rest = rest[word:]
		if rest != "" { // separators are kept, one at a time: behind each may stand a UUID
			end := strings.IndexFunc(rest, func(r rune) bool { return !separates(r) })
			if end < 0 {
				end = len(rest)
			}
			class.WriteString(rest[:end])
			rest = rest[end:]
		}
	}
	return class.String()
}

// separates reports whether a character is neither a letter nor a digit. All that is no ASCII is a letter.
func separates(r rune) bool {
	return r < 0x80 && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// leastHex is how many characters a hexadecimal number has at least: shorter ones may be words.
const leastHex = 8

// tells reports whether a word tells one instance from others.
func tells(word string) bool {
	digits, hex := 0, 0
	for _, r := range word {
		switch {
		case r >= '0' && r <= '9':
			digits++
			hex++
		case r >= 'a' && r <= 'f', r >= 'A' && r <= 'F':
			hex++
		}
	}
	return digits > 0 && (digits == len(word) || hex == len(word) && hex >= leastHex)
}

// uuidAt returns the length of the UUID that a text begins with; 0 if it begins with none.
func uuidAt(text string) int {
	const length = 36
	if len(text) < length || len(text) > length && !separates(rune(text[length])) {
		return 0
	}
	for i := range length {
		switch c := text[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return 0
			}
		case !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)):
			return 0
		}
	}
	return length
}
