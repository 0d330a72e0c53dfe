package lock

// IsSettled lets tests end what a failed step has left running.
func (a *Attempt) IsSettled() bool {
	select {
	case <-a.settled:
		return true
	default:
		return false
	}
}

// Claimed returns the key texts that the attempt holds.
func (a *Attempt) Claimed() (texts []string) {
	for _, c := range a.claims {
		texts = append(texts, c.item.Text)
	}
	return texts
}
