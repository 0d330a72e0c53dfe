package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

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
			shortened(schemes(preset.Verify), 28), shortened(keyText(preset), 40), orDash(preset.RetriesFor()), orDash(preset.Oracle))
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
	row("event key", keyText(preset))
	row("a batch, of", preset.Each)
	row("key is signed", yesNo(preset.KeySigned))
	row("same key on retries", preset.StableRetries)
	row("same key on resends", preset.StableResend)
	row("waits for an answer", preset.WaitsFor())
	row("retries", preset.Retries.Schedule)
	row("retries for", orDash(preset.RetriesFor()))
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

func keyText(preset *provider.Preset) string {
	return orDash(strings.Join(preset.KeyPlaces(), " + "))
}
