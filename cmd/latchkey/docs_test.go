package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"
)

// docs/command.md has all sub-commands, flags of connections, statuses and checks.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/command.md")
	require.NoError(t, err)
	docs := string(text)
	for _, c := range command().Commands {
		if !c.Hidden && c.Name != "demo" {
			require.Contains(t, docs, "`latchkey "+c.Name, c.Name)
		}
		require.Equal(t, c.Hidden, c.Usage == "", c.Name)
	}
	for _, f := range connection() {
		require.Contains(t, docs, "--"+f.Names()[0])
	}
	for _, status := range []int{statusUsage, statusForeign, statusMissing, statusAway, statusGivenUp, statusOutput, statusNotAcquired, statusLost} {
		require.Contains(t, docs, fmt.Sprintf("\n| %d |", status))
		if status != statusGivenUp && status != statusOutput {
			require.Contains(t, statusHelp, fmt.Sprint(status))
		}
	}
	require.Contains(t, docs, fmt.Sprintf("\n| %d, %d |", statusNotRunnable, statusNotFound))
	_, table, _ := strings.Cut(docs, "## The doctor")
	for _, check := range []string{
		"version", "role", "eviction", "persistence", "replicas", "clock", "scripts", "listeners", "WAIT", "subscription", "latency", "a lock", "keys",
	} {
		require.Contains(t, table, "\n| "+check+" |")
	}
}

// Every flag has a text, and no value that a user could take for its default is 0. Every command has an example.
func TestHelp(t *testing.T) {
	var walk func(c *cli.Command)
	walk = func(c *cli.Command) {
		for _, f := range c.Flags {
			documented, ok := f.(cli.DocGenerationFlag)
			require.True(t, ok)
			if c.Hidden || c.Name == "demo-worker" {
				continue
			}
			require.NotEmpty(t, documented.GetUsage(), "%s --%s", c.FullName(), f.Names()[0])
			require.NotEqual(t, "0s", documented.GetDefaultText(), "%s --%s", c.FullName(), f.Names()[0])
			require.NotEqual(t, "0", documented.GetDefaultText(), "%s --%s", c.FullName(), f.Names()[0])
		}
		for _, below := range c.Commands {
			walk(below)
		}
		if len(c.Commands) > 0 || c.Hidden || slices.Contains([]string{"demo-worker", "version", "completion"}, c.Name) {
			return
		}
		_, example, found := strings.Cut(c.Description, "Example: latchkey ")
		require.True(t, found, "%s has no example", c.Name)
		require.Contains(t, example, c.Name+" ")
		ours, _, _ := strings.Cut(example, " -- ")
		for _, word := range strings.Fields(ours) {
			if name, flag := strings.CutPrefix(word, "--"); flag {
				require.True(t, slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }), "%s %s", c.Name, word)
			}
		}
	}
	walk(command())
}
