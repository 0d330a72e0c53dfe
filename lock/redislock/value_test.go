package redislock

import (
	"bytes"
	"errors"
	"testing"

	"oncegate/lock"
)

// FuzzDecode: whatever lies there, the error is ours and there is no panic, and
// what is read comes back when it is written.
func FuzzDecode(f *testing.F) {
	n := lock.Record{
		Key: lock.KeyOf("n", "s", "t"), Text: "t", State: lock.StateDone, Tags: []string{"a=1", ""}, Attempt: 3,
		Names: lock.Digest{1}, Reason: lock.ReasonAnswered, AnswerBody: []byte{0, 1}, Request: []byte("r"), Token: lock.NewToken(),
	}
	head := append([]byte{format}, make([]byte, headSize-1)...)
	f.Add(append(bytes.Clone(head), encodeRest(&n)...))
	f.Add(append(bytes.Clone(head), encodeRest(&lock.Record{})...))
	f.Add(head)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, _, err := decode(n.Key, value)
		if err != nil {
			if !errors.Is(err, lock.ErrUnfit) {
				t.Fatal(err)
			}
			return
		}
		again, _, err := decode(n.Key, append(bytes.Clone(value[:headSize]), encodeRest(&r)...))
		if err != nil || !bytes.Equal(encodeRest(&again), encodeRest(&r)) || again.Version != r.Version {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("shop", "stripe", []byte("e"))
	f.Add("a:b", "%3A:}{*", []byte{})
	f.Add("", "", []byte{0})
	f.Fuzz(func(t *testing.T, namespace, scope string, text []byte) {
		s := &Store{options: Options{Prefix: "p:"}}
		k := lock.KeyOf(namespace, scope, string(text))
		got, ok := s.parseKey(s.key(&k))
		if !ok || got != k {
			t.Fatalf("%+v became %+v, %v", k, got, ok)
		}
	})
}
