package tollgate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// DefaultURL is where a server listens by default.
	DefaultURL = "http://127.0.0.1:8080"
	// DefaultTimeout is that of one call, connection included.
	DefaultTimeout = 250 * time.Millisecond
	// DefaultConnections is how many connections a client has at most.
	DefaultConnections = 64
)

// OnError says what a decision is while there is none of the server.
type OnError string

const (
	// Open allows.
	Open OnError = "open"
	// Closed refuses with 503.
	Closed OnError = "closed"
	// Local asks the fallback limiter of this process.
	Local OnError = "local"
)

// Settings of a client. The zero value takes everything from the environment and the defaults.
type Settings struct {
	// URL of the server; TOLLGATE_URL, else DefaultURL, if empty.
	URL string
	// Token of the data API; TOLLGATE_DATA_TOKEN if empty.
	Token string
	// Timeout of one call, connection included. The deadline of a context may shorten it.
	Timeout time.Duration
	// OnError is Local if there is a fallback, else Open, if empty.
	OnError OnError
	// Fallback is the limit of this process while there is no answer.
	Fallback *Limit
	// Connections at most.
	Connections int
	// TLS for https URLs.
	TLS *tls.Config
	// OnUnavailable is called with the cause whenever there is no decision. It must not block.
	OnUnavailable func(error)
	// Clock replaces time.Now in tests.
	Clock func() time.Time
}

// complete fills in what is missing and says what is wrong.
func (s Settings) complete() (Settings, *url.URL, error) {
	s.URL = first(s.URL, os.Getenv("TOLLGATE_URL"), DefaultURL)
	s.Token = first(s.Token, os.Getenv("TOLLGATE_DATA_TOKEN"))
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.Connections == 0 {
		s.Connections = DefaultConnections
	}
	if s.Clock == nil {
		s.Clock = time.Now
	}
	if s.OnError == "" {
		s.OnError = Open
		if s.Fallback != nil {
			s.OnError = Local
		}
	}
	base, err := url.Parse(s.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.User != nil ||
		base.RawQuery != "" || base.Fragment != "" {
		return s, nil, errors.New("tollgate: the URL is like http://127.0.0.1:8080 or https://limits.example.com")
	}
	return s, base, s.check()
}

func (s Settings) check() error {
	switch {
	case s.OnError != Open && s.OnError != Closed && s.OnError != Local:
		return fmt.Errorf("tollgate: OnError is open, closed or local, not %q", s.OnError)
	case s.OnError == Local && s.Fallback == nil:
		return errors.New("tollgate: OnError local needs a Fallback limit")
	case s.Timeout < time.Millisecond || s.Connections < 1:
		return errors.New("tollgate: Timeout is at least a millisecond, Connections at least 1")
	case strings.ContainsFunc(s.Token, func(char rune) bool { return char <= ' ' || char > '~' }):
		return errors.New("tollgate: the token has characters that no token has")
	}
	return nil
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
