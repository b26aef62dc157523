package objectcmp_test

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest/objectcmp"
)

func claim(storage string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"},
		Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(storage)},
		}},
	}
}

func Example() {
	want := claim("1024Mi")
	got := claim("1Gi") // as a server would return it
	got.UID, got.ResourceVersion, got.CreationTimestamp = "5e4f", "12", metav1.Now()

	fmt.Println(cmp.Equal(want, got))
	fmt.Println(cmp.Equal(want, got, objectcmp.Equate(), objectcmp.IgnoreServerFields()))
	// Output:
	// false
	// true
}

func ExampleEquate() {
	noon := time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)
	fmt.Println(cmp.Equal(claim("1024Mi"), claim("1Gi"), objectcmp.Equate()))
	fmt.Println(cmp.Equal(claim("1G"), claim("1Gi"), objectcmp.Equate()))
	fmt.Println(cmp.Equal(metav1.NewTime(noon), metav1.NewTime(noon.Local()), objectcmp.Equate()))
	// Output:
	// true
	// false
	// true
}

func ExampleIgnoreStatus() {
	want, got := claim("1Gi"), claim("1Gi")
	got.Status.Phase = corev1.ClaimBound

	fmt.Println(cmp.Equal(want, got, objectcmp.Equate(), objectcmp.IgnoreStatus()))
	// Output: true
}
