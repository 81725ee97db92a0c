package versions

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const entry80 = `"8.0.42-33.1":{"imagePath":"percona/percona-xtradb-cluster:8.0.42-33.1","imageHash":"4768",` +
	`"imageHashArm64":"","imageReleaseTimestamp":null,"status":"recommended","critical":false}`

// offering is an answer as Percona's service gives it, with all components that it knows.
func offering(entries string) string {
	return fmt.Sprintf(`{"versions":[{"product":"pxc-operator","operator":"1.18.0","matrix":{"mongod":{},"pxc":{%s},`+
		`"pmm":{"2.44.1-1":{"status":"status_invalid"}},"haproxy":{},"somethingNew":[1]},"newField":1}]}`,
		entries)
}

func asked(endpoint string) (Entry, *Problem) {
	return NewClient(time.Second).Ask(context.Background(), Question{Endpoint: endpoint,
		Product:         "pxc-operator",
		OperatorVersion: "1.18.0", Component: "pxc", Word: "recommended", DatabaseVersion: "8.0.41-32.1"})
}

func TestClientAsksAsPerconasOperatorsDo(t *testing.T) {
	var got string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.String()
		fmt.Fprint(w, offering(entry80))
	}))
	defer service.Close()
	for _, endpoint := range []string{service.URL, service.URL + "/"} {
		entry, refused := asked(endpoint)
		got42 := entry.Image == "percona/percona-xtradb-cluster:8.0.42-33.1" && entry.Version.String() == "8.0.42-33.1"
		if refused != nil || !got42 {
			t.Errorf("%+v (%v)", entry, refused)
		}
		want := "GET /versions/v1/pxc-operator/1.18.0/recommended?databaseVersion=8.0.41-32.1&platform=kubernetes"
		if got != want {
			t.Errorf("asked %s, not %s", got, want)
		}
	}
}

func TestAnswerThatIsNotExactlyOneVersionIsRefusedWithAReason(t *testing.T) {
	second := strings.ReplaceAll(entry80, "33.1", "33.2")
	for _, row := range []struct {
		status       int
		body         string
		reason, want string
	}{
		{200, offering(""), Malformed, "offers 0 versions of pxc"},
		{200, offering(entry80 + "," + second), Malformed, "offers 2 versions of pxc"},
		{200, offering(entry80 + "," + entry80), Malformed, "`8.0.42-33.1` is there twice"},
		{200, `{"versions":[]}`, Malformed, "answers nothing for pxc-operator 1.18.0"},
		{200, `{}`, Malformed, "answers nothing for pxc-operator 1.18.0"},
		{200, strings.ReplaceAll(offering(entry80), "1.18.0", "1.17.0"), Malformed,
			"answers nothing for pxc-operator 1.18.0"},
		{200, strings.ReplaceAll(offering(entry80), `"pxc":`, `"mysql":`), Malformed, "it offers nothing"},
		{200, strings.Replace(offering(entry80), `"pxc":`, `"pxc":{},"pxc":`, 1), Malformed,
			"`pxc` is there twice"},
		{200, strings.ReplaceAll(offering(entry80), "percona/percona", "percona percona"), Malformed,
			"is no image"},
		{200, strings.ReplaceAll(offering(entry80), "recommended", "wonderful"), Malformed, "is no status"},
		{200, strings.ReplaceAll(offering(entry80), `"8.0.42`, `"eight`), Malformed, "is no version"},
		{200, `{"versions":{"pxc":1}}`, Malformed, "is no list"},
		{200, `[]`, Malformed, "has to be `key: value`"},
		{200, `null`, Malformed, "has to be `key: value`"},
		{200, ``, Malformed, "the answer is no JSON"},
		{200, `<html>Sign in</html>`, Malformed, "the answer is no JSON"},
		{200, "versions: []\n", Malformed, "the answer is no JSON"},
		{200, offering(entry80) + offering(entry80), Malformed, "the answer is no JSON"},
		{200, `{"versions":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, Malformed,
			"has to be `key: value`"},
		{404, `{"code":5,"message":"version 8.0.99 does not exist","details":[]}`, NotOffered,
			"404: version 8.0.99 does not exist"},
		{404, `secret page of another program`, NotOffered, "404"},
		{500, `{"code":13,"message":"` + strings.Repeat("x", 900) + `"}`, Unreachable, "500: xxx"},
		{503, ``, Unreachable, "503"},
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(row.status)
			fmt.Fprint(w, row.body)
		}))
		entry, refused := asked(service.URL)
		service.Close()
		if refused == nil {
			t.Errorf("%d %s was taken as %+v", row.status, short(row.body), entry)
			continue
		}
		if refused.Reason != row.reason || !strings.Contains(refused.Message,
			row.want) || len(refused.Message) > 500 ||
			strings.Contains(refused.Message, "secret") {
			t.Errorf("%d %s: %s: %s", row.status, short(row.body), refused.Reason, refused.Message)
		}
	}
}

func TestHostileServiceCostsLittleTimeAndMemory(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the other host was asked")
		fmt.Fprint(w, offering(entry80))
	}))
	defer other.Close()
	end := make(chan struct{})
	for name, row := range map[string]struct {
		answer       http.HandlerFunc
		reason, want string
	}{
		"10 MiB": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat(" ", 10<<20), offering(entry80))
		}, Malformed, "longer than 1048576 bytes"},
		"more than 1 MiB, and no end": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, strings.Repeat(" ", 2<<20))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, Malformed, "longer than 1048576 bytes"},
		"never": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}, Unreachable, "Timeout"},
		"a byte at a time": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		}, Unreachable, "Timeout"},
		"another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		}, Unreachable, "redirects to another host"},
		"itself": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, Unreachable, "again and again"},
		"a broken answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			Unreachable, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			service := httptest.NewServer(row.answer)
			defer service.Close()
			began := time.Now()
			entry, refused := asked(service.URL)
			if refused == nil {
				t.Fatalf("it was taken as %+v", entry)
			}
			if refused.Reason != row.reason || !strings.Contains(refused.Message, row.want) {
				t.Errorf("%s: %s", refused.Reason, refused.Message)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s with a limit of 1 s", took)
			}
		})
	}
	close(end)
}

func TestRedirectOfTheSameHostIsFollowed(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/new/") {
			http.Redirect(w, r, "/new"+r.URL.Path, http.StatusMovedPermanently)
			return
		}
		fmt.Fprint(w, offering(entry80))
	}))
	defer service.Close()
	if entry, refused := asked(service.URL); refused != nil {
		t.Errorf("%+v: %v", entry, refused)
	}
}

func TestServiceThatIsNotThereIsAReason(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	for endpoint, reason := range map[string]string{
		"http://" + listener.Addr().String(): Unreachable,
		"ftp://check.percona.com":            BadOptions,
		"check.percona.com":                  BadOptions,
		"":                                   BadOptions,
		"http://a b/":                        BadOptions,
	} {
		if _, refused := asked(endpoint); refused == nil || refused.Reason != reason {
			t.Errorf("%q: %v", endpoint, refused)
		}
	}
}
