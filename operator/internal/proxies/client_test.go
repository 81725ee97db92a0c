package proxies

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var target = Target{Host: "example.com", Pool: "db", Order: "ns-db"}

const answered = `{"process":"1","pool":"db","writer":"db-0","quiet":false,"held_ms":null,
	"longest_hold_ms":null,"waiting":0,"order":{"name":"ns-db","hold":false,"drain":["db-2"],"writer":null,
	"since_ms":1,"ends_in_ms":29000,"hold_ended":null},"orders":["ns-db"],"by_hand":[],
	"members":[{"name":"db-0","pod":"db-0","uid":"u","address":"10.0.0.1:3306","version":"11.8.3-MariaDB",
	"role":"writer","role_ms":10,"online":true,"drains":false,"why":null,"sessions":3,
	"barrier":"none","barrier_ms":null}]}`

// served starts a server, and returns its endpoint.
func served(t *testing.T, name string, handler http.HandlerFunc) Endpoint {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Endpoint{Pod: name, Address: strings.TrimPrefix(server.URL, "http://"), Ready: true}
}

// says is a handler that answers this text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnAnswerIsReadWhole(t *testing.T) {
	endpoint := served(t, "a", says(answered))
	reply := NewClient("", "").Ask(t.Context(), target, []Endpoint{endpoint}, true)[0]
	if reply.Err != nil {
		t.Fatal(reply.Err)
	}
	answer := reply.Answer
	if answer.Writer != "db-0" || answer.Order.Drain[0] != "db-2" || answer.Order.Writer != "" ||
		answer.Order.HoldEnded != "" || answer.HeldMS != nil || answer.Member("u").Sessions != 3 ||
		answer.Member("other") != nil || answer.Member("") != nil {
		t.Errorf("%+v", answer)
	}
}

func TestRequestsAreThoseOfTheContract(t *testing.T) {
	var lock sync.Mutex
	var got []string
	file := tokenFile(t, "first\nsecond\n")
	endpoint := served(t, "a", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		lock.Lock()
		defer lock.Unlock()
		got = append(got, strings.Join([]string{
			r.Method, r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("X-Proxima"),
			r.Header.Get("Content-Type"), string(body),
		}, " "))
		io.WriteString(w, answered)
	})
	client := NewClient(file, "")
	all := []Endpoint{endpoint}
	client.Ask(t.Context(), target, all, true)
	client.Ask(t.Context(), target, all, false)
	wish := Wish{Hold: true, Drain: []string{"db-2"}, Writer: "db-1"}
	client.Give(t.Context(), target, all, wish, 30*time.Second)
	if err := os.WriteFile(file, []byte("third\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client.End(t.Context(), target, all)
	want := []string{
		"GET /pools/db/orders/ns-db Bearer first   ",
		"GET /pools/db/orders Bearer first   ",
		"GET /pools/db/orders/ns-db Bearer first   ",
		"PUT /pools/db/orders/ns-db Bearer first yes application/json " +
			`{"hold":true,"drain":["db-2"],"writer":"db-1","for":"30000ms"}`,
		"DELETE /pools/db/orders/ns-db Bearer third yes application/json ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWithoutAnOrderThePoolAnswers(t *testing.T) {
	requests := 0
	endpoint := served(t, "a", func(w http.ResponseWriter, r *http.Request) {
		if requests++; strings.HasSuffix(r.URL.Path, "/orders") {
			io.WriteString(w, `{"pool":"db","writer":"db-0","orders":["another"]}`)
			return
		}
		http.Error(w, "no such order", http.StatusNotFound)
	})
	client := NewClient("", "")
	for _, expected := range []bool{true, false} {
		requests = 0
		reply := client.Ask(t.Context(), target, []Endpoint{endpoint}, expected)[0]
		if reply.Err != nil || reply.Answer.Order != nil || reply.Answer.Writer != "db-0" {
			t.Errorf("%+v", reply)
		}
		if !expected && requests != 1 {
			t.Errorf("at rest: %d requests", requests)
		}
	}
}

func TestAnUnusableAnswerIsAnErrorInWords(t *testing.T) {
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		status  int
		says    string
	}{
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"pool":"`+strings.Repeat("x", 2<<20)+`"}`)
		}, 0, "larger than 1 MiB"},
		"no JSON":         {says("<html>"), 0, "not JSON"},
		"of another kind": {says(`{"members":3}`), 0, "not JSON"},
		"of another pool": {says(`{"pool":"other"}`), 0, `pool "other"`},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, 302, "302"},
		"refused": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "another order's writer is in force: ns-other\nsecond line", http.StatusConflict)
		}, 409, "409: another order's writer is in force: ns-other"},
		"ended": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, 0, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := NewClient("", "").Ask(t.Context(), target, []Endpoint{served(t, "a", row.handler)}, true)[0]
			if reply.Answer != nil || reply.Err == nil || reply.Err.Status != row.status ||
				!strings.Contains(reply.Err.Error(), row.says) || strings.Contains(reply.Err.Error(), "\n") {
				t.Errorf("%+v %v", reply.Answer, reply.Err)
			}
		})
	}
}

func TestAllAreAskedAtOnceWithinTheDeadline(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	silent := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}
	endpoints := []Endpoint{
		served(t, "a", silent), served(t, "b", silent),
		served(t, "c", says(answered)),
	}
	began := time.Now()
	replies := NewClient("", "").Ask(t.Context(), target, endpoints, true)
	if took := time.Since(began); took < deadline || took > 2*deadline-100*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	for index, name := range []string{"a", "b", "c"} {
		if replies[index].Endpoint.Pod != name {
			t.Errorf("reply %d is of %s", index, replies[index].Endpoint.Pod)
		}
	}
	if replies[0].Err == nil || replies[0].Err.Text != "no answer within 2s" || replies[1].Err == nil ||
		replies[2].Err != nil {
		t.Errorf("%v %v %v", replies[0].Err, replies[1].Err, replies[2].Err)
	}
}

func TestATokenThatCannotBeReadIsNamed(t *testing.T) {
	endpoint := served(t, "a", func(http.ResponseWriter, *http.Request) {
		t.Error("it was asked without a token")
	})
	for _, file := range []string{"/no/such/token", tokenFile(t, "\n")} {
		reply := NewClient(file, "").Ask(t.Context(), target, []Endpoint{endpoint}, true)[0]
		if reply.Err == nil || !strings.Contains(reply.Err.Text, "the token cannot be read") {
			t.Error(reply.Err)
		}
	}
}

func TestACertificateIsProven(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, answered)
	}))
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint := []Endpoint{{Pod: "a", Address: strings.TrimPrefix(server.URL, "https://"), Ready: true}}
	client := NewClient("", file)
	if reply := client.Ask(context.Background(), target, endpoint, true)[0]; reply.Err != nil {
		t.Error(reply.Err)
	}
	stranger := target
	stranger.Host = "proxima.db.svc"
	if reply := client.Ask(context.Background(), stranger, endpoint, true)[0]; reply.Err == nil {
		t.Error("a certificate of another name was taken")
	}
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if reply := client.Ask(context.Background(), target, endpoint, true)[0]; reply.Err == nil ||
		!strings.Contains(reply.Err.Text, "no certificate") {
		t.Error(reply.Err)
	}
}
