package harness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// SendRaw writes a request to a host:port byte for byte as given, so that
// nothing cleans up its target or its headers, and reads one answer. Lines are
// the request line and the header's lines; Content-Length is added where there
// is a body.
func SendRaw(addr string, lines []string, body []byte) Answer {
	start := time.Now()
	head := strings.Join(lines, "\r\n") + "\r\nConnection: close\r\n"
	if body != nil {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	answer, err := exchange(addr, append([]byte(head+"\r\n"), body...))
	answer.Err, answer.Took = err, time.Since(start)
	return answer
}

// SendChunked is SendRaw with the body in chunks of the given size, each
// written by itself, and no Content-Length.
func SendChunked(addr string, lines []string, body []byte, size int) Answer {
	start := time.Now()
	chunks := [][]byte{[]byte(strings.Join(lines, "\r\n") + "\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")}
	for chunk := range slices.Chunk(body, size) {
		chunks = append(chunks, fmt.Appendf(nil, "%x\r\n%s\r\n", len(chunk), chunk))
	}
	answer, err := exchange(addr, append(chunks, []byte("0\r\n\r\n"))...)
	answer.Err, answer.Took = err, time.Since(start)
	return answer
}

// exchange writes the pieces one by one and reads one answer.
func exchange(addr string, pieces ...[]byte) (Answer, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return Answer{}, err
	}
	for _, piece := range pieces {
		if _, err := conn.Write(piece); err != nil {
			return Answer{}, err
		}
	}
	return readAnswer(bufio.NewReader(conn))
}

func readAnswer(in *bufio.Reader) (Answer, error) {
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body}, err
}
