package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		want  int64
	}{
		{"none", fstest.MapFS{}, 0},
		{"container", fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("268435456\n"),
		}, 268435456},
		{"unit", fstest.MapFS{
			"proc/self/cgroup": file("0::/system.slice/oncegate.service\n"),
			"sys/fs/cgroup/system.slice/oncegate.service/memory.max": file("100\n"),
		}, 100},
		{"the least on the way up", fstest.MapFS{
			"proc/self/cgroup":             file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"),
			"sys/fs/cgroup/a/memory.max":   file("50\n"),
			"sys/fs/cgroup/memory.max":     file("70\n"),
		}, 50},
		{"no limit", fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n"),
		}, 0},
		{"version 1", fstest.MapFS{
			"proc/self/cgroup": file("12:cpu,cpuacct:/x\n4:memory:/docker/f00\n0::/\n"),
			"sys/fs/cgroup/memory/docker/f00/memory.limit_in_bytes": file("268435456\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":            file("9223372036854771712\n"),
		}, 268435456},
		{"version 1, in a container", fstest.MapFS{
			"proc/self/cgroup":                           file("4:hugetlb,memory:/kubepods/pod1/f00\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("268435456\n"),
		}, 268435456},
		{"version 1, no limit", fstest.MapFS{
			"proc/self/cgroup":                           file("4:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 0},
		{"a path that leads out", fstest.MapFS{
			"proc/self/cgroup":             file("0::/../../etc\n"),
			"sys/fs/cgroup/etc/memory.max": file("100\n"),
			"etc/memory.max":               file("50\n"),
		}, 100},
		{"nonsense", fstest.MapFS{
			"proc/self/cgroup": file("\n0\n::\n0::/\n"), "sys/fs/cgroup/memory.max": file("-5\n"),
		}, 0},
	} {
		if got, ok := cgroupMemory(c.files); got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: %d, %v", c.name, got, ok)
		}
	}
}

func TestLikeThis(t *testing.T) {
	for id, form := range map[string]string{
		"evt_1NxV5y":                           `^evt_[1-9][A-Z][a-z][A-Z][1-9][a-z]$`,
		"72d3162e-cc78-11e3-81ab-4c9367dc0958": `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
		"1234567":                              `^[1-9]{7}$`,
		"":                                     `^$`,
	} {
		got := likeThis(id)
		if !regexp.MustCompile(form).MatchString(got) || id != "" && got == id {
			t.Errorf("like %s: %s", id, got)
		}
	}
}

func TestLastPart(t *testing.T) {
	for key, want := range map[string]string{
		"evt_1": "evt_1", "acct_1/evt_1": "evt_1", "a%2Fb": "a/b", "x/%23": "#",
	} {
		if got, number := lastPart(key); got != want || number {
			t.Errorf("%s: %s, %v", key, got, number)
		}
	}
	if got, number := lastPart("x/#12"); got != "12" || !number {
		t.Errorf("number: %s, %v", got, number)
	}
}

func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		":9180": "localhost:9180", "0.0.0.0:1": "localhost:1", "[::]:1": "localhost:1", "127.0.0.1:2": "127.0.0.1:2", "[::1]:3": "[::1]:3",
	} {
		if got := reachable(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[2Jb\n\u0085ü"); got != "a\u241B[2Jb\u240A\uFFFDü" {
		t.Errorf("%q", got)
	}
	for in, want := range map[string]string{"fresh": "fresh", "": "-", "\x1b[31m": "-", strings.Repeat("a", 33): "-"} {
		if got := word(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// B69: a configuration that was broken while oncegate runs makes no container
// unhealthy.
func TestHealthAddress(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/broken.yaml", "version: 9")
	writeFile(t, dir+"/good.yaml", "version: 1\nhealth: 127.0.0.1:7000\nstate_dir: /x\nupstream: http://127.0.0.1:1\n"+
		"routes:\n  stripe: {path: /s, provider: stripe, secrets: whsec_test}\n")
	for _, c := range []struct {
		name, file string
		env        []string
		want       string
	}{
		{"B69 broken configuration", "broken.yaml", nil, defaultHealth},
		{"configuration", "good.yaml", nil, "127.0.0.1:7000"},
		{"environment", "broken.yaml", []string{"ONCEGATE_HEALTH=127.0.0.1:7001"}, "127.0.0.1:7001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &program{env: c.env}
			if got := p.healthAddress(&configFlags{path: dir + "/" + c.file}); got != c.want {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestRunReportsFaults(t *testing.T) {
	code, stdout, stderr := runHere(t, nil, "check", "--config", t.TempDir()+"/none.yaml")
	if code != exitConfig || stdout != "" || !strings.Contains(stderr, "none.yaml: can't be read") {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
}
