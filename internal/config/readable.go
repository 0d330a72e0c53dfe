package config

import (
	"fmt"
	"strings"
	"time"

	"oncegate/internal/strictyaml"
)

// readable says a value as a person would write it in the file.
func readable(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return readableDuration(v)
	case strictyaml.Size:
		for _, unit := range []struct {
			name string
			size strictyaml.Size
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if v >= unit.size && v%unit.size == 0 {
				return fmt.Sprintf("%d%s", v/unit.size, unit.name)
			}
		}
		return fmt.Sprintf("%d", int64(v))
	}
	return fmt.Sprint(v)
}

func readableDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}
