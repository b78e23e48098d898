package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// log is a changelog with what is unreleased, and what stands below.
func log(news, below string) string {
	return "# Changelog\n\nAll of it.\n\n## [Unreleased]\n" + news + below
}

func TestChangelog(t *testing.T) {
	const links = "\n[Unreleased]: https://example.invalid/mini/compare/v0.1.0...HEAD\n" +
		"[0.1.0]: https://example.invalid/mini/releases/tag/v0.1.0\n"
	first, err := releasedChangelog(log("\nThe first.\n\n### Added\n\n- A thing.\n", ""), "example.invalid/mini", "v0.1.0", today)
	require.NoError(t, err)
	require.Equal(t, log("", "\n## [0.1.0] - 2026-11-24\n\nThe first.\n\n### Added\n\n- A thing.\n"+links), first)

	_, err = releasedChangelog(first, "example.invalid/mini", "v0.2.0", today)
	require.ErrorIs(t, err, errNothingNew, "not even what the version before has is taken for it")
	_, err = releasedChangelog(withNews(first), "example.invalid/mini", "v0.2.0", today)
	require.NoError(t, err)
	require.Equal(t, log("\n- It.\n", ""), withNews(log("\n- It.\n", "")))
	require.Equal(t, []string{"v0.1.0", ""}, []string{lastHeading(first), lastHeading(log("\n- It.\n", ""))})

	const before = "\n## [0.1.0] - 2026-11-24\n\n- A thing.\n" + links
	second, err := releasedChangelog(log("\n### Fixed\n\n- It.\n", before), "example.invalid/mini", "v0.2.0-rc.1", today)
	require.NoError(t, err)
	require.Equal(t, log("", "\n## [0.2.0-rc.1] - 2026-11-24\n\n### Fixed\n\n- It.\n\n## [0.1.0] - 2026-11-24\n\n- A thing.\n\n"+
		"[Unreleased]: https://example.invalid/mini/compare/v0.2.0-rc.1...HEAD\n"+
		"[0.2.0-rc.1]: https://example.invalid/mini/compare/v0.1.0...v0.2.0-rc.1\n"+
		"[0.1.0]: https://example.invalid/mini/releases/tag/v0.1.0\n"), second)

	for says, text := range map[string]string{
		"must have one heading":        "# Changelog\n\n- A thing.\n",
		"has v0.1.0 already":           log("\n- It.\n", before),
		"nothing is said to be":        log("\n### Added\n", ""),
		"must have one heading \"## [": log("\n- It.\n", "\n## [Unreleased]\n\n- It again.\n"),
	} {
		_, err := releasedChangelog(text, "example.invalid/mini", "v0.1.0", today)
		require.ErrorContains(t, err, says)
	}
	_, err = releasedChangelog(log("\n- It.\n", before), "example.invalid/mini", "v0.0.9", today)
	require.ErrorContains(t, err, "v0.0.9 is no later version")
}
