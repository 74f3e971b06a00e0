package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAuditLeakage(t *testing.T) {
	status, out, errOut := cohort(t, "audit", "--leakage")
	if status != 0 || strings.Contains(out, "table:") || !strings.Contains(out, "All is as") ||
		strings.Count(out, " client ") < 9 || !strings.Contains(out, "5.1 naive") {
		t.Errorf("exit %d, %s\n%s", status, errOut, out)
	}
	for line := range strings.Lines(out) {
		if len([]rune(line)) > 81 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
	status, out, _ = cohort(t, "audit", "--leakage", "--format", "json")
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); status != 0 || err != nil || len(rows) < 9 {
		t.Errorf("exit %d, %v: %s", status, err, out)
	}
}
