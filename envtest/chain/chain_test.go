package chain

import (
	"crypto/ecdsa"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/chain/restore"
	"snowglobe.test/envtest/serve"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/trace"
)

// optional are the fields of Config that may be left out.
var optional = map[string]bool{
	"OwnIdentity": true, "CacheWindows": true, "Dial": true, "DialInProcess": true, "Tokens": true, "Faults": true,
	"SettledWrites": true, "UpstreamPauses": true, "Bootstrapped": true, "Virtual": true, "OwnDocuments": true,
	"PostStartHooks": true,
}

func fullConfig() Config {
	return Config{
		ControlPlane: "cp", Server: "apiserver-0", Flags: &Flags{}, Store: memory.New("store"),
		Connection: &intercept.Connection{},
		Restorer:   &restore.Restorer{}, Endpoint: &serve.Endpoint{},
		Serving: KeyPair{Cert: []byte("cert"), Key: []byte("key")}, ClientCA: []byte("ca"), FrontProxy: &FrontProxy{}, AccountKey: &ecdsa.PrivateKey{},
		Trace: trace.NewRecorder("cp", 0), Crash: func(error) {},
	}
}

// TestConfigLacks leaves out every field of a configuration in turn.
func TestConfigLacks(t *testing.T) {
	full := fullConfig()
	require.NoError(t, full.validate())
	for i := range reflect.TypeFor[Config]().NumField() {
		name := reflect.TypeFor[Config]().Field(i).Name
		t.Run(name, func(t *testing.T) {
			config := fullConfig()
			reflect.ValueOf(&config).Elem().Field(i).SetZero()
			if optional[name] {
				assert.NoError(t, config.validate())
				return
			}
			_, err := Assemble(t.Context(), config)
			assert.EqualError(t, err, "start chain: the configuration lacks "+name)
		})
	}
	config := fullConfig()
	config.Store, config.Trace, config.Serving.Key = nil, nil, nil
	assert.EqualError(t, config.validate(), "the configuration lacks Store, Serving, Trace")
}
