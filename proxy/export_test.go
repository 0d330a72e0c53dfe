package proxy

import (
	"time"

	"oncegate/internal/forward"
)

// SetTimes shortens how long a sender may take over its body and its answer.
func (h *Handler) SetTimes(body, answer time.Duration) { h.bodyTime, h.answerTime = body, answer }

// SetPageTime shortens how long a client may take nothing of a page.
func (h *Handler) SetPageTime(d time.Duration) { h.pageTime = d }

// WrapApps puts something before the apps of all routes.
func (h *Handler) WrapApps(wrap func(forward.App) forward.App) {
	for _, r := range h.table.Load().routes {
		r.app = wrap(r.app)
	}
}
