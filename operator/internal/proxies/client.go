package proxies

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of one request.
const (
	deadline = 2 * time.Second
	maxBody  = 1 << 20
)

// Client asks admin ports. Files are read at each request, so that an exchange of the token or the authority
// needs no restart.
type Client struct {
	// TokenFile has the token that the admin port asks for; empty: none.
	TokenFile string
	// CAFile has the authorities of the admin ports' certificates; empty: plain HTTP.
	CAFile string

	plain *http.Transport
	mutex sync.Mutex
	// secure has a transport for each name in certificates, and is for the authorities in `authorities`.
	secure      map[string]*http.Transport
	authorities []byte
}

// NewClient returns a client with connections of its own.
func NewClient(tokenFile, caFile string) *Client {
	return &Client{TokenFile: tokenFile, CAFile: caFile, plain: transport(nil)}
}

// transport makes a connection for each request, as an admin port answers one on each.
func transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:        (&net.Dialer{Timeout: deadline}).DialContext,
		TLSClientConfig:    config,
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
}

// Target is where an order goes.
type Target struct {
	// Host is the name that a certificate must have: the Service's, as proxima.db.svc.
	Host string
	Pool string
	// Order is its name.
	Order string
}

// Reply is one proxy's.
type Reply struct {
	Endpoint Endpoint
	Answer   *Answer
	Err      *Error
}

// Ask asks all endpoints at once. Where `expected`, each is asked for the order first. Where not, it is asked
// for the pool, and for the order only if it names it, so that at rest there is one request.
func (c *Client) Ask(ctx context.Context, target Target, endpoints []Endpoint, expected bool) []Reply {
	return all(ctx, endpoints, func(ctx context.Context, endpoint Endpoint) (*Answer, *Error) {
		if expected {
			answer, err := c.do(ctx, http.MethodGet, endpoint, target, target.Order, nil)
			if err == nil || err.Status != http.StatusNotFound {
				return answer, err
			}
		}
		answer, err := c.do(ctx, http.MethodGet, endpoint, target, "", nil)
		if err != nil || expected || !slices.Contains(answer.Orders, target.Order) {
			return answer, err
		}
		if whole, err := c.do(ctx, http.MethodGet, endpoint, target, target.Order, nil); err == nil {
			return whole, nil
		}
		return answer, nil
	})
}

// Give orders all endpoints the wish, for a time after which it ends by itself.
func (c *Client) Give(
	ctx context.Context, target Target, endpoints []Endpoint, wish Wish, life time.Duration,
) []Reply {
	body, err := json.Marshal(struct {
		Wish
		For string `json:"for"`
	}{wish, fmt.Sprintf("%dms", life.Milliseconds())})
	if err != nil {
		panic(err)
	}
	return all(ctx, endpoints, func(ctx context.Context, endpoint Endpoint) (*Answer, *Error) {
		return c.do(ctx, http.MethodPut, endpoint, target, target.Order, body)
	})
}

// End ends the order at all endpoints.
func (c *Client) End(ctx context.Context, target Target, endpoints []Endpoint) []Reply {
	return all(ctx, endpoints, func(ctx context.Context, endpoint Endpoint) (*Answer, *Error) {
		return c.do(ctx, http.MethodDelete, endpoint, target, target.Order, nil)
	})
}

// all asks each endpoint beside the others, within one deadline. Replies are in the endpoints' order.
func all(
	ctx context.Context, endpoints []Endpoint, ask func(context.Context, Endpoint) (*Answer, *Error),
) []Reply {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	replies := make([]Reply, len(endpoints))
	var group sync.WaitGroup
	for index, endpoint := range endpoints {
		group.Go(func() {
			answer, err := ask(ctx, endpoint)
			replies[index] = Reply{Endpoint: endpoint, Answer: answer, Err: err}
		})
	}
	group.Wait()
	return replies
}

// do makes one request. An answer that is too large, no JSON or for another pool is none.
func (c *Client) do(
	ctx context.Context, method string, endpoint Endpoint, target Target, order string, body []byte,
) (*Answer, *Error) {
	request, err := c.request(ctx, method, endpoint, target, order, body)
	if err != nil {
		return nil, &Error{Text: err.Error()}
	}
	carrier, err := c.carrier(target.Host)
	if err != nil {
		return nil, &Error{Text: err.Error()}
	}
	reply, err := carrier.RoundTrip(request)
	if err != nil {
		return nil, &Error{Text: unreachable(err)}
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, &Error{Text: unreachable(err)}
	case len(text) > maxBody:
		return nil, &Error{Text: "its answer is larger than 1 MiB"}
	case reply.StatusCode == http.StatusNoContent && method == http.MethodDelete:
		return nil, nil
	case reply.StatusCode != http.StatusOK:
		return nil, &Error{Status: reply.StatusCode, Text: firstLine(text, reply.Status)}
	}
	answer := &Answer{}
	if err := json.Unmarshal(text, answer); err != nil {
		return nil, &Error{Text: "its answer is not JSON of an order: " + err.Error()}
	}
	if answer.Pool != target.Pool {
		return nil, &Error{Text: fmt.Sprintf("its answer is for pool %q", answer.Pool)}
	}
	return answer, nil
}

func (c *Client) request(
	ctx context.Context, method string, endpoint Endpoint, target Target, order string, body []byte,
) (*http.Request, error) {
	scheme := "http"
	if c.CAFile != "" {
		scheme = "https"
	}
	where := fmt.Sprintf("%s://%s/pools/%s/orders", scheme, endpoint.Address, url.PathEscape(target.Pool))
	if order != "" {
		where += "/" + url.PathEscape(order)
	}
	request, err := http.NewRequestWithContext(ctx, method, where, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method != http.MethodGet {
		request.Header.Set("X-Proxima", "yes")
		request.Header.Set("Content-Type", "application/json")
	}
	if c.TokenFile == "" {
		return request, nil
	}
	token, err := readToken(c.TokenFile)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return request, nil
}

// readToken returns the first line of the file. In a rotation that is the token that all proxies know.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("the token cannot be read: %w", err)
	}
	token := firstLine(text, "")
	if token == "" {
		return "", fmt.Errorf("the token cannot be read: %s is empty", file)
	}
	return token, nil
}

// carrier is what takes requests to proxies. RoundTrip follows no redirect: the token goes to nobody else.
func (c *Client) carrier(host string) (http.RoundTripper, error) {
	if c.CAFile == "" {
		return c.plain, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("the authorities cannot be read: %w", err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !bytes.Equal(text, c.authorities) {
		for _, old := range c.secure {
			old.CloseIdleConnections()
		}
		c.secure, c.authorities = map[string]*http.Transport{}, text
	}
	if c.secure[host] == nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the authorities cannot be read: no certificate in %s", c.CAFile)
		}
		c.secure[host] = transport(&tls.Config{RootCAs: pool, ServerName: host})
	}
	return c.secure[host], nil
}

// unreachable says what happened without the address, which the name of the proxy's pod stands for.
func unreachable(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Sprintf("no answer within %s", deadline)
	}
	return err.Error()
}

func firstLine(text []byte, otherwise string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return otherwise
	}
	return line[:min(len(line), 300)]
}
