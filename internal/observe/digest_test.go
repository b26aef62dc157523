package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is random by nature counts by what it is; all else by its content.
func TestDigest(t *testing.T) {
	of := func(data string) string { return digest(map[string]any{"data": data}) }
	const begin, end = "-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n"
	assert.Equal(t, of(begin+"MIIB"+end), of(begin+"MIIC\nAAAA"+end))
	assert.NotEqual(t, of(begin+"MIIB"+end), of(begin+"MIIB"+end+begin+"MIIB"+end), "one certificate or two")
	assert.Equal(t, of("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="), of("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tDQ=="))
	assert.Equal(t, of("7d444840-9dc0-11d1-b245-5ffdce74fad2"), of("7d444840-9dc0-11d1-b245-000000000000"))
	assert.NotEqual(t, of("a"), of("b"))
}
