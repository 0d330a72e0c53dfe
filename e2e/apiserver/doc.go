// Package apiserver holds deploy/k8s and docs/kubernetes.md to a real API server:
// etcd, kube-apiserver, the controllers that make pods of Deployments and
// endpoints of Services, and kubectl, built from their own modules (kubernetes.mod
// pins them). There is no scheduler and no kubelet: the tests put pods on a node
// that exists in name, and say of them that they are ready.
//
// Building takes minutes, so `make test` leaves this out; `make apiserver` builds
// and runs it.
package apiserver
