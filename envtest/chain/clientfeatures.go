package chain

import (
	clientfeatures "k8s.io/client-go/features"

	"snowglobe.test/envtest/process"
)

// Upstream's features, which this package imports, have replaced client-go's gates, which ask the
// environment, by gates that do not. Clients of the process that are not the server's get them back.
func init() { clientfeatures.ReplaceFeatureGates(process.ClientGates(clientfeatures.FeatureGates())) }
