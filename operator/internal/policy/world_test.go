package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

// world is a model of a set, its pods and the proxies before them. It has the rules of the real ones in
// short: a proxy learns late what pods do, orders end by themselves, a hold ends after five seconds, and a
// proxy writes to the lowest member that it sees, unless it was ordered otherwise.
type world struct {
	chance *rand.Rand
	now    time.Time
	// skew is what the operator's clock is off by.
	skew     time.Duration
	started  time.Time
	spec     v1alpha1.SmartUpdateSpec
	status   v1alpha1.SmartUpdateStatus
	replicas int
	revision int
	// bad are revisions whose pods never run.
	bad      map[int]bool
	pods     map[int]*modelPod
	proxies  []*modelProxy
	backup   bool
	observed bool
	onDelete bool
	nextUID  int
}

type modelPod struct {
	name        string
	uid         string
	revision    int
	ready       bool
	terminating bool
	isBad       bool
}

type modelProxy struct {
	name   string
	ready  bool
	silent bool
	byHand bool
	sees   map[string]bool
	writer string
	// roles and proofs are since when each member has its role, and when a barrier passed on it.
	roles    map[string]time.Time
	proofs   map[string]time.Time
	sessions map[string]int
	busy     int
	order    *modelOrder
	barrier  string
	longest  time.Duration
}

type modelOrder struct {
	wish      proxies.Wish
	ends      time.Time
	held      time.Time
	holdEnded bool
	drained   map[string]time.Time
}

func newWorld(seed uint64) *world {
	w := &world{
		chance: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0), replicas: 3, revision: 1,
		bad: map[int]bool{}, pods: map[int]*modelPod{}, observed: true, onDelete: true,
		spec: v1alpha1.SmartUpdateSpec{
			StatefulSet: "db", Proxies: v1alpha1.Proxies{Service: "proxima", Pool: "db"},
			Limits: v1alpha1.Limits{Drain: "10s", Move: "2s", Moves: 3, Unschedulable: "30s", Pod: "10m"},
		},
	}
	if seed%4 == 3 {
		w.replicas = 5
	}
	for ordinal := range w.replicas {
		w.create(ordinal).ready = true
	}
	for range 3 {
		w.addProxy()
	}
	w.revision = 2
	return w
}

func (w *world) create(ordinal int) *modelPod {
	w.nextUID++
	pod := &modelPod{
		name: fmt.Sprintf("db-%d", ordinal), uid: fmt.Sprintf("uid-%d", w.nextUID), revision: w.revision,
		isBad: w.bad[w.revision],
	}
	w.pods[ordinal] = pod
	return pod
}

func (w *world) addProxy() {
	proxy := &modelProxy{
		name: fmt.Sprintf("proxima-%d", len(w.proxies)), ready: true,
		sees: map[string]bool{}, roles: map[string]time.Time{}, proofs: map[string]time.Time{},
		sessions: map[string]int{},
	}
	w.proxies = append(w.proxies, proxy)
	w.refresh(proxy)
}

// refresh lets a proxy see the pods as they are, and prove every reader.
func (w *world) refresh(p *modelProxy) {
	seen := map[string]bool{}
	for _, pod := range w.pods {
		if pod.ready && !pod.terminating {
			seen[pod.uid] = true
			if !p.sees[pod.uid] {
				p.roles[pod.uid] = w.now
			}
		}
	}
	p.sees = seen
	w.choose(p)
}

func (w *world) podNamed(name string) *modelPod {
	for _, pod := range w.pods {
		if pod.name == name {
			return pod
		}
	}
	return nil
}

// choose lets a proxy take the writer that its order or its rule names.
func (w *world) choose(p *modelProxy) {
	if p.holds() {
		return
	}
	wanted := ""
	if p.order != nil {
		wanted = p.order.wish.Writer
	}
	if pod := w.podNamed(wanted); wanted == "" || pod == nil || !p.sees[pod.uid] {
		wanted = ""
		for ordinal := range w.replicas {
			if pod := w.pods[ordinal]; pod != nil && p.sees[pod.uid] {
				wanted = pod.name
				break
			}
		}
	}
	if wanted == p.writer {
		return
	}
	for _, name := range []string{p.writer, wanted} {
		if pod := w.podNamed(name); pod != nil {
			p.roles[pod.uid] = w.now
		}
	}
	p.writer = wanted
}

func (p *modelProxy) holds() bool {
	return p.order != nil && p.order.wish.Hold && !p.order.holdEnded
}

