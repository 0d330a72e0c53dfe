package proxy

import "time"

// SetTimes shortens how long a sender may take over its body and its answer.
func (h *Handler) SetTimes(body, answer time.Duration) { h.bodyTime, h.answerTime = body, answer }
