package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oncegate/internal/config"
	"oncegate/internal/doctor"
	"oncegate/internal/strictyaml"
)

type doctorFlags struct {
	configFlags
	fpm, nginx []string
	public     string
	asJSON     bool
}

// fpmPools is where Debian and Ubuntu keep PHP-FPM's pools.
const fpmPools = "/etc/php/*/fpm/pool.d/*.conf"

func (p *program) doctorCommand() *cobra.Command {
	var flags doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything that oncegate hangs on, and say what to put right",
		Long: `doctor reads the configuration as serve does, and then looks around: whether the
store answers, keeps what it promises and lets claims be written, how far its clock
is from this one, whether the app can be reached, whether claims outlive the
sender's retries, whether PHP-FPM can work longer than app_limit, what file system
SQLite lies on, who can read the secrets.

With --public it sends an unsigned delivery to every enforced route that verifies,
in every form of its path, as a sender would, and must see it refused by oncegate.
Nothing that it sends reaches the app.

  oncegate doctor --public https://shop.example --nginx /etc/nginx/sites-enabled/shop

It repairs nothing, and ends with 1 where there is a fault. Run it as the user that
serves, or as root.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.doctor(cmd.Context(), &flags)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringArrayVar(&flags.fpm, "php-fpm", []string{fpmPools}, "`files` of PHP-FPM's pools; may be repeated")
	cmd.Flags().StringArrayVar(&flags.nginx, "nginx", nil, "`files` of nginx's configuration; may be repeated")
	cmd.Flags().StringVar(&flags.public, "public", "", "the `URL` that senders were told, as far as the host")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "print JSON")
	return cmd
}

func (p *program) doctor(ctx context.Context, flags *doctorFlags) error {
	fpm, err := globs("--php-fpm", flags.fpm)
	if err != nil {
		return err
	}
	nginx, err := globs("--nginx", flags.nginx)
	if err != nil {
		return err
	}
	if flags.public != "" {
		if err := doctor.ParsePublic(flags.public); err != nil {
			return &usageError{fmt.Errorf("--public %w", err)}
		}
	}
	c, err := config.Load(flags.options(p.env))
	var faults strictyaml.Faults
	if errors.As(err, &faults) {
		return p.printReport(reportOf(faults), flags.asJSON)
	} else if err != nil {
		return err
	}
	o := doctor.Options{Config: c, FPM: fpm, Nginx: nginx, Public: flags.public}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	if c.Store.Kind == "sqlite" {
		if _, err := os.Stat(c.Store.Path); errors.Is(err, os.ErrNotExist) {
			return p.printReport(doctor.Examine(ctx, o), flags.asJSON)
		}
	}
	looking := c.Store
	looking.Migrate = "never" // it repairs nothing
	store, err := backendOf(looking)
	if err != nil {
		return err
	}
	o.Store = store
	report := doctor.Examine(ctx, o)
	if err := store.Close(); err != nil {
		return err
	}
	return p.printReport(report, flags.asJSON)
}

// doctorTime bounds all of it.
const doctorTime = 5 * time.Minute

// globs finds the files that patterns name. A name that is no pattern and leads
// nowhere is a mistake; a pattern that does is not.
func globs(flag string, patterns []string) (names []string, err error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err == nil && found == nil && !strings.ContainsAny(pattern, "*?[") {
			_, err = os.Stat(pattern)
		}
		if err != nil {
			return nil, &usageError{fmt.Errorf("%s: %w", flag, err)}
		}
		names = append(names, found...)
	}
	return names, nil
}

// reportOf is what there is to say where the configuration is wrong: nothing
// else can be looked at.
func reportOf(faults strictyaml.Faults) (report doctor.Report) {
	for _, f := range faults {
		report = append(report, doctor.Finding{What: "config", Where: placeOf(f), Verdict: doctor.Fault, Found: f.Msg})
	}
	return report
}

// placeOf is where in the configuration a fault lies.
func placeOf(f strictyaml.Fault) string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, f.Line)
	}
	return orDash(strings.TrimSpace(where + " " + f.Field))
}

func (p *program) printReport(report doctor.Report, asJSON bool) error {
	var err error
	if asJSON {
		err = json.NewEncoder(p.stdout).Encode(map[string]any{"findings": report, "faults": report.Faults()})
	} else {
		err = writeReport(p.stdout, report)
	}
	if err == nil && report.Faults() > 0 {
		return fmt.Errorf("%s: %w", count(report.Faults(), "fault"), errSaid)
	}
	return err
}

// writeReport writes a table: one line a finding, and what to do about it below.
func writeReport(w io.Writer, report doctor.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERDICT\tWHAT\tWHERE\tFOUND")
	warnings := 0
	for _, f := range report {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Verdict, f.What, printable(f.Where), printable(f.Found))
		if f.Advice != "" {
			fmt.Fprintf(table, "\t\t\t-> %s\n", printable(f.Advice))
		}
		if f.Verdict == doctor.Warning {
			warnings++
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, %s\n", count(report.Faults(), "fault"), count(warnings, "warning"))
	return err
}
