package policy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each guard is switched off once, by a text that takes the place of another one in its file. The other
// tests of this package have to fail then. Without PROXIMA_SOAK it is only seen that the texts are there.
func TestEachGuardThatIsSwitchedOffIsFound(t *testing.T) {
	const inside = "PROXIMA_GUARD_IS_OFF"
	if os.Getenv(inside) != "" {
		t.Skip("this is a run with a guard switched off")
	}
	table, err := os.ReadFile("testdata/guards.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(columns) != 4 {
			t.Fatalf("not four columns: %q", line)
		}
		name, file, was, becomes := columns[0], columns[1], columns[2], columns[3]
		rows++
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), was) != 1 {
				t.Fatalf("%q is in %s %d times, and has to be there once", was, file, strings.Count(string(source), was))
			}
			if os.Getenv("PROXIMA_SOAK") == "" {
				return
			}
			folder := t.TempDir()
			changed := filepath.Join(folder, file)
			text := strings.Replace(string(source), was, becomes, 1)
			if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			absolute, _ := filepath.Abs(file)
			overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{absolute: changed}})
			overlaid := filepath.Join(folder, "overlay.json")
			if err := os.WriteFile(overlaid, overlay, 0o644); err != nil {
				t.Fatal(err)
			}
			run := exec.Command("go", "test", "-vet=off", "-count=1", "-overlay", overlaid, ".")
			run.Env = append(os.Environ(), inside+"=1", "PROXIMA_SOAK=")
			out, err := run.CombinedOutput()
			if strings.Contains(string(out), "[build failed]") {
				t.Fatalf("it does not compile:\n%s", out)
			}
			if err == nil {
				t.Errorf("no test finds that this guard is off: %q became %q in %s", was, becomes, file)
			}
		})
	}
	if rows < 20 {
		t.Errorf("only %d guards", rows)
	}
}
