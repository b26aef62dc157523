// Package controllerruntime is for managers of controller-runtime on a Snowglobe: their
// webhook server in memory, and Sweep, which looks for the API calls at which a fault
// breaks a controller. It is a package of its own because controller-runtime, where
// it is imported, takes the metrics of client-go and the flag -kubeconfig for the whole
// process. Its folder envtest has controller-runtime's envtest.Environment.
package controllerruntime
