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
	e.printChecks()
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

// printChecks prints the first comparisons, and always the last one, which is the
// one that failed where one did.
func (e *explainer) printChecks() {
	checks := e.Trace.Checks
	shown := min(len(checks), proxy.MaxExplained)
	for i := range checks[:shown] {
		e.printCheck(&checks[i])
	}
	left := len(checks) - shown
	if left == 0 {
		return
	}
	if last := &checks[len(checks)-1]; !last.Fits {
		e.say("... and %d more that fit", left-1)
		e.printCheck(last)
		return
	}
	e.say("... and %d more that fit", left)
}

func (e *explainer) printCheck(check *verify.Check) {
	of := ""
	if check.Item > 0 {
		of = fmt.Sprintf(" of item %d", check.Item)
	}
	e.say("signature%s in %s", of, check.Place)
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

// hints says what is likely wrong with a delivery that was refused: what would make
// its signature fit, or else what it is in most cases.
func (e *explainer) hints(ctx context.Context) []string {
	var refused *verify.Error
	if !errors.As(e.Trace.Err, &refused) {
		return nil
	}
	if refused.Kind == verify.Stale {
		return e.staleHints()
	}
	var certain []string
	for _, name := range elsewhere(ctx, e.config, e.route.Name, e.request.Delivery) {
		certain = append(certain, "it was meant for route "+name+", whose signature check it passes: the provider calls the wrong path, or the secrets are mixed up")
	}
	if certain = append(certain, e.route.Verifier.Hints(ctx, e.request.Delivery)...); len(certain) > 0 {
		return certain
	}
	switch refused.Kind {
	case verify.Missing:
		return []string{"the route names another provider than the one that sent this", "something on the way took the signature off"}
	case verify.Malformed:
		return []string{"the route names another provider than the one that sent this"}
	case verify.Mismatch:
		return e.mismatchHints(refused)
	}
	return nil
}

func (e *explainer) staleHints() []string {
	hints := []string{"a clock is wrong"}
	if n := len(e.Trace.Checks); n > 0 && !e.Trace.Checks[n-1].At.IsZero() {
		at := e.Trace.Checks[n-1].At.UTC().Format(time.RFC3339)
		hints = append([]string{"it was captured some time ago: it was genuine at " + at + ", which --at " + at + " says"}, hints...)
	}
	return hints
}

// mismatchHints are what it is in most cases that no signature fits.
func (e *explainer) mismatchHints(refused *verify.Error) []string {
	if !e.request.Delivery.Remote.IsValid() && refused.Place == "sender's address" {
		return []string{"all is well: a captured request doesn't say where it came from"}
	}
	hints := []string{"the secret is another endpoint's", "the body was changed on the way, in more than how it is written"}
	for _, check := range e.Trace.Checks {
		if check.URL != "" {
			hints = append(hints, "public_url and the request's path and query are not the URL that the provider was told")
			break
		}
	}
	return hints
}

func (e *explainer) printKey() {
	if e.Handshake != "" {
		e.say("handshake: %s; forwarded each time, never claimed", e.Handshake)
		return
	}
	if e.route.Rules == nil {
		e.say("event key: this route reads none")
		return
	}
	if e.Found.Items > 0 {
		e.printItems()
	}
	e.printFound(0)
	if e.Found.Items == 0 {
		e.printKeyText(strings.Join(e.Values.Keys, " "))
	}
	if e.Values.Guard != "" {
		e.say("guard: %s", e.Values.Guard)
	}
	if len(e.Values.Tags) > 0 {
		e.say("tags: %s", printable(strings.Join(e.Values.Tags, " ")))
	}
}

// printItems prints the first items of a batch, each with its key.
func (e *explainer) printItems() {
	different := "not every one has an event key, so none is claimed"
	if n := len(e.Values.Keys); n > 0 {
		different = fmt.Sprintf("%d different events", n)
	}
	e.say("batch: %d items, %s", e.Found.Items, different)
	for i, key := range e.Found.Keys {
		e.say("item %d", i+1)
		e.printFound(i + 1)
		e.printKeyText(key)
	}
	if left := e.Found.Items - len(e.Found.Keys); left > 0 {
		e.say("... and %d more items", left)
	}
}

// printFound prints the parts of an item; 0: of the whole delivery.
func (e *explainer) printFound(item int) {
	for _, f := range e.Found.Found {
		if f.Item != item {
			continue
		}
		value := f.Describe()
		if f.Usable() {
			value = shortened(printable(f.Value.Text), 100)
		}
		e.say("%-13s %s: %s", f.Of, f.Place, value)
	}
}

func (e *explainer) printKeyText(key string) {
	if key == "" {
		key = "none"
	}
	e.say("event key: %s", key)
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