func (p *modelProxy) isQuiet() bool { return p.holds() && p.busy == 0 }

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, p := range w.proxies {
		if p.order == nil {
			continue
		}
		if p.holds() && w.now.Sub(p.order.held) >= 5*time.Second {
			p.longest, p.order.holdEnded = 5*time.Second, true
			w.choose(p)
		}
		if !w.now.Before(p.order.ends) {
			w.endOrder(p)
		}
	}
}

func (w *world) endOrder(p *modelProxy) {
	if p.holds() {
		p.longest = w.now.Sub(p.order.held)
	}
	p.order, p.barrier = nil, ""
	w.choose(p)
}

func (w *world) give(p *modelProxy, wish proxies.Wish) {
	was := p.order
	order := &modelOrder{wish: wish, ends: w.now.Add(OrderLife), drained: map[string]time.Time{}}
	for _, name := range wish.Drain {
		order.drained[name] = w.now
		if was != nil && !was.drained[name].IsZero() {
			order.drained[name] = was.drained[name]
		}
	}
	if wish.Hold {
		order.held = w.now
		if was != nil && was.wish.Hold {
			order.held, order.holdEnded = was.held, was.holdEnded
		}
	} else if p.holds() {
		p.longest = w.now.Sub(was.held)
	}
	if was == nil || was.wish.Writer != wish.Writer || !wish.Hold {
		p.barrier = ""
	}
	p.order = order
	w.choose(p)
}

// observe is what the operator sees.
func (w *world) observe() Observation {
	o := Observation{
		Now: w.now.Add(w.skew), Started: w.started, Generation: 1, Spec: w.spec, Status: w.status,
		Set: &Set{
			UID: "set", Replicas: w.replicas, OnDelete: w.onDelete, Observed: w.observed,
			UpdateRevision: fmt.Sprint(w.revision),
		},
	}
	for ordinal, pod := range w.pods {
		seen := Pod{
			Name: pod.name, UID: pod.uid, Ordinal: ordinal, Revision: fmt.Sprint(pod.revision), Ready: pod.ready,
			Terminating: pod.terminating,
		}
		if pod.isBad {
			seen.Failure = "server: ImagePullBackOff: no such image"
		}
		o.Pods = append(o.Pods, seen)
	}
	slices.SortFunc(o.Pods, func(a, b Pod) int { return a.Ordinal - b.Ordinal })
	if w.backup {
		o.Backups = []Backup{{Name: "nightly", Since: w.now}}
	}
	for _, p := range w.proxies {
		seen := Proxy{Pod: p.name, Ready: p.ready}
		if p.silent {
			seen.Err = &proxies.Error{Text: "no answer within 2s"}
		} else {
			seen.Answer = w.answer(p)
		}
		o.Proxies = append(o.Proxies, seen)
	}
	return o
}

func (w *world) answer(p *modelProxy) *proxies.Answer {
	answer := &proxies.Answer{Pool: "db", Writer: p.writer, Quiet: p.isQuiet()}
	if p.byHand {
		answer.ByHand = []proxies.ByHand{{Order: "drain", Member: "db-1"}}
	}
	if p.holds() {
		held := w.now.Sub(p.order.held).Milliseconds()
		answer.HeldMS = &held
	}
	if p.longest > 0 {
		longest := p.longest.Milliseconds()
		answer.LongestHoldMS = &longest
	}
	if p.order != nil {
		answer.Order = &proxies.Order{
			Name: "ns-db", Wish: p.order.wish, EndsInMS: p.order.ends.Sub(w.now).Milliseconds(),
		}
		if p.order.holdEnded {
			answer.Order.HoldEnded = "hold_limit"
		}
	}
	for ordinal := range w.replicas {
		pod := w.pods[ordinal]
		if pod == nil {
			continue
		}
		member := proxies.Member{
			Name: pod.name, Pod: pod.name, UID: pod.uid, Online: p.sees[pod.uid], Role: proxies.Reader,
			RoleMS: w.now.Sub(p.roles[pod.uid]).Milliseconds(), Sessions: p.sessions[pod.uid], Barrier: "none",
			Drains: p.order != nil && !p.order.drained[pod.name].IsZero(),
		}
		if !member.Online {
			member.Role = proxies.Out
		} else if pod.name == p.writer {
			member.Role = proxies.Writer
		}
		if proof := p.proofs[pod.uid]; !proof.IsZero() {
			age := w.now.Sub(proof).Milliseconds()
			member.Barrier, member.BarrierMS = proxies.Passed, &age
		}
		if p.holds() && p.order.wish.Writer == pod.name {
			member.Barrier = "running"
			if p.barrier == pod.uid {
				member.Barrier = proxies.Passed
			}
		}
		answer.Members = append(answer.Members, member)
	}
	return answer
}
