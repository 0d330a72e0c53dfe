package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"oncegate/internal/strictyaml"
)

// DefaultPath is the file that is read where neither a file nor routes are
// given.
const DefaultPath = "oncegate.yaml"

// Options say where a configuration comes from.
type Options struct {
	// Path is the YAML file; empty is DefaultPath, or no file at all where
	// Flags.Routes holds routes.
	Path string
	// EnvFile is Laravel's .env; empty is none.
	EnvFile string
	// Env is the process's environment, as os.Environ returns it.
	Env []string
	// Flags are what the command line says.
	Flags Flags
	// Instead says what to do without a file, for the fault that there is none;
	// empty where nothing can be done without.
	Instead string
	// Readable says whether the store's driver can read the store's URL and
	// options. It connects to nothing, and its error holds no secret. nil: not
	// asked.
	Readable func(Store) error
}

//go:embed defaults.yaml
var defaultsYAML []byte

// Load reads, compiles and checks a configuration. Its error is a
// strictyaml.Faults that holds everything that is wrong, ordered by line.
func Load(o Options) (*Config, error) {
	config, _, faults := load(o)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return config, nil
}

// StateDir returns the state folder that a configuration names, whatever else is
// wrong with it: whoever asks a running oncegate has not its secrets. Without a
// file it is what the flags say, or the environment, or the default. Its error is
// as Load's.
func StateDir(o Options) (string, error) {
	l := &loader{options: o, set: map[string]string{}}
	l.readVariables()
	_, err := os.Stat(DefaultPath)
	if read := o.Path == "" && errors.Is(err, fs.ErrNotExist) || l.readFile(); !read {
		l.hideValues()
		return "", l.faults.Err()
	}
	l.applyEnvironment()
	l.applyFlags()
	by, set := l.setBy("state_dir")
	l.faults = slices.DeleteFunc(l.faults, func(f strictyaml.Fault) bool {
		return f.Field != "state_dir" && (!set || f.Field != by)
	})
	dir := l.stateDir()
	l.hideValues()
	return dir, l.faults.Err()
}

// load also returns the files that it looked at, whether or not they could be
// read, since a change to any of them may change the result.
func load(o Options) (*Config, []source, strictyaml.Faults) {
	l := &loader{options: o, set: map[string]string{}}
	config := l.load()
	l.hideValues()
	l.faults.Sort()
	if len(l.faults) > 0 {
		return nil, l.sources, l.faults
	}
	config.Warnings, config.sources = l.warnings, l.sources
	return config, l.sources, nil
}

// loader is the work on one configuration.
type loader struct {
	options  Options
	file     string     // the YAML file's name; empty without one
	root     *yaml.Node // its top value; nil without one
	vars     *variables
	top      topLevel
	store    storeSpec
	order    []string          // the routes' names, in order
	set      map[string]string // top-level field → variable or flag that set it
	sources  []source
	faults   strictyaml.Faults
	warnings []string
	hidden   []string // texts that no message may hold
}

func (l *loader) load() *Config {
	l.readVariables()
	if !l.readFile() {
		return nil
	}
	l.applyEnvironment()
	l.applyFlags()
	l.applyDefaults()
	return l.compile()
}

// readVariables reads the environment and, where there is one, the .env file.
func (l *loader) readVariables() {
	l.vars = &variables{env: environment(l.options.Env), fileName: l.options.EnvFile}
	if l.options.EnvFile == "" {
		return
	}
	data, err := l.read(l.options.EnvFile, maxDotenv)
	if err == nil {
		l.vars.file, err = parseDotenv(data, l.vars.env)
		_, l.vars.unclosed = dotenvEntries(string(data))
	}
	if err != nil {
		l.vars.unread = true
		fault := strictyaml.Fault{File: l.options.EnvFile, Msg: fmt.Sprintf("can't be read (%s)", err)}
		var at dotenvFault
		if errors.As(err, &at) {
			fault.Line, fault.Msg = at.line, at.msg
		}
		l.faults = append(l.faults, fault)
	}
}

// read reads a small file, and notes it as a source.
func (l *loader) read(name string, limit int64) ([]byte, error) {
	data, err := readSmall(name, limit)
	l.sources = append(l.sources, sourceOf(name, limit, data, err))
	return data, err
}

// readFile reads the YAML file, if there is to be one, and reports whether there
// is anything to go on with.
func (l *loader) readFile() bool {
	l.file = l.options.Path
	if l.file == "" && len(l.options.Flags.Routes) > 0 {
		return true
	}
	if l.file == "" {
		l.file = DefaultPath
	}
	data, err := l.read(l.file, strictyaml.MaxBytes)
	if err != nil {
		msg := fmt.Sprintf("can't be read (%s); name another file with --config", err)
		if l.options.Instead != "" && errors.Is(err, fs.ErrNotExist) {
			msg += ", or " + l.options.Instead
		}
		l.faults = append(l.faults, strictyaml.Fault{File: l.file, Msg: msg})
		return false
	}
	root, faults := strictyaml.Parse(data)
	if faults != nil {
		if bytes.Contains(data, []byte("${")) {
			faults[0].Msg += "; note that within {...} and [...] a ${NAME} needs quotes"
		}
		l.addFaults(l.file, faults)
		return false
	}
	l.root = root
	l.addFaults(l.file, strictyaml.Decode(root, &l.top, strictyaml.Options{Expand: l.vars.expand}))
	l.order = strictyaml.Keys(root, "routes")
	l.addFaults(l.file, l.decodeStore(l.top.Store))
	return true
}

// applyDefaults fills what is still open from defaults.yaml.
func (l *loader) applyDefaults() {
	var defaults topLevel
	root, faults := strictyaml.Parse(defaultsYAML)
	if faults == nil {
		faults = strictyaml.Decode(root, &defaults, strictyaml.Options{})
	}
	l.addFaults("defaults.yaml", faults)
	fill(&l.top, &defaults)
	if l.store.URL == nil && !l.faulty("store") {
		l.addFaults("defaults.yaml", l.decodeStore(defaults.Store))
	}
}

// decodeStore reads a store that is a mapping, or a single text that is its URL.
func (l *loader) decodeStore(n yaml.Node) strictyaml.Faults {
	o := strictyaml.Options{Field: "store", Expand: l.vars.expand}
	switch n.Kind {
	case 0:
		return nil
	case yaml.MappingNode:
		return strictyaml.Decode(&n, &l.store, o)
	}
	return strictyaml.Decode(&n, &l.store.URL, o)
}

// fill sets the fields of the struct *into that are not set (nil, or zero) from
// those of *from, which has the same type.
func fill[T any](into, from *T) {
	fillValue(reflect.ValueOf(into).Elem(), reflect.ValueOf(from).Elem())
}

func fillValue(into, from reflect.Value) {
	for i := range into.NumField() {
		field := into.Field(i)
		switch {
		case into.Type().Field(i).Anonymous:
			fillValue(field, from.Field(i))
		case field.IsZero():
			field.Set(from.Field(i))
		}
	}
}
