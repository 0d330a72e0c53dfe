package config

import (
	"os"
	"path/filepath"
	"strings"
)

// A point is a name in a folder, to which something else may come to belong.
type point struct{ folder, name string }

func pointOf(path string) point { return point{filepath.Dir(path), filepath.Base(path)} }

// maxLinks is where the kernel gives up too.
const maxLinks = 40

// pointsOf returns the names on whose meaning a path depends: each symbolic link
// on its way, and the file at its end (or the first name that is not there).
func pointsOf(path string) (points []point) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	at, names, links := "/", split(path), 0
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		switch name {
		case ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return append(points, point{at, name})
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if len(names) == 0 {
				points = append(points, point{at, name})
			}
			at = next
			continue
		}
		points = append(points, point{at, name})
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return points
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		names = append(split(target), names...)
	}
	return points
}

// split cuts a path into its names. It keeps "..", which after a link means the
// parent of where the link led.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
