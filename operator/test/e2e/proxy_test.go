package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"proxima.io/operator/internal/proxies"
)

const token = "a-token-of-proxies"

// fleet is what all proxies of a test share: the pods as their endpoints say.
type fleet struct {
	lock sync.Mutex
	// pods are the ready ones: uid by name.
	pods    map[string]string
	proxies []*proxy
	// onOrder is called at each order that a proxy takes, before it answers.
	onOrder func(p *proxy, order string)
	// history is what the proxies were told, once each time it changed at the first of them.
	history []string
}

// proxy speaks the contract of orders by HTTP. Clients are not there: sessions end as soon as a member is
// drained, unless it is `pinned`, and writes under way end as soon as new ones are held, unless it is `busy`.
type proxy struct {
	fleet    *fleet
	name     string
	address  string
	server   *http.Server
	requests int
	busy     bool
	pinned   bool
	writer   string
	since    map[string]time.Time
	order    *given
	longest  *int64
	byHand   []proxies.ByHand
}

type given struct {
	name  string
	wish  proxies.Wish
	ends  time.Time
	began time.Time
	ended string
}

func (f *fleet) start(name, host string) (*proxy, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	p := &proxy{fleet: f, name: name, address: listener.Addr().String(), since: map[string]time.Time{}}
	p.server = &http.Server{Handler: p}
	go p.server.Serve(listener)
	f.lock.Lock()
	f.proxies = append(f.proxies, p)
	f.lock.Unlock()
	return p, nil
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	p.fleet.lock.Lock()
	defer p.fleet.lock.Unlock()
	p.requests++
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		return
	case len(parts) < 3 || parts[0] != "pools" || parts[1] != "db":
		http.Error(w, "no such pool; there is db", http.StatusNotFound)
		return
	}
	p.tick()
	name := ""
	if len(parts) == 4 {
		name = parts[3]
	}
	switch r.Method {
	case http.MethodGet:
		if name != "" && (p.order == nil || p.order.name != name) {
			http.Error(w, "no such order", http.StatusNotFound)
			return
		}
	case http.MethodPut:
		if err := p.take(name, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	case http.MethodDelete:
		if p.order != nil {
			p.endHold()
			p.order = nil
			p.fleet.note(p, "end")
		}
	}
	p.tick()
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(p.answer(name))
}

func (p *proxy) take(name string, r *http.Request) error {
	if r.Header.Get("X-Proxima") != "yes" || r.Header.Get("Content-Type") != "application/json" {
		return fmt.Errorf("X-Proxima or the content type is missing")
	}
	var body struct {
		proxies.Wish
		For string `json:"for"`
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return err
	}
	life, err := time.ParseDuration(body.For)
	if err != nil || life <= 0 || life > time.Minute {
		return fmt.Errorf("for: %q", body.For)
	}
	began := time.Now()
	if p.order != nil && p.order.wish.Hold && body.Hold {
		began = p.order.began
	} else {
		p.endHold()
	}
	p.order = &given{name: name, wish: body.Wish, ends: time.Now().Add(life), began: began}
	text, _ := json.Marshal(body.Wish)
	p.fleet.note(p, string(text))
	return nil
}

// note keeps what the first proxy is told, and tells the test.
func (f *fleet) note(p *proxy, order string) {
	if p == f.proxies[0] && (len(f.history) == 0 || f.history[len(f.history)-1] != order) {
		f.history = append(f.history, order)
	}
	if f.onOrder != nil {
		f.onOrder(p, order)
	}
}

func (p *proxy) endHold() {
	if p.order != nil && p.order.wish.Hold {
		held := time.Since(p.order.began).Milliseconds()
		p.longest = &held
	}
}

// tick lets time do its work: orders end, and the writer is who may be.
func (p *proxy) tick() {
	if p.order != nil && time.Now().After(p.order.ends) {
		p.endHold()
		p.order = nil
	}
	if p.order != nil && p.order.wish.Hold && p.order.ended == "" && time.Since(p.order.began) > 5*time.Second {
		p.order.ended = "hold_limit"
	}
	for _, uid := range p.fleet.pods {
		if p.since[uid].IsZero() {
			p.since[uid] = time.Now()
		}
	}
	if p.order != nil && p.order.wish.Hold && p.order.ended == "" {
		return
	}
	writer := ""
	if names := slices.Sorted(maps.Keys(p.fleet.pods)); len(names) > 0 {
		writer = names[0]
	}
	if p.order != nil && p.fleet.pods[p.order.wish.Writer] != "" {
		writer = p.order.wish.Writer
	}
	if writer != p.writer {
		p.since[p.fleet.pods[p.writer]], p.since[p.fleet.pods[writer]] = time.Now(), time.Now()
		p.writer = writer
	}
}

func (p *proxy) answer(name string) *proxies.Answer {
	answer := &proxies.Answer{
		Process: p.name, Pool: "db", Writer: p.writer, LongestHoldMS: p.longest, ByHand: p.byHand,
	}
	wish := proxies.Wish{}
	if p.order != nil {
		answer.Orders = []string{p.order.name}
		wish = p.order.wish
		if wish.Hold && p.order.ended == "" {
			held := time.Since(p.order.began).Milliseconds()
			answer.HeldMS, answer.Quiet = &held, !p.busy
		}
		if name != "" {
			answer.Order = &proxies.Order{
				Name: name, Wish: wish, EndsInMS: time.Until(p.order.ends).Milliseconds(), HoldEnded: p.order.ended,
			}
		}
	}
	for pod, uid := range p.fleet.pods {
		age := int64(0)
		member := proxies.Member{
			Name: pod, Pod: pod, UID: uid, Role: proxies.Reader, RoleMS: time.Since(p.since[uid]).Milliseconds(),
			Online: true, Sessions: 2, Barrier: proxies.Passed, BarrierMS: &age, Version: "11.8.3-MariaDB",
			Drains: slices.Contains(wish.Drain, pod),
		}
		if pod == p.writer {
			member.Role = proxies.Writer
		}
		if member.Drains && !p.pinned {
			member.Sessions = 0
		}
		answer.Members = append(answer.Members, member)
	}
	return answer
}
