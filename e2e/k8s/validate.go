package k8s

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // its kinds, defaults and conversions
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // its kinds, defaults and conversions
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install" // its kinds, defaults and conversions
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
)

// Validate puts in the defaults and says what an API server would refuse: its own
// code for both. Of a Job it looks at the pods alone, since a server makes parts of
// a Job's own before it looks.
func Validate(object runtime.Object) error {
	object = object.DeepCopyObject()
	legacyscheme.Scheme.Default(object)
	if o, ok := object.(metav1.Object); ok && o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	var faults field.ErrorList
	switch o := object.(type) {
	case *appsv1.Deployment:
		d := new(apps.Deployment)
		if err := legacyscheme.Scheme.Convert(o, d, nil); err != nil {
			return err
		}
		faults = appsvalidation.ValidateDeployment(d, podutil.GetValidationOptionsFromPodTemplate(&d.Spec.Template, nil))
	case *appsv1.StatefulSet:
		s := new(apps.StatefulSet)
		if err := legacyscheme.Scheme.Convert(o, s, nil); err != nil {
			return err
		}
		faults = appsvalidation.ValidateStatefulSet(s, podutil.GetValidationOptionsFromPodTemplate(&s.Spec.Template, nil))
	case *batchv1.Job:
		one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.Spec.Template.Labels, Annotations: o.Spec.Template.Annotations}, Spec: o.Spec.Template.Spec}
		return Validate(one)
	case *corev1.Pod:
		p := new(core.Pod)
		if err := legacyscheme.Scheme.Convert(o, p, nil); err != nil {
			return err
		}
		faults = corevalidation.ValidatePodCreate(p, podutil.GetValidationOptionsFromPodSpecAndMeta(&p.Spec, nil, &p.ObjectMeta, nil))
	case *corev1.Service:
		s := new(core.Service)
		if err := legacyscheme.Scheme.Convert(o, s, nil); err != nil {
			return err
		}
		faults = corevalidation.ValidateServiceCreate(s)
	case *corev1.ConfigMap:
		c := new(core.ConfigMap)
		if err := legacyscheme.Scheme.Convert(o, c, nil); err != nil {
			return err
		}
		faults = corevalidation.ValidateConfigMap(c)
	case *corev1.PersistentVolumeClaim:
		c := new(core.PersistentVolumeClaim)
		if err := legacyscheme.Scheme.Convert(o, c, nil); err != nil {
			return err
		}
		faults = corevalidation.ValidatePersistentVolumeClaim(c, corevalidation.ValidationOptionsForPersistentVolumeClaimCreate())
	case *networkingv1.NetworkPolicy:
		n := new(networking.NetworkPolicy)
		if err := legacyscheme.Scheme.Convert(o, n, nil); err != nil {
			return err
		}
		faults = networkingvalidation.ValidateNetworkPolicy(n, networkingvalidation.NetworkPolicyValidationOptions{})
	case *monitoringv1.PodMonitor: // its server looks at no more than its fields
	default:
		return fmt.Errorf("a %T, of which the tests know nothing", object)
	}
	return faults.ToAggregate()
}
