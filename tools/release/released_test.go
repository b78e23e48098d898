package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const version = "v0.1.0"

// release is the tree of a release of the small repository.
func release(t *testing.T, before tree) tree {
	t.Helper()
	after, err := released(before, version, today)
	require.NoError(t, err)
	return after
}

func TestReleased(t *testing.T) {
	before := miniature()
	require.ErrorContains(t, verify(before, version), "cmd/mini/go.mod replaces "+mini)
	after := release(t, before)
	require.NoError(t, verify(after, version))
	require.Equal(t, miniature(), before, "what is on the branch stays")
	for name := range after {
		text := string(after[name].data)
		require.True(t, name == workspace || !strings.Contains(text, "replace"), name)
		require.NotContains(t, text, "v0.0.0", name)
	}
	var changed []string
	for name := range after {
		if string(before[name].data) != string(after[name].data) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	require.Equal(t, []string{
		"CHANGELOG.md", "bench/go.mod", "bench/go.sum", "cmd/mini/go.mod", "cmd/mini/go.sum", "go.work", "kit/go.mod", "kit/go.sum",
	}, changed)
	again, err := released(release(t, before).with(t, changelog, "## [0.1.0] - 2026-11-24\n", ""), "v0.2.0", today)
	require.NoError(t, err)
	require.NoError(t, verify(again, "v0.2.0"), "the checksums of another version give way")
	require.NotContains(t, string(again["cmd/mini/go.sum"].data), version)
}

// Whatever is wrong is found, by whoever it was made.
func TestVerify(t *testing.T) {
	good := release(t, miniature())
	without := maps.Clone(good)
	delete(without, "kit/go.sum")
	for says, wrong := range map[string]tree{
		"cmd/mini/go.mod replaces " + mini + ":":                                        good.with(t, "cmd/mini/go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace "+mini+" => ../..\n"),
		"kit/go.mod replaces example.com/other:":                                        good.with(t, "kit/go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace example.com/other => example.com/fork v1.0.0\n"),
		"bench/go.mod replaces example.com/other:":                                      good.with(t, "bench/go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace example.com/other => ../other\n"),
		"cmd/mini/go.mod needs " + mini + "/kit at v0.0.9, and v0.1.0 is released":      good.with(t, "cmd/mini/go.mod", "/kit v0.1.0", "/kit v0.0.9"),
		"bench/go.mod needs " + mini + " at v0.0.0, and v0.1.0 is released":             good.with(t, "bench/go.mod", "v0.1.0", "v0.0.0"),
		"kit/go.sum has no checksum of " + mini + " v0.1.0":                             without,
		"bench/go.sum has no checksum of " + mini + " v0.1.0":                           good.with(t, "bench/go.sum", "v0.1.0/go.mod", "v0.0.9/go.mod"),
		"CHANGELOG.md has no heading of v0.1.0":                                         good.with(t, changelog, "## [0.1.0]", "## [0.2.0]"),
		"kit/go.mod is module " + mini + "/other, where a tag of the repository cannot": good.with(t, "kit/go.mod", "/kit", "/other"),
	} {
		require.ErrorContains(t, verify(wrong, version), says)
	}
	require.NoError(t, verify(good.with(t, "bench/go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace example.com/other => example.com/fork v1.0.0\n"), version),
		"nobody gets it by a version, and it has the fork all the same")
}

func TestModulesNeedOneAnother(t *testing.T) {
	modules, err := modulesOf(miniature())
	require.NoError(t, err)
	var paths, tags []string
	for _, m := range modules {
		paths = append(paths, m.path)
		if m.tagged() {
			tags = append(tags, m.tag(version))
		}
	}
	require.Equal(t, []string{mini, mini + "/bench", mini + "/kit", mini + "/cmd/mini"}, paths)
	require.Equal(t, []string{"v0.1.0", "kit/v0.1.0", "cmd/mini/v0.1.0"}, tags)
	_, err = modulesOf(miniature().with(t, "go.mod", "go 1.26.0\n", "go 1.26.0\n\nrequire "+mini+"/kit v0.0.0\n"))
	require.ErrorContains(t, err, "in a circle")
	_, err = modulesOf(tree{"kit/go.mod": miniature()["kit/go.mod"]})
	require.ErrorContains(t, err, "the root has no go.mod")
}

// What is here can be released.
func TestThisRepository(t *testing.T) {
	here, err := folderTree(t.Context(), "../..")
	require.NoError(t, err)
	next := nextVersion(lastHeading(string(here[changelog].data)))
	here[changelog] = file{data: []byte(withNews(string(here[changelog].data)))}
	require.Error(t, verify(here, next))
	after, err := released(here, next, today)
	require.NoError(t, err)
	require.NoError(t, verify(after, next))
	require.Contains(t, string(after[changelog].data), "\n## [Unreleased]\n\n## ["+next[1:]+"] - 2026-11-24\n\n")
	modules, err := modulesOf(after)
	require.NoError(t, err)
	var tags []string
	for _, m := range modules {
		if m.tagged() {
			tags = append(tags, m.tag(next))
		}
	}
	slices.Sort(tags)
	require.Equal(t, []string{
		"adapters/certmagic/" + next, "adapters/cron/" + next, "adapters/gocron/" + next, "adapters/goose/" + next, "adapters/goredis/" + next, "adapters/tusd/" + next,
		"cmd/latchkey/" + next, "examples/fencedsql/" + next, "examples/metrics/" + next,
		"latchkeytest/" + next, "latchkeyvet/" + next, "otel/" + next, next, "web/" + next,
	}, tags)
	require.Contains(t, string(here["Makefile"].data), "filter-out "+strings.Join(untagged, " ")+" ", "make vulncheck leaves out the same")
	for _, folder := range untagged {
		require.Contains(t, here, folder+"/go.mod", "a module that is not there need not be named")
	}
}
