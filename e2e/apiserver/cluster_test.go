package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

var programs = flag.String("programs", "../../bin/kubernetes", "the folder that `make apiserver` builds Kubernetes' programs into")

// token is the password of the only user, who may do all.
const token = "admin"

// A cluster is a control plane without nodes.
type cluster struct {
	dir string // of keys, kubeconfig and data
	url string
}

// newCluster starts one. It ends with the test.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if _, err := os.Stat(filepath.Join(*programs, "kube-apiserver")); err != nil {
		t.Fatalf("Kubernetes' programs are not built (make apiserver does it): %v", err)
	}
	c := &cluster{dir: testenv.Dir(t)}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", testenv.Port(t))
	peers := fmt.Sprintf("http://127.0.0.1:%d", testenv.Port(t))
	c.run(t, "etcd", "server", func() error { return answers(http.DefaultClient, etcd+"/health") },
		"--data-dir="+c.dir+"/etcd", "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers,
		"--unsafe-no-fsync", "--log-level=error")
	c.serve(t, etcd)
	c.run(t, "kube-controller-manager", "kube-controller-manager", nil,
		"--kubeconfig="+c.kubeconfig(), "--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", testenv.Port(t)),
		"--cert-dir="+c.dir+"/controllers", "--authentication-skip-lookup", "--v=0",
		"--controllers=deployment-controller,replicaset-controller,statefulset-controller,job-controller,endpointslice-controller,serviceaccount-controller")
	return c
}

// serve starts the API server, and writes the file by which kubectl finds it.
func (c *cluster) serve(t *testing.T, etcd string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	port := testenv.Port(t)
	c.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	for name, text := range map[string]string{
		"accounts.key": string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
		"tokens.csv":   token + ",admin,1,system:masters\n",
		"kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: tests
clusters: [{name: tests, cluster: {server: %q, tls-server-name: kubernetes, certificate-authority: %s/tls/apiserver.crt}}]
users: [{name: tests, user: {token: %s}}]
contexts: [{name: tests, context: {cluster: tests, user: tests}}]
`, c.url, c.dir, token),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.run(t, "kube-apiserver", "kube-apiserver", func() error { return answers(c.client(), c.url+"/readyz") },
		"--etcd-servers="+etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+c.dir+"/tls",
		// No address of this machine's: nobody is told of it.
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--token-auth-file="+c.dir+"/tokens.csv",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+c.dir+"/accounts.key",
		"--service-account-signing-key-file="+c.dir+"/accounts.key", "--v=0")
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// run starts one of Kubernetes' programs.
func (c *cluster) run(t *testing.T, name, file string, ready func() error, args ...string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(*programs, file))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Run(t, testenv.Command{Name: name, Path: path, Args: args, Dir: c.dir, Ready: ready})
}

func answers(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// kubectl runs the program of that name in a folder, by a shell, and returns what
// it prints.
func (c *cluster) kubectl(t *testing.T, dir, commands string) string {
	t.Helper()
	out, err := c.try(t, dir, commands)
	if err != nil {
		t.Fatalf("%s\n%s%v", commands, out, err)
	}
	return out
}

func (c *cluster) try(t *testing.T, dir, commands string) (string, error) {
	t.Helper()
	path, err := filepath.Abs(*programs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "KUBECONFIG="+c.kubeconfig(), "HOME="+c.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// await repeats a command until it succeeds.
func (c *cluster) await(t *testing.T, command string) {
	t.Helper()
	var out string
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if out, err = c.try(t, "", command); err == nil {
			return
		}
	}
	t.Fatalf("after a minute: %s\n%s%v", command, out, err)
}

// namespace makes one that takes pods of Pod Security's strictest level alone, and
// makes it the one that kubectl means.
func (c *cluster) namespace(t *testing.T, name string) {
	t.Helper()
	c.kubectl(t, "", fmt.Sprintf("kubectl create namespace %[1]s && kubectl label namespace %[1]s pod-security.kubernetes.io/enforce=restricted pod-security.kubernetes.io/warn=restricted && "+
		"kubectl config set-context --current --namespace=%[1]s", name))
	// A controller makes it, and without it there are no pods.
	c.await(t, "kubectl get serviceaccount default")
}

// clean fails the test where kubectl's output warns of something.
func clean(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "Warning:") {
			t.Errorf("the server warns: %s", line)
		}
	}
}
