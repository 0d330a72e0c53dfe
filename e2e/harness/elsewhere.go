package harness

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CopyApp copies the app's files to a folder, which may be another machine's.
// Who owns them, and the database, are the caller's to see to.
func CopyApp(t testing.TB, root string) {
	t.Helper()
	if err := os.CopyFS(root, os.DirFS(appDir(t))); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bootstrap/cache", "storage/logs", "storage/framework/cache", "storage/framework/sessions", "storage/framework/views"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// AppKey makes a key for Laravel's APP_KEY.
func AppKey() string { return appKey() }

// NewSenderOver returns a sender that sends by a client of the caller's.
func NewSenderOver(client *http.Client) *Sender { return &Sender{client: client} }

// SendRawOver is SendRaw over a connection that dial makes.
func SendRawOver(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), address string, lines []string, body []byte) Answer {
	start := time.Now()
	answer, err := exchangeOver(ctx, dial, address, lines, body)
	answer.Err, answer.Took = err, time.Since(start)
	return answer
}

func exchangeOver(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), address string, lines []string, body []byte) (Answer, error) {
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return Answer{}, err
	}
	head := fmt.Sprintf("%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", strings.Join(lines, "\r\n"), len(body))
	if _, err := conn.Write(append([]byte(head), body...)); err != nil {
		return Answer{}, err
	}
	return readAnswer(bufio.NewReader(conn))
}
