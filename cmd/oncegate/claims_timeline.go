package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"oncegate/internal/evidence"
	"oncegate/internal/operator"
)

// printTimeline prints the deliveries and decisions, one line each.
func printTimeline(w io.Writer, life *operator.Life) error {
	if !life.Evidence {
		_, err := fmt.Fprintf(w, "\n  %s\n", noEvidence(life.EvidenceError))
		return err
	}
	if len(life.Timeline) == 0 {
		_, err := fmt.Fprintln(w, "\n  no delivery is in evidence yet; it is written a second behind")
		return err
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  TIME (UTC)\tCOUNT\tRESULT\tSTATUS\tATTEMPT\tTOOK\tFROM\tMORE")
	for i := range life.Timeline {
		m := &life.Timeline[i]
		at := m.At.UTC().Format("2006-01-02 15:04:05.000")
		if m.Kind == "decision" {
			fmt.Fprintf(table, "  %s\t\t%s\t\t\t\t\t%s\n", at, printable(m.Result), decided(m))
			continue
		}
		if m.Kind == "witness" {
			fmt.Fprintf(table, "  %s\t%d\t%s\t\t\t\t\tby the witness%s\n", at, m.Count, m.Result, printable(colon(m.Detail)))
			continue
		}
		took := (time.Duration(m.Total) * time.Microsecond).Round(100 * time.Microsecond)
		fmt.Fprintf(table, "  %s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\n", at, m.Count, m.Result, orDash(number(m.Status)), m.Attempt, took,
			orDash(m.Remote), orDash(strings.Join(more(m), ", ")))
	}
	return table.Flush()
}

// noEvidence says why nothing is known of deliveries.
func noEvidence(err string) string {
	if err == "" {
		return "no evidence of deliveries is kept (evidence_retention: 0), or none was yet"
	}
	return "evidence of deliveries can't be read: " + printable(err)
}

// sealed is said of what is in evidence and can't be read.
const sealed = "sealed: the key that it is stored under is missing"

// decided says whose decision it was, and why.
func decided(m *operator.Moment) string {
	if m.Sealed {
		return sealed
	}
	return fmt.Sprintf("by %s: %s", printable(m.Who), printable(m.Why))
}

func colon(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// more says what else there is to say of a delivery.
func more(m *operator.Moment) (words []string) {
	for _, w := range []struct {
		holds bool
		word  string
	}{
		{m.SecondRun, "possible second run"}, {m.Late, "late duplicate"}, {m.Differs, "another payload"}, {m.Stub, "answer without its body"},
		{m.AppStatus != 0 && m.AppStatus != m.Status, fmt.Sprintf("the app answered %d", m.AppStatus)},
		{m.Sealed, sealed}, {m.Retry != "", printable(m.Retry)}, {m.Error != "", m.Error}, {m.Detail != "", printable(m.Detail)},
	} {
		if w.holds {
			words = append(words, w.word)
		}
	}
	return words
}

// printAnswer prints the stored answer: its status, its headers, and its body
// where it was asked for.
func printAnswer(w io.Writer, a *operator.Answer) error {
	if a == nil {
		return nil
	}
	kept := fmt.Sprintf("%d bytes", a.Size)
	if a.Stub {
		kept = "body too large to be kept"
	}
	fmt.Fprintf(w, "\n  answer %d, %s\n", a.Status, kept)
	for _, l := range a.Header {
		fmt.Fprintf(w, "    %s: %s\n", printable(l.Name), printable(l.Value))
	}
	return printBody(w, a.Body)
}

// printAppAnswers prints what the app answered to attempts, but for the one whose
// answer the claim has.
func printAppAnswers(w io.Writer, life *operator.Life) error {
	for i := range life.Timeline {
		m := &life.Timeline[i]
		if m.Answer == nil || life.Answer != nil && m.Attempt == life.Claim.Attempt && m.AppStatus == life.Answer.Status {
			continue
		}
		what := "the app answered"
		if m.Attempt > 0 {
			what = fmt.Sprintf("attempt %d: the app answered", m.Attempt)
		}
		fmt.Fprintf(w, "\n  %s %d, %d bytes%s\n", what, m.AppStatus, m.Answer.Size, keptOf(m.Answer))
		for _, l := range m.Answer.Header {
			fmt.Fprintf(w, "    %s: %s\n", printable(l.Name), printable(l.Value))
		}
		if err := printBody(w, m.Answer.Body); err != nil {
			return err
		}
	}
	return nil
}

func keptOf(a *evidence.Answer) string {
	switch {
	case a.Kept == a.Size:
		return ""
	case a.Kept == 0:
		return ", of which none is kept (record: unsettled keeps the first of them)"
	}
	return fmt.Sprintf(", of which the first %d are kept", a.Kept)
}

// printBody prints a body as a terminal may show it; --json has its bytes.
func printBody(w io.Writer, body []byte) error {
	if body == nil {
		return nil
	}
	lines := strings.Split(string(body), "\n")
	for i := range lines {
		lines[i] = printable(strings.ReplaceAll(strings.TrimSuffix(lines[i], "\r"), "\t", "    "))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	return err
}
