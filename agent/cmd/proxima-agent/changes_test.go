package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/status"
)

// follower sees how an agent follows its machine, over many changes.
type follower struct {
	agent   *agent
	pods    map[string]*lab.Pod // by container
	version int                 // of cgroups
	changes []change
}

// change is one of them. Times begin when the kernel has let the CPU come or go.
type change struct {
	decided  time.Duration // the agent has decided who moves
	answered time.Duration // the agent has told the runtime; 0 where it has nothing to tell
	settled  time.Duration // the kernel gives everybody what the books say
	work     time.Duration // of the agent on processors until it has decided
	told     int           // containers of which the runtime was told
	moved    int           // containers to which the kernel does not give the right CPUs by itself
}

func (c change) String() string {
	return fmt.Sprintf("decided after %s, which took %s of a processor; runtime told of %d containers after %s; settled after %s",
		c.decided.Round(time.Millisecond), c.work, c.told, c.answered.Round(time.Millisecond), c.settled.Round(time.Millisecond))
}

// settles lets a CPU come or go, and waits until books and kernel agree.
func (f *follower) settles(t *testing.T, what string, cpu int, comes bool, there cpuset.Set) {
	t.Helper()
	before, had, log := f.status(t), f.files(t), len(f.log(t))
	work := f.work()
	online(t, cpu, comes)
	begin := time.Now()
	lab.Eventually(t, what+": the agent has decided", func() error {
		if !strings.Contains(f.log(t)[log:], `msg="the machine is followed"`) {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	one := change{work: f.work() - work}
	// To be asked takes the agent longer than to decide, in an emulated machine: it is asked seldom, and the
	// kernel often.
	var books engine.Status
	var asked time.Time
	lab.Eventually(t, what, func() error {
		if time.Since(asked) > 2*time.Second {
			books, asked = f.status(t), time.Now()
		}
		return agrees(books, f.pods, there)
	})
	one.settled = time.Since(begin)
	after := f.status(t)
	one.told = after.Counters.Repaired - before.Counters.Repaired
	for line := range strings.Lines(f.log(t)[log:]) {
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(strings.Fields(line)[0], "time="))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(line, `msg="the machine is followed"`):
			one.decided = at.Sub(begin)
		case strings.Contains(line, "msg=synchronized"):
			one.answered = at.Sub(begin)
		}
	}
	for id, has := range f.files(t) {
		if !had[id].cpus.Intersect(there).Equal(has.cpus.Intersect(there)) || had[id].memory != has.memory {
			one.moved++
		}
	}
	f.changes = append(f.changes, one)
	t.Logf("%s: %s", what, one)
	switch doubted := strings.Contains(f.log(t)[log:], "a container does not have the CPUs"); {
	case f.version == 1: // whose kernel changes the cpusets
	case doubted:
		t.Logf("%s: the runtime was so slow that the agent has doubted it, and told it again", what)
	case one.told != one.moved:
		t.Errorf("%s: the runtime was told of %d containers, but only %d could not be left to the kernel", what, one.told, one.moved)
	}
}

// work is the time that the agent has been on processors.
func (f *follower) work() time.Duration { return lab.ProcessorTime(f.agent.process.Process.Pid) }

func (f *follower) status(t *testing.T) engine.Status {
	t.Helper()
	var s engine.Status
	lab.Eventually(t, "the agent answers", func() error { return status.Get(context.Background(), f.agent.dir+"/a.sock", "/status", &s) })
	return s
}

func (f *follower) log(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile(f.agent.dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

type cpusetFiles struct {
	cpus   cpuset.Set
	memory string
}

// files are the cpusets as the runtime has written them.
func (f *follower) files(t *testing.T) map[string]cpusetFiles {
	t.Helper()
	all := map[string]cpusetFiles{}
	for id, pod := range f.pods {
		list, memory, err := pod.Written(id)
		if err != nil {
			t.Fatal(err)
		}
		cpus, err := cpuset.Parse(list)
		if err != nil {
			t.Fatal(err)
		}
		all[id] = cpusetFiles{cpus, memory}
	}
	return all
}

func (f *follower) String() string {
	line := func(what string, of func(change) time.Duration) string {
		var all []time.Duration
		for _, c := range f.changes {
			if took := of(c); took > 0 {
				all = append(all, took)
			}
		}
		if len(all) == 0 {
			return ""
		}
		slices.Sort(all)
		return fmt.Sprintf("\n%-40s median %8s, longest %8s", what, all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond))
	}
	quiet, told := 0, 0
	for _, c := range f.changes {
		told += c.told
		if c.told == 0 {
			quiet++
		}
	}
	return fmt.Sprintf("%d changes, %d of them without a call to the runtime, %d calls in all, under %d containers in an emulated machine:",
		len(f.changes), quiet, told, len(f.pods)) +
		line("the agent has decided", func(c change) time.Duration { return c.decided }) +
		line("the agent has told the runtime", func(c change) time.Duration { return c.answered }) +
		line("the kernel gives everybody his CPUs", func(c change) time.Duration { return c.settled }) +
		line("which took it of a processor", func(c change) time.Duration { return c.work })
}
