package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxBytes bounds a document.
	MaxBytes = 1 << 20
	// MaxDepth bounds how deep mappings and lists may stand in each other.
	MaxDepth = 32
)

// Parse reads exactly one YAML document and returns its top value. It bounds
// size and depth, and refuses anchors, aliases and tags, so that what it
// returns is a tree no larger than its text.
func Parse(data []byte) (*yaml.Node, Faults) {
	if len(data) > MaxBytes {
		return nil, Faults{{Msg: fmt.Sprintf("is larger than %d bytes", MaxBytes)}}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, Faults{{Msg: "is empty"}}
	case err != nil:
		return nil, Faults{syntaxFault(err, data)}
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return nil, Faults{{Line: next.Line, Msg: "a second document begins here; only one is read"}}
	case !errors.Is(err, io.EOF):
		return nil, Faults{syntaxFault(err, data)}
	}
	root := doc.Content[0]
	var faults Faults
	if checkTree(root, 1, &faults); len(faults) > 0 {
		return nil, faults
	}
	return root, nil
}

// checkTree refuses what makes a tree larger than its text, or of another
// meaning than it seems to have.
func checkTree(n *yaml.Node, depth int, faults *Faults) {
	refuse := func(msg string) { *faults = append(*faults, Fault{Line: n.Line, Msg: msg}) }
	switch {
	case depth > MaxDepth:
		refuse(fmt.Sprintf("stands more than %d levels deep", MaxDepth))
		return
	case n.Kind == yaml.AliasNode:
		refuse("aliases (*name) are not supported; write the value out, or quote it if it begins with *")
		return
	case n.Anchor != "":
		refuse("anchors (&name) are not supported; write the value out, or quote it if it begins with &")
	case n.Style&yaml.TaggedStyle != 0:
		refuse("tags (!name) are not supported; quote the value if it begins with !")
	}
	for _, child := range n.Content {
		checkTree(child, depth+1, faults)
	}
}

// quoted finds what the YAML library quotes from the document in its messages:
// a value that begins with * is taken for an alias and named in full, and it
// may be a secret. Marks of the syntax such as ',' are shorter and stay.
var quoted = regexp.MustCompile("'[^']*'")

// oneOff begins the library's messages whose line is the one before.
var oneOff = regexp.MustCompile(`^did not find expected (key|node content|'-' indicator|',' or '.'|<document start>)`)

// tabbed finds a line that is indented with a tab.
var tabbed = regexp.MustCompile(`(?m)^ *\t[ \t]*[^ \t\r\n]`)

// syntaxFault makes a fault of the YAML library's error, which has its line in
// its text only.
func syntaxFault(err error, data []byte) Fault {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, msg = n, after
			}
		}
	}
	msg = quoted.ReplaceAllStringFunc(msg, func(text string) string {
		if len(text) <= len("'-'") {
			return text
		}
		return "'...'"
	})
	if line > 0 && oneOff.MatchString(msg) {
		line++
	}
	if at := tabbed.FindIndex(data); at != nil {
		msg += fmt.Sprintf("; line %d is indented with a tab, and YAML takes blanks only", 1+bytes.Count(data[:at[0]], []byte("\n")))
	}
	return Fault{Line: line, Msg: "is not YAML near here: " + msg}
}
