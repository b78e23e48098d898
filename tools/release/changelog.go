package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// changelog is the file that says what changed, in the form of Keep a Changelog.
const changelog = "CHANGELOG.md"

// errNothingNew says that there is nothing to release.
var errNothingNew = errors.New("nothing is said to be unreleased")

const unreleased = "## [Unreleased]\n"

var (
	releaseHeading = regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\]`)
	linkLine       = regexp.MustCompile(`(?m)^\[([^\]]+)\]: https://[^\n]*\n`)
)

// releasedChangelog gives what is unreleased to a version, and leaves nothing unreleased. The links at the
// end are for the headings; those that were there stay.
func releasedChangelog(text, root, version string, date time.Time) (string, error) {
	number := strings.TrimPrefix(version, "v")
	if strings.Count(text, "\n"+unreleased) != 1 {
		return "", fmt.Errorf("%s must have one heading %q", changelog, strings.TrimSpace(unreleased))
	}
	last := lastHeading(text)
	if last != "" && semver.Compare(last, version) >= 0 {
		return "", fmt.Errorf("%s has %s already: %s is no later version", changelog, last, version)
	}
	links := ""
	text = linkLine.ReplaceAllStringFunc(text, func(line string) string {
		if !strings.HasPrefix(line, "[Unreleased]") {
			links += line
		}
		return ""
	})
	before, news, _ := strings.Cut(text, unreleased)
	news, older := cutAt(news, "\n## [")
	if !strings.Contains(news, "\n- ") {
		return "", fmt.Errorf("%s: %w", changelog, errNothingNew)
	}
	home := "https://" + root
	since := home + "/releases/tag/" + version
	if last != "" {
		since = home + "/compare/" + last + "..." + version
	}
	links = fmt.Sprintf("[Unreleased]: %s/compare/%s...HEAD\n[%s]: %s\n%s", home, version, number, since, links)
	body := strings.TrimRight(news, "\n") + "\n" + older
	return before + unreleased + fmt.Sprintf("\n## [%s] - %s\n", number, date.Format(time.DateOnly)) +
		strings.TrimRight(body, "\n") + "\n\n" + links, nil
}

// lastHeading is the greatest version that has a heading; empty when there is none.
func lastHeading(text string) (last string) {
	for _, heading := range releaseHeading.FindAllStringSubmatch(text, -1) {
		if semver.Compare("v"+heading[1], last) > 0 {
			last = "v" + heading[1]
		}
	}
	return last
}

// withNews is the text with something unreleased, if there is nothing: just after a release there is not.
func withNews(text string) string {
	before, after, found := strings.Cut(text, unreleased)
	if news, _ := cutAt(after, "\n## ["); !found || strings.Contains(news, "\n- ") {
		return text
	}
	return before + unreleased + "\n- Nothing yet.\n" + after
}

// cutAt splits before a separator, which is left in the second part; all is in the first when it is not
// there.
func cutAt(text, separator string) (before, from string) {
	if at := strings.Index(text, separator); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}
