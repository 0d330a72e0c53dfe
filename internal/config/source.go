package config

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
)

// A source is a file that went into a configuration, as it was read.
type source struct {
	name  string
	limit int64
	sum   [sha256.Size]byte // of its content
	ok    bool              // false: it could not be read
}

func sourceOf(name string, limit int64, data []byte, err error) source {
	if err != nil {
		return source{name: name, limit: limit}
	}
	return source{name: name, limit: limit, sum: sha256.Sum256(data), ok: true}
}

// changed reports whether a file's content is another than it was.
func (s source) changed() bool {
	data, err := readSmall(s.name, s.limit)
	return sourceOf(s.name, s.limit, data, err) != s
}

// anyChanged reports whether one of the files is another than it was.
func anyChanged(sources []source) bool { return slices.ContainsFunc(sources, source.changed) }

// Files are the names of the files that the configuration was made from, those
// of secrets included.
func (c *Config) Files() []string {
	names := make([]string, len(c.sources))
	for i, s := range c.sources {
		names[i] = s.name
	}
	return names
}

// readSmall reads a regular file of at most limit bytes.
func readSmall(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name) // opening a pipe would wait
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return data, nil
}
