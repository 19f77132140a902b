package tollgate

import (
	"context"
	"net"
)

// checkedConn refuses to write to a connection that the server has closed. net/http then takes another one, because
// nothing was written; without the check it may write before it notices, and whether that arrived is not known.
type checkedConn struct {
	net.Conn
	isClosed func() bool
}

func (c checkedConn) Write(data []byte) (int, error) {
	if c.isClosed() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(data)
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return checkedConn{connection, closedCheck(connection)}, nil
}
