package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what a command writes, read while it runs.
type output struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.text.String()
}

func TestVersionsAreServedUntilTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out := &output{}
	ended := make(chan error, 1)
	go func() {
		ended <- serveVersions(ctx, []string{"--file", "../../examples/mariadb.yaml", "--listen",
			"127.0.0.1:0"}, out)
	}()
	said := regexp.MustCompile(`address=(\S+)`)
	var address []string
	for end := time.Now().Add(30 * time.Second); address == nil; address = said.FindStringSubmatch(out.String()) {
		if time.Now().After(end) {
			t.Fatal("it has not said its address within 30 s")
		}
		time.Sleep(time.Millisecond)
	}
	response, err := http.Get("http://" + address[1] + "/versions/v1/mariadb/1.0.0/recommended?databaseVersion=10.11.9")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !strings.Contains(string(body), `"docker.io/library/mariadb:10.11.19"`) {
		t.Errorf("%s (%v)", body, err)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it has not ended within 30 s")
	}
}

func TestVersionsWithoutAGoodFileEndInWords(t *testing.T) {
	for _, row := range []struct {
		arguments []string
		want      string
	}{
		{nil, "name the file"},
		{[]string{"--file", "/nowhere/versions.yaml"}, "no such file"},
		{[]string{"--file", "versions.go"}, "versions.go: line "},
		{[]string{"--file", "../../examples/pxc.json", "more"}, "name the file"},
		{[]string{"--port", "1"}, "flag provided but not defined: -port"},
		{[]string{"--file", "../../examples/pxc.json", "--listen", "nowhere:0:0"}, "too many colons"},
	} {
		err := serveVersions(context.Background(), row.arguments, io.Discard)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v, not %s", row.arguments, err, row.want)
		}
	}
	if err := serveVersions(context.Background(), []string{"--help"}, io.Discard); !errors.Is(err,
		flag.ErrHelp) {
		t.Error(err)
	}
}
