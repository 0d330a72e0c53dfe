package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"oncegate/internal/testenv"
)

// A pod is a network of its own, in which ports are free whatever else runs on
// this machine, and what kubelet would make of a pod's oncegate there.
type pod struct {
	pause *testenv.Process
	files string // the image's
	hosts string // lines of /etc/hosts beside localhost's
	// volumes are what is mounted that can change, by the volume's name.
	volumes map[string]*volume
}

// newPod makes a pod without containers.
func newPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{files: testenv.Dir(t), volumes: map[string]*volume{}}
	if err := os.Chmod(p.files, 0o755); err != nil {
		t.Fatal(err)
	}
	p.pause = testenv.NewProcess(testenv.Command{
		Name: "pause", Path: lookPath(t, "unshare"), Args: []string{"--net", "sh", "-c", "ip link set lo up && exec sleep infinity"},
		Env: os.Environ(), StopSignal: unix.SIGKILL, Ready: func() error { return p.inside(loopbackIsUp) },
	})
	t.Cleanup(func() { p.pause.Stop(t) })
	p.pause.Start(t)
	return p
}

func loopbackIsUp() error {
	l, err := net.Listen("tcp", "127.0.0.1:1")
	if err != nil {
		return err
	}
	defer l.Close()
	return dials("127.0.0.1:1")
}

func dials(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

func (p *pod) network() string { return fmt.Sprintf("/proc/%d/ns/net", p.pause.Pid()) }

// inside calls f on a thread that is in the pod's network meanwhile. Sockets that
// it makes stay there.
func (p *pod) inside(f func() error) (err error) {
	// The thread must come back: the kernel ends what it has started when it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	theirs, err := os.Open(p.network())
	if err != nil {
		return err
	}
	defer theirs.Close()
	if same, err := sameFile(own, theirs); same || err != nil {
		return errors.Join(errors.New("the pod has no network yet"), err)
	}
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the pod's network: %w", err)
	}
	defer func() {
		if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
			panic(fmt.Sprintf("a thread is lost in a pod's network: %v", back))
		}
	}()
	return f()
}

func sameFile(a, b *os.File) (bool, error) {
	one, err := a.Stat()
	if err != nil {
		return false, err
	}
	two, err := b.Stat()
	return err == nil && os.SameFile(one, two), err
}

// client speaks HTTP to what listens in the pod.
func (p *pod) client() *http.Client {
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = p.inside(func() (err error) {
			c, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// app answers every request in the pod, and counts them.
func (p *pod) app(t *testing.T, address string) (count func() int) {
	t.Helper()
	l := p.listen(t, address)
	requests := make(chan struct{}, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		_, _ = io.WriteString(w, "done")
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return func() int { return len(requests) }
}

// listen listens in the pod.
func (p *pod) listen(t *testing.T, address string) (l net.Listener) {
	t.Helper()
	err := p.inside(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A container is a pod's oncegate.
type container struct {
	*testenv.Process
	args []string // what the image's command is put after
	env  []string
}

// start starts a pod's oncegate as its manifest says: its variables, volumes,
// user and command. Secrets are those of the cluster.
func (p *pod) start(t *testing.T, m *Manifests, spec *corev1.PodSpec, secret map[string]string) *container {
	t.Helper()
	c, ok := Sidecar(spec)
	if !ok {
		t.Fatal("the pod has no oncegate")
	}
	copyFile(t, static(t), filepath.Join(p.files, "usr/bin/oncegate"))
	p.limit(t, c.Resources.Limits.Memory().Value())
	makePlace(t, filepath.Join(p.files, "etc/hosts"))
	hosts := filepath.Join(testenv.Dir(t), "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"+p.hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	user := fmt.Sprintf("%d:%d", *c.SecurityContext.RunAsUser, *c.SecurityContext.RunAsGroup)
	run := &container{args: []string{"--net=" + p.network(), "unshare", "--mount", "./contain.sh", p.files, user, hosts + "=/etc/hosts=ro"}}
	for _, mount := range c.VolumeMounts {
		makePlace(t, filepath.Join(p.files, mount.MountPath))
		dir := p.volume(t, m, spec, mount.Name, secret, int(*c.SecurityContext.RunAsUser))
		how := ""
		if mount.ReadOnly {
			how = "=ro"
		}
		run.args = append(run.args, dir+"="+mount.MountPath+how)
	}
	run.args = append(run.args, "--", "/usr/bin/oncegate")
	run.env = append(imageEnv(t), "PATH="+os.Getenv("PATH"))
	for _, v := range c.Env {
		value := v.Value
		if v.ValueFrom != nil {
			if value, ok = secret[v.ValueFrom.SecretKeyRef.Key]; !ok || v.ValueFrom.SecretKeyRef.Name != "oncegate" {
				t.Fatalf("the variable %s is from a secret that is not there: %+v", v.Name, v.ValueFrom.SecretKeyRef)
			}
		}
		run.env = append(run.env, v.Name+"="+value)
	}
	run.Process = testenv.Run(t, testenv.Command{
		Name: "oncegate", Path: lookPath(t, "nsenter"), Args: append(slices.Clone(run.args), "serve", "--config", "/etc/oncegate/oncegate.yaml"), Env: run.env,
		Ready: func() error { return p.probe(c.StartupProbe) },
	})
	return run
}

// limit shows a container its memory's limit, where a kubelet's shows it.
func (p *pod) limit(t *testing.T, bytes int64) {
	t.Helper()
	for name, text := range map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": fmt.Sprintf("%d\n", bytes)} {
		file := filepath.Join(p.files, name)
		makePlace(t, filepath.Dir(file))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// exec runs another command of oncegate's in the container.
func (c *container) exec(args ...string) (string, error) {
	cmd := exec.Command("nsenter", append(slices.Clone(c.args), args...)...)
	cmd.Env = c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// volume makes what kubelet would mount.
func (p *pod) volume(t *testing.T, m *Manifests, spec *corev1.PodSpec, name string, secret map[string]string, user int) string {
	t.Helper()
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("no volume %s", name)
	}
	switch v := spec.Volumes[i]; {
	case v.ConfigMap != nil:
		c := m.ConfigMaps[v.ConfigMap.Name]
		if c == nil {
			t.Fatalf("no ConfigMap %s among %q", v.ConfigMap.Name, m.configMaps())
		}
		p.volumes[name] = newVolume(t, c.Data)
		return p.volumes[name].dir
	case v.Secret != nil && v.Secret.SecretName == "oncegate":
		p.volumes[name] = newVolume(t, secret)
		return p.volumes[name].dir
	case v.EmptyDir != nil || v.PersistentVolumeClaim != nil:
		dir := testenv.Dir(t)
		if err := os.Chown(dir, user, user); err != nil { // what mode 0777, or fsGroup, come to
			t.Fatal(err)
		}
		return dir
	default:
		t.Fatalf("the tests know no volume like %s", name)
		return ""
	}
}
