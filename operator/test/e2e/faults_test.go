package e2e

import (
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestTwoOperatorsAtOnceEvictNoPodTwice(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	c.start()
	second := c.another()
	defer func() {
		second.Process.Kill()
		second.Wait()
	}()
	c.untilReason("UpToDate")
	c.image("mariadb:11.8.3")
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
	if order := c.gone(); !slices.Equal(order, []string{"db-2", "db-1", "db-0"}) {
		t.Errorf("pods went in the order %v", order)
	}
}

func TestWhileTheAPIServerIsAwayOrdersAreRepeatedAndNothingIsEvicted(t *testing.T) {
	c := begin(t)
	for _, p := range c.fleet.proxies {
		p.pinned = true
	}
	away := c.throughAGate()
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	c.image("mariadb:11.8.3")
	c.untilReason("Draining")
	away.shut.Store(true)
	c.until("no connection is left", func() bool { return away.open.Load() == 0 })
	cut := time.Now()
	c.fleet.lock.Lock()
	for _, p := range c.fleet.proxies {
		p.pinned = false
	}
	c.fleet.lock.Unlock()
	c.until("the order was repeated", func() bool {
		c.fleet.lock.Lock()
		defer c.fleet.lock.Unlock()
		order := c.fleet.proxies[0].order
		return order != nil && order.ends.After(cut.Add(31*time.Second))
	})
	if gone := c.gone(); len(gone) > 0 {
		t.Errorf("%v went without the API server", gone)
	}
	away.shut.Store(false)
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

// gate is a way to the API server. While it is shut, connections end at once.
type gate struct {
	shut atomic.Bool
	open atomic.Int32
}

// throughAGate leads the operator to the API server by a gate.
func (c *cluster) throughAGate() *gate {
	c.t.Helper()
	made := &gate{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { listener.Close() })
	there, err := url.Parse(server.Config.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	host := there.Host
	if host == "" {
		host = server.Config.Host
	}
	text, err := os.ReadFile(c.kube)
	if err != nil {
		c.t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), host, listener.Addr().String())
	if err := os.WriteFile(c.kube, []byte(changed), 0o600); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go made.pass(client, host)
		}
	}()
	return made
}

func (g *gate) pass(client net.Conn, host string) {
	defer client.Close()
	if g.shut.Load() {
		return
	}
	g.open.Add(1)
	defer g.open.Add(-1)
	server, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			io.Copy(way[1], way[0])
			ended <- struct{}{}
		}()
	}
	for {
		select {
		case <-ended:
			return
		case <-time.After(50 * time.Millisecond):
			if g.shut.Load() {
				return
			}
		}
	}
}
