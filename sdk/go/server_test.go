package tollgate

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const allowedBody = `{"allowed":true,"limit":3,"remaining":2,"reset_at":1,"retry_after":null,` +
	`"retry_after_ms":null,"rule":"orders","mode":"store","generation":1}`

// patient is the timeout of calls that have to succeed, on however slow a machine.
const patient = 30 * time.Second

// fakeServer is a server of bytes: it serves every connection as a test says, and counts what arrives.
type fakeServer struct {
	url         string
	connections atomic.Int64
	mutex       sync.Mutex
	requests    []*http.Request
}

func newFakeServer(t *testing.T, serve func(*fakeServer, net.Conn)) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	server := &fakeServer{url: "http://" + listener.Addr().String()}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			server.connections.Add(1)
			go func() {
				defer connection.Close()
				serve(server, connection)
			}()
		}
	}()
	return server
}

// read takes one request; false at the end.
func (s *fakeServer) read(reader *bufio.Reader) bool {
	request, err := http.ReadRequest(reader)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, request)
	return true
}

func (s *fakeServer) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.requests)
}

// response are the bytes of an answer.
func response(status, fields, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		status, fields, len(body), body)
}

// answering answers every request with these bytes, over connections that stay open.
func answering(data string) func(*fakeServer, net.Conn) {
	return func(server *fakeServer, connection net.Conn) {
		for reader := bufio.NewReader(connection); server.read(reader); {
			if _, err := io.WriteString(connection, data); err != nil {
				return
			}
		}
	}
}

// closingAfterOne answers one request and closes, without having said so.
func closingAfterOne(server *fakeServer, connection net.Conn) {
	if server.read(bufio.NewReader(connection)) {
		_, _ = io.WriteString(connection, response("200 OK", "", allowedBody))
	}
}

// cutting takes requests and closes without an answer.
func cutting(server *fakeServer, connection net.Conn) { server.read(bufio.NewReader(connection)) }

// halted takes requests and never answers, for as long as the client waits.
func halted(server *fakeServer, connection net.Conn) {
	reader := bufio.NewReader(connection)
	server.read(reader)
	_, _ = reader.ReadByte()
}

func newClient(t *testing.T, settings Settings) *Client {
	t.Helper()
	if settings.Timeout == 0 {
		settings.Timeout = patient
	}
	client, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
