package versions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Timeout is how long an answer may take, from the connection to its last byte.
const Timeout = 10 * time.Second

// Question is what a version service is asked.
type Question struct {
	Endpoint, Product, OperatorVersion, Component string
	// Word is the last part of the path: a choice or a version.
	Word string
	// DatabaseVersion is what runs; empty: no member has run yet.
	DatabaseVersion string
}

// Client asks version services.
type Client struct {
	http    http.Client
	lock    sync.Mutex
	replies map[Question]*reply
}

// NewClient returns a client that keeps no connection: it asks once a day or so.
func NewClient(timeout time.Duration) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	return &Client{
		http:    http.Client{Timeout: timeout, Transport: transport, CheckRedirect: sameHost},
		replies: map[Question]*reply{},
	}
}

func sameHost(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("it redirects to another host, %s", next.URL.Redacted())
	}
	if len(before) > 3 {
		return errors.New("it redirects again and again")
	}
	return nil
}

// Ask returns the one version that the service offers.
func (c *Client) Ask(ctx context.Context, q Question) (Entry, *Problem) {
	address, err := q.url()
	if err != nil {
		return Entry{}, problem(BadOptions, "versionServiceEndpoint: %s", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return Entry{}, problem(BadOptions, "versionServiceEndpoint: %s", err)
	}
	request.Header.Set("Accept", "application/json")
	asked := address.Redacted()
	response, err := c.http.Do(request)
	if err != nil {
		return Entry{}, problem(Unreachable, "%s", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBytes+1))
	if err != nil {
		return Entry{}, problem(Unreachable, "Get %q: %s", asked, err)
	}
	switch {
	case len(body) > MaxBytes:
		return Entry{}, problem(Malformed, "Get %q: the answer is longer than %d bytes", asked, MaxBytes)
	case response.StatusCode == http.StatusNotFound:
		return Entry{}, problem(NotOffered, "Get %q: 404%s", asked, said(body))
	case response.StatusCode != http.StatusOK:
		return Entry{}, problem(Unreachable, "Get %q: %d%s", asked, response.StatusCode, said(body))
	}
	offers, err := ReadAnswer(body, q.Component)
	if err != nil {
		return Entry{}, problem(Malformed, "Get %q: %s", asked, err)
	}
	return Only(offers, q.Product, q.OperatorVersion, q.Component)
}

func (q Question) url() (*url.URL, error) {
	address, err := url.Parse(q.Endpoint)
	if err != nil {
		return nil, err
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("%q is no address: write it as https://check.percona.com", short(q.Endpoint))
	}
	address = address.JoinPath("versions", "v1", url.PathEscape(q.Product), url.PathEscape(q.OperatorVersion),
		url.PathEscape(q.Word))
	query := url.Values{"platform": {"kubernetes"}}
	if q.DatabaseVersion != "" {
		query.Set("databaseVersion", q.DatabaseVersion)
	}
	address.RawQuery = query.Encode()
	return address, nil
}

// said is what the service says of an error, if it is one of this API. Another text is not repeated: it may
// be that of a program which was never meant to be asked.
func said(body []byte) string {
	var answer struct {
		Code    *int
		Message string
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == nil || answer.Message == "" {
		return ""
	}
	return ": " + short(strings.ToValidUTF8(strings.Join(strings.Fields(answer.Message), " "), "?"))
}
