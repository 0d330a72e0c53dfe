package forward_test

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oncegate/internal/forward"
)

func TestFastCGISpool(t *testing.T) {
	root, fpm := startPHP(t, 2)
	gone := errors.New("the client is gone")
	t.Run("B53 of half a body PHP sees nothing, since it would take that for all", func(t *testing.T) {
		cl := php(t, fpm.Socket, root, 0, forward.Options{})
		for _, length := range []int64{1000, -1} {
			req := httptest.NewRequest("POST", "/hook?do=echo", io.MultiReader(strings.NewReader(`{"id":1}`), failing{gone}))
			req.ContentLength = length
			_, err := cl.RoundTrip(req)
			var known *forward.Error
			if !errors.As(err, &known) || known.Sent() || !errors.Is(err, forward.ErrRequestBody) {
				t.Errorf("of %d bytes: got %v; sent: %v", length, err, known != nil && known.Sent())
			}
		}
	})
	for name, size := range map[string]int{"no room": 100 << 10, "too large to be read ahead": 3 << 20} {
		t.Run(name+": streamed", func(t *testing.T) {
			room := &room{left: 20 << 10}
			cl := php(t, fpm.Socket, root, time.Minute, forward.Options{Room: room})
			for range 3 {
				body := strings.Repeat("b", size)
				req := httptest.NewRequest("POST", "/hook?do=echo", strings.NewReader(body))
				resp, err := cl.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(got) != body {
					t.Errorf("PHP got %d bytes of %d, %v", len(got), size, err)
				}
			}
			if room.left != 20<<10 {
				t.Errorf("%d bytes of the room are left", room.left)
			}
		})
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

type room struct{ left int64 }

func (r *room) Take(n int64) bool {
	if n > r.left {
		return false
	}
	r.left -= n
	return true
}

func (r *room) GiveBack(n int64) { r.left += n }
