package keyextract

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
)

// Bounds of an XML body. The nesting is libxml's own, which PHP uses.
const (
	maxXMLDepth    = 256
	maxXMLElements = 100_000
)

// An element is one element of an XML body: its local name, its own text, and
// where it stands.
type element struct {
	name   string
	parent int // -1 for the root
	text   string
	holds  bool // other elements
}

// parseXML reads an XML body in one pass. A document type is refused, and with
// it every entity but the five that XML has itself: nothing is ever expanded.
func parseXML(body []byte) ([]element, *Error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, &Error{Kind: Missing, Detail: "empty body where XML is expected"}
	}
	dec := xml.NewDecoder(bytes.NewReader(body))
	var elements []element
	var texts [][]byte // of the open elements
	open := []int{}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, malformed("not XML, or cut off, after byte %d", dec.InputOffset())
		}
		depth := len(open)
		switch tok := tok.(type) {
		case xml.StartElement:
			if depth == maxXMLDepth || len(elements) == maxXMLElements {
				return nil, malformed("XML with more than %d levels or %d elements", maxXMLDepth, maxXMLElements)
			}
			parent := -1
			if depth > 0 {
				parent = open[depth-1]
				elements[parent].holds = true
			} else if len(elements) > 0 {
				return nil, malformed("XML with a second root element")
			}
			open = append(open, len(elements))
			texts = append(texts, nil)
			elements = append(elements, element{name: tok.Name.Local, parent: parent})
		case xml.EndElement:
			elements[open[depth-1]].text = string(texts[depth-1])
			open, texts = open[:depth-1], texts[:depth-1]
		case xml.CharData:
			if depth > 0 {
				texts[depth-1] = append(texts[depth-1], tok...)
			} else if len(bytes.TrimSpace(tok)) > 0 {
				return nil, malformed("text outside the XML root element")
			}
		case xml.Directive:
			return nil, malformed("XML with a document type")
		}
	}
	if len(elements) == 0 {
		return nil, malformed("XML without an element")
	}
	return elements, nil
}

// readXML returns the text of the one element at a path that leads from an
// element on; from -1 on it begins with the root.
func readXML(elements []element, from int, path []string) (Value, *Error) {
	at, err := findXML(elements, from, path)
	switch {
	case err != nil || at == nowhere:
		return Value{}, err
	case elements[at].holds:
		return Value{Kind: container}, nil
	}
	return textValue(elements[at].text), nil
}

// nowhere is the index of no element.
const nowhere = -2

// findXML returns the index of the one element at a path. Elements come right
// after their parents, so one look at each is enough, and the first whose parent
// came before ends the search.
func findXML(elements []element, at int, path []string) (int, *Error) {
	for depth, name := range path {
		found := -1
		for i := at + 1; i < len(elements) && elements[i].parent >= at; i++ {
			if elements[i].parent != at || elements[i].name != name {
				continue
			}
			if found >= 0 {
				return 0, malformed("the element %q of level %d stands twice", name, depth+1)
			}
			found = i
		}
		if found < 0 {
			return nowhere, nil
		}
		at = found
	}
	return at, nil
}
