package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// recordFile is the file with all results, from which tables and charts are written.
const recordFile = "results.json"

// recorded reads the record of a directory.
func recorded(out string) (*Results, error) {
	text, err := os.ReadFile(filepath.Join(out, recordFile))
	if err != nil {
		return nil, err
	}
	var r Results
	return &r, json.Unmarshal(text, &r)
}

// keep writes the record of a directory, and its tables and charts.
func keep(r *Results, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, recordFile), append(text, '\n'), 0o644); err != nil { //nolint:gosec // to be read by all
		return err
	}
	return render(r, out)
}
