// Package webhook holds fakes of the webhooks that a kube-apiserver calls: admission,
// conversion of custom resources, token review, subject access review and audit. Each
// is a server on a listener of its own, whose answers a test chooses request by request
// and which records what it was asked. They speak the v1 versions alone, over HTTPS, and
// refuse what is not to the letter what an API server sends.
//
// It never calls an API server, and registers no webhook: the configuration to register
// is what its methods return.
package webhook
