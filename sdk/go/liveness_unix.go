//go:build unix

package tollgate

import (
	"net"
	"syscall"
)

// closedCheck looks at a connection without taking anything from it.
func closedCheck(connection net.Conn) func() bool {
	raw, err := connection.(syscall.Conn).SyscallConn()
	if err != nil {
		return func() bool { return false }
	}
	return func() bool {
		closed := false
		err := raw.Control(func(fd uintptr) { // not Read, which would wait for the reader that net/http keeps
			var one [1]byte
			count, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			switch err {
			case nil:
				closed = count == 0
			case syscall.EAGAIN, syscall.EINTR:
			default:
				closed = true
			}
		})
		return closed || err != nil
	}
}
