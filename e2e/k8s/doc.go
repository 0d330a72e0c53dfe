// Package k8s holds what is deployed to the test: the image that the Dockerfile
// makes, the kustomize components and examples in deploy/k8s, the compose file,
// and the page that leads through them.
//
// The image is built by buildah, without a daemon and without the network, on a
// base that the tests make from the local Go installation, and run as a container
// is: its own root, read-only, and a user without rights. Manifests are built by
// kustomize's own packages, decoded as strictly as an API server decodes them,
// validated by its own code, admitted by that of Pod Security's "restricted" level,
// and compared with what the binary really serves.
package k8s
