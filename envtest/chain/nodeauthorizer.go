package chain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// patientInformers are the informers that the authorizer is built on. Upstream's
// node authorizer (node.AddGraphEventHandlers) starts a goroutine that asks until
// wait.NeverStop whether its handlers have synced. It would outlive a chain that
// never runs, and virtual time would stand still while it pauses, because that
// channel is from outside the bubble. So it gets one answer, when the handlers have
// synced or the chain has ended.
type patientInformers struct {
	informers.SharedInformerFactory
	ended <-chan struct{}
}

// InformerFor implements informers.SharedInformerFactory.
func (f patientInformers) InformerFor(obj runtime.Object, newInformer internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return patientInformer{f.SharedInformerFactory.InformerFor(obj, newInformer), f.ended}
}

// Certificates implements informers.SharedInformerFactory.
func (f patientInformers) Certificates() certificates.Interface {
	return certificates.New(f, metav1.NamespaceAll, nil)
}

// Core implements informers.SharedInformerFactory.
func (f patientInformers) Core() core.Interface { return core.New(f, metav1.NamespaceAll, nil) }

// Resource implements informers.SharedInformerFactory.
func (f patientInformers) Resource() resource.Interface {
	return resource.New(f, metav1.NamespaceAll, nil)
}

// Storage implements informers.SharedInformerFactory.
func (f patientInformers) Storage() storage.Interface {
	return storage.New(f, metav1.NamespaceAll, nil)
}

type patientInformer struct {
	cache.SharedIndexInformer
	ended <-chan struct{}
}

// AddEventHandler implements cache.SharedInformer.
func (i patientInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	registration, err := i.SharedIndexInformer.AddEventHandler(handler)
	return patientRegistration{registration, i.ended}, err
}

type patientRegistration struct {
	cache.ResourceEventHandlerRegistration
	ended <-chan struct{}
}

// HasSynced implements cache.ResourceEventHandlerRegistration. It blocks while the
// answer is no, and says yes when the chain has ended: who hears no asks again.
func (r patientRegistration) HasSynced() bool {
	select {
	case <-r.HasSyncedChecker().Done():
	case <-r.ended:
	}
	return true
}
