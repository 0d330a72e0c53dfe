package k8s

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// clusterVariable names the folder that stands for a cluster.
const clusterVariable = "ONCE_TEST_CLUSTER"

// A cluster is what kubectl's stand-in and the test know of each other, in files.
type cluster struct{ dir string }

// The names of its files: the Secret oncegate; the command that runs another in the
// pod's oncegate. The rest are its states.
const (
	secretFile = "secret.json"
	execFile   = "exec.json"
)

func (c cluster) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, name), data, 0o600)
}

func (c cluster) read(name string, into any) error {
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// kubectl stands in for the program of that name: this test binary, called so.
func kubectl(args []string) int {
	c := cluster{os.Getenv(clusterVariable)}
	var err error
	switch {
	case len(args) > 3 && slices.Equal(args[:3], []string{"create", "secret", "generic"}):
		err = c.createSecret(args[3], args[4:])
	case len(args) > 1 && args[0] == "apply":
		err = c.apply(args[1:])
	case len(args) == 3 && args[0] == "delete":
		err = c.remove(args[1], args[2])
	case len(args) == 3 && args[0] == "rollout" && args[1] == "status":
		var command []string
		err = c.read(execFile, &command) // there, once the pod is ready
	case len(args) > 1 && args[0] == "exec":
		err = c.exec(args[1:])
	default:
		err = fmt.Errorf("the stand-in knows no kubectl %s", strings.Join(args, " "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func (c cluster) createSecret(name string, literals []string) error {
	data := map[string]string{}
	for _, literal := range literals {
		key, value, ok := strings.Cut(strings.TrimPrefix(literal, "--from-literal="), "=")
		if !ok || !strings.HasPrefix(literal, "--from-literal=") {
			return fmt.Errorf("not a literal: %s", literal)
		}
		data[key] = value
	}
	fmt.Printf("secret/%s created\n", name)
	return c.write(secretFile, map[string]map[string]string{name: data})
}

// apply takes what an API server would take.
func (c cluster) apply(args []string) error {
	flags := flag.NewFlagSet("apply", flag.ContinueOnError)
	folder, dry := flags.String("k", "", ""), flags.String("dry-run", "none", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, err := Build(*folder)
	if err != nil {
		return err
	}
	for _, w := range m.Workloads {
		if err := admit(w.Template); err != nil {
			return fmt.Errorf("%s %s: %w", w.Kind, w.Name, err)
		}
		fmt.Printf("%s/%s configured\n", strings.ToLower(w.Kind), w.Name)
	}
	if *dry != "none" {
		return nil
	}
	return c.change(func(s state) error {
		for _, o := range m.Objects {
			s[objectKey(o.Kind, o.Name)] = o.Text
		}
		return nil
	})
}

func (c cluster) remove(kind, name string) error {
	return c.change(func(s state) error {
		key := objectKey(kind, name)
		if _, ok := s[key]; !ok {
			return fmt.Errorf("there is no %s", key)
		}
		delete(s, key)
		fmt.Printf("%s deleted\n", key)
		return nil
	})
}

// admit refuses what a namespace would that enforces Pod Security's strictest
// level.
func admit(pods *corev1.PodTemplateSpec) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(level, &pods.ObjectMeta, &pods.Spec) {
		if !result.Allowed {
			err = errors.Join(err, fmt.Errorf("violates PodSecurity restricted: %s (%s)", result.ForbiddenReason, result.ForbiddenDetail))
		}
	}
	return err
}

func (c cluster) exec(args []string) error {
	var command []string
	if err := c.read(execFile, &command); err != nil {
		return err
	}
	_, inside, ok := strings.Cut(strings.Join(args, "\x00"), "\x00--\x00oncegate\x00")
	if !ok || !slices.Equal(args[1:3], []string{"-c", "oncegate"}) {
		return fmt.Errorf("there is nothing else to run than oncegate in its container: %q", args)
	}
	command = append(command, strings.Split(inside, "\x00")...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
