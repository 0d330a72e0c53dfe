package k8s

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// SQLite is for one replica: kustomize refuses more, and so does the volume.
func TestSQLiteHasOneReplica(t *testing.T) {
	_, err := Build("testdata/sqlite-replicas")
	if err == nil || !strings.Contains(err.Error(), "testing value /spec/replicas failed") {
		t.Errorf("three replicas with SQLite: %v", err)
	}
	m, err := Build(examples + "laravel/sqlite")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Claims) != 1 || !slices.Equal(m.Claims[0].Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}) {
		t.Errorf("claims %+v", m.Claims)
	}
	if s := m.Workloads[0].Deployment.Spec.Strategy; s.Type != "Recreate" || s.RollingUpdate != nil {
		t.Errorf("strategy %+v", s)
	}
	if m.Workloads[0].Template.Spec.SecurityContext.FSGroup == nil {
		t.Error("oncegate's user can't write to the volume")
	}
}

// The group to which the app's volumes belong is not changed.
func TestSQLiteLeavesGroup(t *testing.T) {
	_, err := Build("testdata/sqlite-group/taken")
	if err == nil || !strings.Contains(err.Error(), "testing value /spec/template/spec/securityContext/fsGroup failed") {
		t.Errorf("an fsGroup of the Deployment's own: %v", err)
	}
	m, err := Build("testdata/sqlite-group/kept")
	if err != nil {
		t.Fatal(err)
	}
	pods := m.Workloads[0].Template.Spec
	if group := pods.SecurityContext.FSGroup; group == nil || *group != 33 {
		t.Errorf("fsGroup is %v", group)
	}
	if i := slices.IndexFunc(pods.Volumes, func(v corev1.Volume) bool { return v.Name == "oncegate-state" }); pods.Volumes[i].PersistentVolumeClaim == nil {
		t.Errorf("claims are kept in %+v", pods.Volumes[i])
	}
}
