package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withKubectl puts a kubectl in the way that is a shell script, and returns the environment with it. What a
// cluster answers to the few verbs that our scripts use is written down in it; that scripts delete and change
// nothing else is what it is there to see.
func withKubectl(t *testing.T, script string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\necho \"$*\" >>"+dir+"/calls\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+dir+"/calls")
}

const threeNodes = `case "$*" in
"get nodes --selector=pool=cache"*) printf 'n1\nn2\nn3\n' ;;
"get nodes --selector="*) ;;
*"get pods"*) printf 'n3 a3 proxima-agent\nn1 a1 proxima-agent\nn9 a9 proxima-agent\nn2 a2 proxima-agent-cri\n' ;;
*"exec a2 -- /proxima-agent release --socket=/run/proxima-agent/agent.sock"*) echo "released: 2 containers" ;;
*"exec a1 -- /proxima-agent release") echo "released: 5 containers" ;;
*"exec a3 -- /proxima-agent release") ANSWER ;;
*) echo "unexpected: $*" >&2; exit 9 ;;
esac
`

func TestReleaseOfAWholePool(t *testing.T) {
	for answer, whole := range map[string]bool{
		`echo "released: 0 containers"`: true, `echo "the runtime is not connected" >&2; exit 1`: false, `exit 137`: false,
	} {
		release := exec.Command("sh", "../../deploy/release.sh", "pool=cache")
		release.Env = withKubectl(t, strings.Replace(threeNodes, "ANSWER", answer, 1))
		out, err := release.CombinedOutput()
		text := string(out)
		if (err == nil) != whole || !strings.Contains(text, "n1: released: 5") || !strings.Contains(text, "n2: released: 2") ||
			strings.Contains(text, "n9") || strings.Contains(text, "n3: NOT RELEASED") == whole {
			t.Errorf("%s: %v\n%s", answer, err, out)
		}
	}
	none := exec.Command("sh", "../../deploy/release.sh", "pool=none")
	none.Env = withKubectl(t, threeNodes)
	if out, err := none.CombinedOutput(); err == nil || !strings.Contains(string(out), "no node has the labels pool=none") {
		t.Errorf("%v\n%s", err, out)
	}
}

const oneNode = `case "$*" in
"get node n1 "*) echo node/n1 ;;
"create namespace numa-pair-"*) CREATE ;;
"--namespace=numa-pair-"*" apply "*) cat >/dev/null ;;
"annotate --local "*) cat ;;
"--namespace=numa-pair-"*" wait "*) ;;
"--namespace=numa-pair-"*" get pod redis-1 "*) printf 10.0.0.1 ;;
"--namespace=numa-pair-"*" exec redis-1 -- grep "*) printf 'Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0\n' ;;
"--namespace=numa-pair-"*" exec memtier-1 -- grep "*) printf 'Cpus_allowed_list:\t8-15\nMems_allowed_list:\t0\n' ;;
"--namespace=numa-pair-"*" exec redis-1 -- sh "*) printf '0\n1\n' ;;
"--namespace=numa-pair-"*" exec memtier-1 -- memtier_benchmark "*) MEASURE ;;
"--namespace=numa-pair-"*" delete pod redis-1 memtier-1 "*) ;;
"delete namespace numa-pair-"*) ;;
*) echo "unexpected: $*" >&2; exit 9 ;;
esac
`

// measure.sh deletes nothing but the pods in the namespace that it has made, and that, however it ends.
func TestMeasureDeletesWhatItMade(t *testing.T) {
	const totals = `echo "Totals 75000.0 1 1 0.10 0.09 0.3"`
	for name, c := range map[string]struct {
		create, measure string
		whole, made     bool
	}{
		"as it should be":         {"", totals, true, true},
		"memtier fails":           {"", "exit 1", false, true},
		"the namespace cannot be": {`echo "forbidden" >&2; exit 1`, totals, false, false},
	} {
		measure := exec.Command("sh", "../../../examples/numa-pair/measure.sh", "n1", "1", "1")
		measure.Env = withKubectl(t, strings.NewReplacer("CREATE", c.create, "MEASURE", c.measure).Replace(oneNode))
		out, err := measure.CombinedOutput()
		calls, readErr := os.ReadFile(strings.TrimPrefix(measure.Env[len(measure.Env)-1], "CALLS="))
		if readErr != nil {
			t.Fatal(readErr)
		}
		if (err == nil) != c.whole || strings.Contains(string(out), "unexpected") || strings.Contains(string(out), "75000") != c.whole {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		namespace := ""
		deleted := false
		for line := range strings.Lines(string(calls)) {
			line = strings.TrimSpace(line)
			if created, ok := strings.CutPrefix(line, "create namespace "); ok {
				namespace = created
			}
			if strings.Contains(line, "delete") {
				mine := strings.HasPrefix(line, "--namespace="+namespace+" delete pod") || strings.HasPrefix(line, "delete namespace "+namespace+" ")
				if !mine || namespace == "" || !c.made {
					t.Errorf("%s: %q", name, line)
				}
				deleted = deleted || strings.HasPrefix(line, "delete namespace")
			}
		}
		if deleted != c.made {
			t.Errorf("%s: its namespace is deleted: %t", name, deleted)
		}
	}
}
