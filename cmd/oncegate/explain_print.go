package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"oncegate/internal/capture"
	"oncegate/internal/config"
	"oncegate/internal/telemetry"
	"oncegate/proxy"
	"oncegate/verify"
)

// An explainer prints what a route makes of a request.
type explainer struct {
	out     io.Writer
	config  *config.Config
	route   *config.Route
	request capture.Request
	proxy.Foresight
}

func (e *explainer) say(format string, args ...any) { fmt.Fprintf(e.out, format+"\n", args...) }

func (e *explainer) print(ctx context.Context) {
	d := e.request.Delivery
	e.say("route %s, %s, %s", e.route.Name, orDash(e.route.Provider), e.route.Mode)
	e.say("%s %s, body of %d bytes", printable(d.Method), printable(d.Target), len(d.Body))
	for _, doubt := range e.request.Doubts {
		e.say("  doubt: %s", doubt)
	}
	if on := proxy.RouteOf(e.config, d.Target); on == nil || on.Name != e.route.Name {
		e.say("  its path is not this route's, which is %s", e.route.Path)
	}
	if e.Passes {
		e.say("answer: the app's; the request is no delivery, and passes through")
		return
	}
	e.printSignature(ctx)
	e.printKey()
	e.printAnswer()
}

func (e *explainer) printSignature(ctx context.Context) {
	switch {
	case e.route.Verifier == nil:
		e.say("signature: this route verifies none")
		return
	case e.Trace == nil: // a handshake that may come without
		e.say("signature: none is asked for")
		return
	}
	for _, check := range e.Trace.Checks {
		e.printCheck(&check)
	}
	if e.Unjudged {
		e.say("verified: not known, since nobody was asked; --fetch asks")
		return
	}
	if e.Trace.Err == nil {
		e.say("verified: yes")
		return
	}
	e.say("verified: no, %v", e.Trace.Err)
	for _, hint := range e.hints(ctx) {
		e.say("  perhaps %s", printable(hint))
	}
}

func (e *explainer) printCheck(check *verify.Check) {
	e.say("signature in %s", check.Place)
	e.say("  signed text   %s", shortened(printable(string(check.Signed)), 300))
	for _, given := range check.Given {
		e.say("  given         %s", shortened(printable(given), 100))
	}
	for _, computed := range check.Computed {
		e.say("  computed      %s... (its first 8 characters)", computed)
	}
	if check.URL != "" {
		e.say("  URL           %s", printable(check.URL))
	}
	if check.Time != "" {
		e.say("  time          %s (%s)", printable(check.Time), check.At.UTC().Format(time.RFC3339))
	}
	if !check.Asks {
		e.say("  fits          %s", yesNo(check.Fits))
	}
}

// hints says what is likely wrong with a delivery that was refused.
func (e *explainer) hints(ctx context.Context) []string {
	var refused *verify.Error
	if !errors.As(e.Trace.Err, &refused) {
		return nil
	}
	d := e.request.Delivery
	switch refused.Kind {
	case verify.Missing, verify.Malformed:
		return []string{"the route names another provider than the one that sent this"}
	case verify.Stale:
		hints := []string{"a clock is wrong"}
		if n := len(e.Trace.Checks); n > 0 && !e.Trace.Checks[n-1].At.IsZero() {
			at := e.Trace.Checks[n-1].At.UTC().Format(time.RFC3339)
			hints = append([]string{"it was captured some time ago: it was genuine at " + at + ", which --at " + at + " says"}, hints...)
		}
		return hints
	case verify.Mismatch:
		hints := e.route.Verifier.Hints(ctx, d)
		for _, name := range elsewhere(ctx, e.config, e.route.Name, d) {
			hints = append(hints, "it was meant for route "+name+", whose signature check it passes: the provider calls the wrong path, or the secrets are mixed up")
		}
		if len(hints) > 0 {
			return hints
		}
		hints = []string{"the secret is another endpoint's", "the body was changed on the way, in more than white space"}
		if !d.Remote.IsValid() && refused.Place == "sender's address" {
			return []string{"all is well: a captured request doesn't say where it came from"}
		}
		for _, check := range e.Trace.Checks {
			if check.URL != "" {
				hints = append(hints, "public_url and the request's path and query are not the URL that the provider was told")
			}
		}
		return hints
	}
	return nil
}

// maxShownKeys bounds the keys of a batch that are printed.
const maxShownKeys = 20

func (e *explainer) printKey() {
	if e.Handshake != "" {
		e.say("handshake: %s; forwarded each time, never claimed", e.Handshake)
		return
	}
	if e.route.Rules == nil {
		e.say("event key: this route reads none")
		return
	}
	for _, f := range e.Found {
		value := f.Describe()
		if f.Usable() {
			value = shortened(printable(f.Value.Text), 100)
		}
		e.say("%-13s %s: %s", f.Of, f.Place, value)
	}
	if n := len(e.Values.Keys); e.route.Batches && n > 0 {
		e.say("batch: %d different events, the parts above are the first one's", n)
	}
	for i, key := range e.Values.Keys {
		if i == maxShownKeys {
			e.say("... and %d more", len(e.Values.Keys)-i)
			break
		}
		e.say("event key: %s", key)
	}
	if len(e.Values.Keys) == 0 {
		e.say("event key: none")
	}
	if e.Values.Guard != "" {
		e.say("guard: %s", e.Values.Guard)
	}
	if len(e.Values.Tags) > 0 {
		e.say("tags: %s", printable(strings.Join(e.Values.Tags, " ")))
	}
}

func (e *explainer) printAnswer() {
	condition := ""
	if e.Unjudged {
		condition = ", if it is genuine"
	}
	switch {
	case e.Result == "":
		e.say("answer: the app's where the event is new (fresh), the stored one where it is done (replay)%s", condition)
	case e.Result == telemetry.ResultObserved:
		e.say("answer: the app's (observed): this route forwards everything%s", wouldBe(e.Err))
	case e.Status == 0:
		e.say("answer: the app's (%s)%s", e.Result, condition)
	default:
		e.say("answer: %d (%s); nothing reaches the app", e.Status, e.Result)
	}
}

// wouldBe says what enforcement would make of a delivery.
func wouldBe(err error) string {
	if err != nil {
		return ", also what it would refuse under mode: enforce"
	}
	return ""
}
