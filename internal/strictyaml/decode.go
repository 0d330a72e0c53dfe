package strictyaml

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Decode fills the struct (or map, or slice) that into points to from node, and
// returns every fault, in the order of the document; nil where there is none.
// What stands at a fault keeps the value that into had. Decode panics where
// into holds a type that it does not know: that is a mistake in the program.
func Decode(node *yaml.Node, into any, o Options) Faults {
	d := decoder{expand: o.Expand}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic("strictyaml: Decode needs a pointer")
	}
	if node != nil && node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	if node == nil || node.IsZero() {
		return Faults{{Field: o.Field, Msg: "is empty"}}
	}
	d.value(node, v.Elem(), o.Field)
	return d.faults
}

type decoder struct {
	expand func(string) (string, error)
	faults Faults
}

var (
	nodeType     = reflect.TypeFor[yaml.Node]()
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

func (d *decoder) fault(n *yaml.Node, field, format string, args ...any) {
	d.faults = append(d.faults, Fault{Line: n.Line, Field: field, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, field string) {
	switch {
	case v.Type() == nodeType:
		v.Set(reflect.ValueOf(*n))
	case n.Kind == yaml.AliasNode:
		d.fault(n, field, "is an alias; write the value out")
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		d.fault(n, field, "has no value; give it one, or remove the line")
	case v.Kind() == reflect.Pointer:
		before := len(d.faults)
		elem := reflect.New(v.Type().Elem())
		if d.value(n, elem.Elem(), field); len(d.faults) == before {
			v.Set(elem)
		}
	case v.Kind() == reflect.Struct:
		d.structure(n, v, field)
	case v.Kind() == reflect.Map:
		d.mapping(n, v, field)
	case v.Kind() == reflect.Slice:
		d.list(n, v, field)
	default:
		d.scalar(n, v, field)
	}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, field string) {
	fields := map[string]reflect.Value{}
	names := collectFields(v, fields, nil)
	d.pairs(n, field, func(key, value *yaml.Node) {
		target, ok := fields[key.Value]
		if !ok {
			d.unknownKey(key, field, names)
			return
		}
		d.value(value, target, join(field, key.Value))
	})
}

// collectFields maps the names in the yaml tags of a struct to its fields.
func collectFields(v reflect.Value, fields map[string]reflect.Value, names []string) []string {
	for i := range v.NumField() {
		tag, ok := v.Type().Field(i).Tag.Lookup("yaml")
		name, option, _ := strings.Cut(tag, ",")
		switch {
		case !ok || name == "-":
		case option == "inline":
			names = collectFields(v.Field(i), fields, names)
		default:
			fields[name] = v.Field(i)
			names = append(names, name)
		}
	}
	return names
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, field string) {
	m := reflect.MakeMap(v.Type())
	d.pairs(n, field, func(key, value *yaml.Node) {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(value, elem, join(field, key.Value))
		m.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), elem)
	})
	v.Set(m)
}

// pairs calls each for every pair of the mapping n whose key is a text that did
// not occur before.
func (d *decoder) pairs(n *yaml.Node, field string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, field, "must be a mapping (name: value), but is %s", kindName(n))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch line, seen := first[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null":
			d.fault(key, field, "has a key that is no name")
		case key.ShortTag() == "!!merge":
			d.fault(key, field, "merge keys (<<) are not supported; write the fields out")
		case seen:
			d.fault(key, join(field, key.Value), "is given twice, first on line %d; remove one", line)
		default:
			first[key.Value] = key.Line
			each(key, n.Content[i+1])
		}
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, field string) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	s := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := field
		if n.Kind == yaml.SequenceNode {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		d.value(item, s.Index(i), at)
	}
	v.Set(s)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "text"
}
