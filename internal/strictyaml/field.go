package strictyaml

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// plainName is what a key may look like to be named in a fault. Whatever else
// stands in a key's place may be a value that slipped there, as in
// {password:s3cret}.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// join appends a key to a dotted field.
func join(field, key string) string {
	if !plainName.MatchString(key) {
		key = "(unnamed)"
	}
	if field == "" {
		return key
	}
	return field + "." + key
}

// keyShape is what an unknown key may look like to be quoted: narrower than
// plainName, since a name that we know nothing about is the likeliest place for
// a slipped secret.
var keyShape = regexp.MustCompile(`^[A-Za-z][A-Za-z_-]{0,31}$`)

func (d *decoder) unknownKey(key *yaml.Node, field string, known []string) {
	here := "known here: " + strings.Join(known, ", ")
	if !keyShape.MatchString(key.Value) {
		d.fault(key, field, "has an unknown key (not shown: it looks like no name); %s", here)
		return
	}
	if near := Nearest(key.Value, known); near != "" {
		here = "did you mean " + near + "?"
	}
	d.fault(key, join(field, key.Value), "is no field here; %s", here)
}

// Nearest returns the known name that the key was most likely meant to be, or
// nothing where none is near. A long key is near to none.
func Nearest(key string, known []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	if len(key) > 64 {
		return ""
	}
	best, distance := "", len(key)/3+2
	for _, name := range known {
		if d := editDistance(fold(key), name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

// editDistance is Levenshtein's; both texts are short.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// Line returns the line of the value at a dotted field, as faults name it: the
// line of its key, or of its item. Where the field is not in the document it is
// the line of what comes nearest above it; 0 for no document.
func Line(root *yaml.Node, field string) int {
	if root == nil {
		return 0
	}
	line, n := root.Line, root
	for _, step := range steps(field) {
		if step == "[0" && n.Kind != yaml.SequenceNode {
			continue // a single value is a list of one
		}
		at, next := descend(n, step)
		if next == nil {
			break
		}
		line, n = at, next
	}
	return line
}

// Keys returns the keys of the mapping at a dotted field, in the order of the
// document; nil where there is no mapping.
func Keys(root *yaml.Node, field string) []string {
	n := root
	for _, step := range steps(field) {
		if _, n = descend(n, step); n == nil {
			return nil
		}
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var keys []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	return keys
}

// steps cuts a.b[1].c into a, b, [1, c.
func steps(field string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(field, "[", ".["), func(r rune) bool { return r == '.' || r == ']' })
}

// descend returns the line and the node one step below n.
func descend(n *yaml.Node, step string) (int, *yaml.Node) {
	if index, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(index)
		if err != nil || n.Kind != yaml.SequenceNode || i < 0 || i >= len(n.Content) {
			return 0, nil
		}
		return n.Content[i].Line, n.Content[i]
	}
	if n.Kind != yaml.MappingNode {
		return 0, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == step {
			return n.Content[i].Line, n.Content[i+1]
		}
	}
	return 0, nil
}
