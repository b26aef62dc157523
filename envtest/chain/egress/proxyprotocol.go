package egress

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// proxyProtocol is what a client and its proxy say before the client's own connection begins.
type proxyProtocol interface {
	// hear takes what a client has said, however it is cut. It returns the answer, and the
	// host as soon as the client has named it.
	hear(said []byte) (answer []byte, target string, err error)
	// join makes conn the client's. It says what is left to say: to the proxy at the other
	// end, if proxied, or else in the proxy's place to the client, as answer.
	join(conn net.Conn, proxied bool) (answer []byte, err error)
}

// newProxyProtocol tells protocols apart by the first byte.
func newProxyProtocol(first byte) proxyProtocol {
	if first == socksVersion {
		return &socksProtocol{}
	}
	return &httpProtocol{}
}

// httpProtocol is HTTP: requests of "http" name their URL, and CONNECT asks for a tunnel.
// net/http sends requests for any host one after the other to a proxy, and here a connection
// leads to one host: each request asks the server to close it.
type httpProtocol struct {
	asked  []byte
	tunnel bool
}

func (p *httpProtocol) hear(said []byte) (answer []byte, target string, err error) {
	p.asked = append(p.asked, said...)
	if !bytes.Contains(p.asked, []byte("\r\n\r\n")) {
		return nil, "", nil
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p.asked)))
	if err != nil {
		return nil, "", err
	}
	if p.tunnel = req.Method == http.MethodConnect; p.tunnel {
		return nil, req.Host, nil
	}
	if req.Header.Get("Connection") == "" {
		p.asked = bytes.Replace(p.asked, []byte("\r\n"), []byte("\r\nConnection: close\r\n"), 1)
	}
	return nil, hostPort(req.URL), nil
}

func (p *httpProtocol) join(conn net.Conn, proxied bool) (answer []byte, err error) {
	if p.tunnel && !proxied {
		return []byte("HTTP/1.1 200 Connection established\r\n\r\n"), nil
	}
	_, err = conn.Write(p.asked)
	return nil, err
}

// What SOCKS of version 5 says, in RFC 1928 and, for a user and a password, RFC 1929.
const (
	socksVersion      = 5
	socksLoginVersion = 1
	socksNoLogin      = 0
	socksLogin        = 2
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
)

// socksDone says that the connection is made, by an address that no client looks at.
var socksDone = []byte{socksVersion, 0, 0, socksIPv4, 0, 0, 0, 0, 0, 0}

// socksProtocol is SOCKS. It keeps what a client said, in case a proxy wants to hear it.
type socksProtocol struct {
	asked                    []byte // and not yet understood
	greeting, login, request []byte
}

func (p *socksProtocol) hear(said []byte) (answer []byte, target string, err error) {
	p.asked = append(p.asked, said...)
	for {
		switch {
		case p.greeting == nil:
			if p.greeting = p.cut(socksGreetingLength); p.greeting == nil {
				return answer, "", nil
			}
			answer = append(answer, socksVersion, p.method())
		case p.login == nil && p.method() == socksLogin:
			if p.login = p.cut(socksLoginLength); p.login == nil {
				return answer, "", nil
			}
			answer = append(answer, socksLoginVersion, 0)
		default:
			if p.request = p.cut(socksRequestLength); p.request == nil {
				return answer, "", nil
			}
			target, err = socksTarget(p.request)
			return answer, target, err
		}
	}
}

// method is that of the client's choice which tells most: a proxy may want a login.
func (p *socksProtocol) method() byte {
	if bytes.IndexByte(p.greeting[2:], socksLogin) >= 0 {
		return socksLogin
	}
	return socksNoLogin
}

func (p *socksProtocol) join(conn net.Conn, proxied bool) (answer []byte, err error) {
	if !proxied {
		return socksDone, nil
	}
	if _, err := conn.Write(p.greeting); err != nil {
		return nil, err
	}
	chosen := make([]byte, 2)
	if _, err := io.ReadFull(conn, chosen); err != nil {
		return nil, err
	}
	switch method := chosen[1]; {
	case method == socksNoLogin:
	case method == socksLogin && p.login != nil:
		if _, err := conn.Write(p.login); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conn, chosen); err != nil {
			return nil, err
		}
		if chosen[1] != 0 {
			return nil, errors.New("the SOCKS proxy of the environment refused the user and password")
		}
	default:
		return nil, fmt.Errorf("the SOCKS proxy of the environment wants authentication by method %d; give its URL a user and a password", method)
	}
	_, err = conn.Write(p.request)
	return nil, err
}

// cut takes a message from the beginning of what is asked, or nil if it is not all there:
// length is 0 as long as it can't be known.
func (p *socksProtocol) cut(length func([]byte) int) []byte {
	n := length(p.asked)
	if n == 0 || len(p.asked) < n {
		return nil
	}
	message := p.asked[:n:n]
	p.asked = p.asked[n:]
	return message
}

// socksGreetingLength is that of a version and a list of methods.
func socksGreetingLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	return 2 + int(b[1])
}

// socksLoginLength is that of a version, a user and a password.
func socksLoginLength(b []byte) int {
	if len(b) < 2 || len(b) < 3+int(b[1]) {
		return 0
	}
	user := int(b[1])
	return 3 + user + int(b[2+user])
}

// socksRequestLength is that of a version, a command, a reserved byte, an address and a port.
// An unknown kind of address has no length, and socksTarget refuses it.
func socksRequestLength(b []byte) int {
	const head, port = 4, 2
	if len(b) < head+1 {
		return 0
	}
	switch b[3] {
	case socksIPv4:
		return head + net.IPv4len + port
	case socksIPv6:
		return head + net.IPv6len + port
	case socksName:
		return head + 1 + int(b[head]) + port
	default:
		return head
	}
}

// socksTarget is the host that a request asks to be connected with.
func socksTarget(request []byte) (string, error) {
	if request[1] != socksConnect {
		return "", fmt.Errorf("SOCKS: command %d is not to connect", request[1])
	}
	address, port := request[4:max(4, len(request)-2)], request[len(request)-2:]
	number := strconv.Itoa(int(port[0])<<8 | int(port[1]))
	switch request[3] {
	case socksIPv4, socksIPv6:
		return net.JoinHostPort(net.IP(address).String(), number), nil
	case socksName:
		return net.JoinHostPort(string(address[1:]), number), nil
	default:
		return "", fmt.Errorf("SOCKS: addresses of kind %d are unknown", request[3])
	}
}
