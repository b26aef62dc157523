// Package controllerruntime is for controller-runtime managers on a Snowglobe: it has an
// in-memory webhook server for them, and Sweep, which looks for the API calls at which a
// fault breaks a controller. It is a separate package because importing controller-runtime
// claims client-go's metrics and the -kubeconfig flag for the whole process. Its folder
// envtest has controller-runtime's envtest.Environment.
package controllerruntime
