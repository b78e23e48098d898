package latchkeygoredis

import "strings"

// Rule is what tests see of a rule.
type Rule struct {
	To      []string // fields of rueidis.ClientOption
	Why     string
	Ignored bool
}

var all = rules

// Rules returns the rules by the names of fields of go-redis, and those names that have several.
func Rules() (rules map[string]Rule, twice []string) {
	rules = map[string]Rule{}
	for _, r := range all {
		for _, name := range strings.Fields(r.of) {
			if _, there := rules[name]; there {
				twice = append(twice, name)
			}
			rules[name] = Rule{strings.Fields(r.to), r.why, r.set == nil}
		}
	}
	return rules, twice
}
