package lock

import "time"

// IsSettled lets tests end what a failed step has left running.
func (a *Attempt) IsSettled() bool {
	select {
	case <-a.settled:
		return true
	default:
		return false
	}
}

// LimitOwed sets after how many owed writes no attempt begins.
func (g *Gate) LimitOwed(n int) { g.owed.limit = n }

// Owed are debts in a journal, for its tests.
type Owed struct {
	j     *Journal
	debts []*debt
	Err   error
}

// OweTo writes n debts into a journal.
func OweTo(j *Journal, n int) *Owed {
	o := &Owed{j: j, debts: someDebts(n)}
	o.Err = j.write(j.entries(o.debts))
	return o
}

// Pay strikes them off.
func (o *Owed) Pay() {
	paid := map[*debt]bool{}
	for _, d := range o.debts {
		paid[d] = true
	}
	o.j.strike(paid)
}

func someDebts(n int) []*debt {
	debts := make([]*debt, n)
	for i := range debts {
		next := Record{
			Key: Key{Namespace: "shop", Scope: "stripe", Digest: Digest{byte(i)}}, Text: "evt", State: StateDone,
			Attempt: 1, Token: NewToken(), Version: NewVersion(), Retain: time.Hour, Tags: []string{"order=1"},
		}
		answer := Answer{Status: 200, Header: []Line{{"Content-Type", "text/plain"}}, Body: make([]byte, 300)}
		answer.put(&next)
		held := next
		held.State, held.Request = StateRunning, Seal([]byte("request"))
		debts[i] = &debt{key: next.Key, token: next.Token, change: Change{Expect: NewVersion(), Next: next}, held: &held, lease: time.Minute}
		if i%2 == 1 {
			begin := debts[i].change
			debts[i] = undoOf(&begin, &Policy{Retention: time.Hour})
		}
	}
	return debts
}

// Payloads are examples of what lies in a journal.
func Payloads() (payloads [][]byte) {
	for i, d := range someDebts(2) {
		d.saved = uint64(i + 1)
		p, err := encodeDebt(d, nil)
		if err != nil {
			panic(err)
		}
		payloads = append(payloads, p)
	}
	return payloads
}

// Recode decodes a payload and encodes what it says.
func Recode(payload []byte) ([]byte, error) {
	d, err := decodeDebt(payload)
	if err != nil {
		return nil, err
	}
	d.appUntil = time.Time{} // moves with the clock
	d.change.Next.RunsUntil = 0
	return encodeDebt(d, nil)
}
