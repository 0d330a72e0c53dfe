package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A dotenvValue is what Laravel's env() makes of one variable of a .env file.
type dotenvValue struct {
	text string
	null bool // null and (null): as if there were no value
	// missing is a variable that the text still holds as ${NAME}, since the file
	// has none above it; empty where there is none.
	missing string
}

// maxDotenv bounds a .env file, in bytes.
const maxDotenv = 1 << 20

// dotenvFault is one thing that makes Laravel refuse a .env file. It never
// quotes the file.
type dotenvFault struct {
	line int
	msg  string
}

func (f dotenvFault) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.msg) }

// parseDotenv reads a .env file as Laravel does: vlucas/phpdotenv reads the
// lines, and Laravel's env() interprets the values. env is the process's
// environment, which wins over the file and is also what ${NAME} in the file
// finds first. What phpdotenv refuses is refused here, with its line.
func parseDotenv(data []byte, env map[string]string) (map[string]dotenvValue, error) {
	if len(data) > maxDotenv {
		return nil, fmt.Errorf("is larger than %d bytes", maxDotenv)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 throughout")
	}
	text := strings.TrimPrefix(string(data), "\uFEFF")
	values, missing := map[string]string{}, map[string]string{}
	lookup := func(name string) (string, bool) {
		if value, ok := env[name]; ok {
			return value, true
		}
		value, ok := values[name]
		return value, ok
	}
	entries, _ := dotenvEntries(text)
	for _, entry := range entries {
		name, value, defined, err := parseDotenvEntry(entry.text)
		switch {
		case err != nil:
			return nil, dotenvFault{line: entry.line, msg: err.Error()}
		case !defined:
			delete(values, name)
		default:
			values[name], missing[name] = value.resolve(lookup)
		}
	}
	result := make(map[string]dotenvValue, len(values))
	for name, value := range values {
		v := laravelValue(value)
		v.missing = missing[name]
		result[name] = v
	}
	return result, nil
}

// laravelValue is Laravel's env(): a few words have a meaning, and one pair of
// quotes that is still there goes. (true) and (false) lose their parentheses;
// as text they are what a person who writes them means.
func laravelValue(text string) dotenvValue {
	switch strings.ToLower(text) {
	case "null", "(null)":
		return dotenvValue{null: true}
	case "empty", "(empty)":
		return dotenvValue{}
	case "true", "(true)":
		return dotenvValue{text: "true"}
	case "false", "(false)":
		return dotenvValue{text: "false"}
	}
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] && !strings.Contains(text[1:n-1], "\n") {
		text = text[1 : n-1]
	}
	return dotenvValue{text: text}
}

// dotenvEntry is one NAME=value with the line it begins on.
type dotenvEntry struct {
	text string
	line int
}

var lineBreak = regexp.MustCompile(`\r\n|\n|\r`)

// dotenvEntries joins the lines of a multi-line value, and leaves out comments
// and blank lines. A value that is opened and never closed takes all that
// follows with it, as phpdotenv has it; it begins on the line unclosed, which is
// 0 where there is none.
func dotenvEntries(text string) (entries []dotenvEntry, unclosed int) {
	var open []string // the lines of a multi-line value so far
	first := 0
	for i, line := range lineBreak.Split(text, -1) {
		starts := strings.Contains(line, `="`) && !closesQuote(line, true)
		if starts || open != nil {
			if open == nil {
				first = i + 1
			}
			open = append(open, line)
			if !closesQuote(line, starts) {
				continue
			}
			line, open = strings.Join(open, "\n"), nil
		} else {
			first = i + 1
		}
		if trimmed := phpTrim(line); trimmed != "" && trimmed[0] != '#' {
			entries = append(entries, dotenvEntry{text: line, line: first})
		}
	}
	if open != nil {
		unclosed = first
	}
	return entries, unclosed
}

// closesQuote is phpdotenv's guess whether a double-quoted value ends on this
// line: it counts the quotes that follow a character other than a backslash.
func closesQuote(line string, started bool) bool {
	if line == `"` {
		return true
	}
	line = strings.ReplaceAll(line, `\\`, "")
	count := 0
	for i := 1; i < len(line); i++ {
		if line[i] == '"' && line[i-1] != '\\' {
			count++
		}
	}
	if started {
		return count > 1
	}
	return count >= 1
}

// phpTrim removes what PHP's trim removes.
func phpTrim(s string) string { return strings.Trim(s, " \t\n\r\x00\x0b") }

var dotenvName = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)

// parseDotenvEntry splits one entry. A name without an equals sign takes the
// variable away.
func parseDotenvEntry(entry string) (name string, value dotenvText, defined bool, err error) {
	name, raw, defined := strings.Cut(entry, "=")
	if defined {
		name, raw = phpTrim(name), phpTrim(raw)
		if name == "" {
			return "", value, false, errors.New("has an equals sign without a name before it")
		}
	}
	if utf8.RuneCountInString(name) > 8 && strings.HasPrefix(name, "export") && isSpace(name[6:7]) {
		name = strings.TrimLeft(name[6:], " \t\n\r\x00\x0b")
	}
	if n := len(name); utf8.RuneCountInString(name) >= 3 && (name[0] == '"' || name[0] == '\'') && name[n-1] == name[0] {
		name = name[1 : n-1]
	}
	if !dotenvName.MatchString(name) {
		return "", value, false, errors.New("has a name with other characters than letters, digits, dots and _")
	}
	if raw != "" {
		value, err = scanDotenvValue(raw)
	}
	return name, value, defined, err
}

// isSpace reports whether s is nothing but white space, as ctype_space does.
func isSpace(s string) bool { return s != "" && strings.Trim(s, " \t\n\r\v\f") == "" }
