package config

import (
	"fmt"
	"strings"
)

// variables are what ${NAME} may stand for: the process's environment, and
// behind it what --env-file holds.
type variables struct {
	env      map[string]string
	file     map[string]dotenvValue
	fileName string   // empty where there is no file
	unread   bool     // the file could not be read; that is a fault of its own
	unclosed int      // the file's line with a quote that is never closed; 0: none
	used     []string // values that were given out
}

// environment makes a map of "NAME=value" strings. The last of a name wins, as
// it does in a shell's child.
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

// get returns the value of a variable that is set and not empty. The error names
// the variable and where it was looked for, and nothing else.
func (v *variables) get(name string) (string, error) {
	if value, ok := v.env[name]; ok {
		if strings.TrimSpace(value) == "" {
			return "", fmt.Errorf("variable %s is empty in the environment; give it a value", name)
		}
		v.used = append(v.used, value)
		return value, nil
	}
	if v.fileName == "" {
		return "", fmt.Errorf("variable %s is not set; set it in the environment, or name a file that holds it with --env-file", name)
	}
	value, ok := v.file[name]
	switch {
	case v.unread:
		return "", fmt.Errorf("variable %s is not set in the environment, and %s was not read", name, v.fileName)
	case !ok && v.unclosed > 0:
		return "", fmt.Errorf("variable %s is set neither in the environment nor in %s, as far as that goes: a quote that opens on its line %d is never closed",
			name, v.fileName, v.unclosed)
	case !ok:
		return "", fmt.Errorf("variable %s is set neither in the environment nor in %s", name, v.fileName)
	case value.missing != "":
		return "", fmt.Errorf("variable %s refers to %s, which is set neither in the environment nor above it in %s", name, value.missing, v.fileName)
	case value.null:
		return "", fmt.Errorf("variable %s is null in %s; give it a value", name, v.fileName)
	case strings.TrimSpace(value.text) == "":
		return "", fmt.Errorf("variable %s is empty in %s; give it a value", name, v.fileName)
	}
	v.used = append(v.used, value.text)
	return value.text, nil
}
