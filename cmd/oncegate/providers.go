package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oncegate/keyextract"
	"oncegate/provider"
	"oncegate/verify"
)

func (p *program) providersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "providers [NAME]",
		Short: "List the providers that a route can name, or say all about one",
		Args:  cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			names, err := provider.Names()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.showProvider(args[0])
			}
			return p.listProviders()
		},
	}
}

func (p *program) listProviders() error {
	presets, err := provider.All()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tPROVIDER\tMODE\tSIGNED BY\tEVENT KEY\tRETRIES FOR\tPROVEN AGAINST")
	for _, preset := range presets {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", preset.Name, preset.Title, preset.Mode,
			shortened(schemes(preset.Verify), 28), shortened(keyText(preset.Key), 40), retriesFor(preset), orDash(preset.Oracle))
	}
	return table.Flush()
}

func (p *program) showProvider(name string) error {
	preset, err := provider.Get(name)
	if errors.Is(err, provider.ErrUnknown) {
		return fmt.Errorf("provider %q: %w; `oncegate providers` lists them", name, errNotFound)
	}
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, value)
		}
	}
	row("provider", preset.Title)
	row("documentation", preset.Docs)
	row("mode", preset.Mode)
	row("observed because", preset.ObserveWhy)
	row("takes payments", yesNo(preset.Payments))
	row("signed by", schemes(preset.Verify))
	row("event key", keyText(preset.Key))
	row("a batch, of", preset.Each)
	row("key is signed", yesNo(preset.KeySigned))
	row("same key on retries", preset.StableRetries)
	row("same key on resends", preset.StableResend)
	row("waits for an answer", duration(preset.Patience))
	row("retries", preset.Retries.Schedule)
	row("retries for", retriesFor(preset))
	row("takes as accepted", strings.Join(preset.Success, ", "))
	row("the app's answer is", preset.Answer)
	for _, h := range preset.Handshakes {
		row("handshake", handshakeText(&h))
	}
	for _, name := range sortedKeys(preset.Params) {
		row("param "+name, preset.Params[name].About)
	}
	row("tags", strings.Join(sortedKeys(preset.Tags), ", "))
	row("confidence", preset.Confidence)
	row("proven against", orDash(preset.Oracle))
	for _, differs := range preset.Differs {
		row("differs in retries", differs)
	}
	for _, open := range preset.Unconfirmed {
		row("not confirmed", open)
	}
	for _, note := range preset.Notes {
		row("note", note)
	}
	return table.Flush()
}

// handshakeText says which request is no event.
func handshakeText(h *provider.Handshake) string {
	text := h.Name
	if len(h.Methods) > 0 {
		text += " by " + strings.Join(h.Methods, ", ")
	}
	if h.Unsigned {
		text += ", not signed"
	}
	return text
}

// schemes names how a provider signs, in a word each.
func schemes(specs []verify.Spec) string {
	var names []string
	for _, s := range specs {
		switch {
		case s.None:
			names = append(names, "nothing")
		case s.HMAC != "":
			names = append(names, "hmac-"+s.HMAC)
		case s.Hash != "":
			names = append(names, s.Hash)
		case s.Ed25519:
			names = append(names, "ed25519")
		case s.ECDSA != "":
			names = append(names, "ecdsa-"+s.ECDSA)
		case s.RSA != "":
			names = append(names, "rsa-"+s.RSA)
		case s.JWT != "":
			names = append(names, "jwt-"+s.JWT)
		case s.Token:
			names = append(names, "shared token")
		case s.Basic:
			names = append(names, "basic")
		case s.HTTP != "":
			names = append(names, "asking it")
		case len(s.IPs) > 0:
			names = append(names, "address")
		case len(s.Any) > 0:
			names = append(names, strings.ReplaceAll(schemes(s.Any), " and ", " or "))
		}
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, " and ")
}

// keyText writes an event key's parts as short as they can be read.
func keyText(parts []keyextract.Part) string {
	var texts []string
	for _, part := range parts {
		text := placeText(part)
		if part.Optional {
			text = "[" + text + "]"
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return "-"
	}
	return strings.Join(texts, " + ")
}

func placeText(part keyextract.Part) string {
	switch {
	case part.Form != "" && part.JSON != "":
		return "form " + part.Form + " " + part.JSON
	case part.JSON != "":
		return "json " + part.JSON
	case part.Header != "":
		return "header " + part.Header
	case part.Query != "":
		return "query " + part.Query
	case part.Form != "":
		return "form " + part.Form
	case part.XML != "":
		return "xml " + part.XML
	case part.Path != "":
		return "path"
	case part.Method:
		return "method"
	case part.Const != "":
		return "'" + part.Const + "'"
	case part.Digest != "":
		return "digest of the body"
	}
	var either []string
	for _, p := range part.First {
		either = append(either, placeText(p))
	}
	return strings.Join(either, " or ")
}

func retriesFor(preset *provider.Preset) string {
	if preset.Retries.Never {
		return "never"
	}
	return orDash(duration(preset.Retries.For))
}

// duration writes a duration as configurations do; nothing for zero.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
