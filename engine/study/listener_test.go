package study

import "net"

// newListener listens on a free port of this machine.
func newListener() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
