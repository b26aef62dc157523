package admission

import (
	"context"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"

	"snowglobe.test/conformance/suite"
)

var expressionCases = []suite.Case{
	{ID: "S9/CEL-library-computes", Test: celLibraryComputes,
		Source: "KEP-3488; k8s.io/apiserver/pkg/cel/library/libraries.go",
		Promise: "The functions of the CEL library for lists, regular expressions, URLs, addresses, ranges, " +
			"quantities, versions and formats return what their documentation says."},
}

// truths are expressions that are true, one a line.
const truths = `
[1, 2, 3].isSorted()
!['b', 'a'].isSorted()
[1, 1].isSorted()
[1, 2, 3].sum() == 6
[1.5, 2.0].sum() == 3.5
[1u, 2u].sum() == 3u
[duration('1s'), duration('2s')].sum() == duration('3s')
[3, 1, 2].min() == 1
[3, 1, 2].max() == 3
['b', 'a'].min() == 'a'
['b', 'c', 'a'].max() == 'c'
[1, 2, 2, 3].indexOf(2) == 1
[1, 2, 2, 3].lastIndexOf(2) == 2
[1].indexOf(9) == -1
[1].lastIndexOf(9) == -1
'abc 123 456'.find('[0-9]+') == '123'
'abc'.find('[0-9]+') == ''
'1 2 3'.findAll('[0-9]') == ['1', '2', '3']
'1 2 3'.findAll('[0-9]', 2) == ['1', '2']
'1 2 3'.findAll('[0-9]', 0).size() == 0
'1 2 3'.findAll('[0-9]', -1).size() == 3
'abc'.findAll('[0-9]').size() == 0
isURL('https://example.com')
!isURL('../relative')
url('https://example.com:80/path?k=v&k=w&l=x').getScheme() == 'https'
url('https://example.com:80/path').getHost() == 'example.com:80'
url('https://example.com:80/path').getHostname() == 'example.com'
url('https://[::1]:80/path').getHostname() == '::1'
url('https://example.com:80/path').getPort() == '80'
url('https://example.com/path').getPort() == ''
url('https://example.com/with space').getEscapedPath() == '/with%20space'
url('https://example.com').getEscapedPath() == ''
url('https://example.com/?k=v&k=w&l=x').getQuery() == {'k': ['v', 'w'], 'l': ['x']}
url('https://example.com').getQuery() == {}
url('https://example.com') == url('https://example.com')
url('https://example.com') != url('https://example.org')
isIP('192.0.2.1')
isIP('2001:db8::1')
!isIP('192.0.2')
!isIP('192.0.2.1/24')
!isIP('::ffff:192.0.2.1')
!isIP('fe80::1%eth0')
ip.isCanonical('2001:db8::1')
!ip.isCanonical('2001:DB8::1')
ip('192.0.2.1').family() == 4
ip('2001:db8::1').family() == 6
ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified()
!ip('192.0.2.1').isUnspecified()
ip('127.0.0.1').isLoopback() && ip('::1').isLoopback()
!ip('192.0.2.1').isLoopback()
ip('224.0.0.1').isLinkLocalMulticast()
!ip('224.0.1.1').isLinkLocalMulticast()
ip('169.254.169.254').isLinkLocalUnicast()
!ip('192.0.2.1').isLinkLocalUnicast()
ip('192.0.2.1').isGlobalUnicast()
!ip('255.255.255.255').isGlobalUnicast()
string(ip('192.0.2.1')) == '192.0.2.1'
ip('192.0.2.1') == ip('192.0.2.1')
ip('192.0.2.1') != ip('192.0.2.2')
type(ip('192.0.2.1')) == net.IP
isCIDR('192.0.2.0/24')
!isCIDR('192.0.2.0')
!isCIDR('192.0.2.0/33')
!isCIDR('::ffff:192.0.2.0/112')
cidr('192.0.2.0/24').containsIP('192.0.2.255')
!cidr('192.0.2.0/24').containsIP('192.0.3.0')
cidr('192.0.2.0/24').containsIP(ip('192.0.2.1'))
!cidr('192.0.2.0/24').containsIP(ip('192.0.3.1'))
cidr('192.0.2.0/24').containsCIDR('192.0.2.128/25')
cidr('192.0.2.0/24').containsCIDR('192.0.2.0/24')
!cidr('192.0.2.0/24').containsCIDR('192.0.2.0/23')
!cidr('192.0.2.0/24').containsCIDR('192.0.3.0/25')
cidr('192.0.2.0/24').containsCIDR(cidr('192.0.2.128/25'))
!cidr('192.0.2.0/24').containsCIDR(cidr('192.0.3.0/25'))
cidr('192.0.2.7/24').ip() == ip('192.0.2.7')
cidr('192.0.2.7/24').masked() == cidr('192.0.2.0/24')
cidr('192.0.2.0/24').prefixLength() == 24
cidr('2001:db8::/32').prefixLength() == 32
string(cidr('192.0.2.0/24')) == '192.0.2.0/24'
cidr('192.0.2.0/24') == cidr('192.0.2.0/24')
cidr('192.0.2.0/24') != cidr('192.0.2.0/25')
type(cidr('192.0.2.0/24')) == net.CIDR
isQuantity('1.3Gi') && isQuantity('-1') && isQuantity('200k')
!isQuantity('1.3GiB')
!isQuantity('')
quantity('50k').isInteger()
!quantity('50m').isInteger()
!quantity('9999999999999999999999999999999999999G').isInteger()
quantity('50k').asInteger() == 50000
quantity('50.703k').asApproximateFloat() == 50703.0
quantity('50k').add(quantity('20k')) == quantity('70k')
quantity('50k').add(20) == quantity('50020')
quantity('50k').sub(quantity('20k')) == quantity('30k')
quantity('50k').sub(20000) == quantity('30k')
quantity('50k').sub(20) != quantity('50k')
quantity('200M').compareTo(quantity('0.2G')) == 0
quantity('50M').compareTo(quantity('50Mi')) == -1
quantity('50Mi').compareTo(quantity('50M')) == 1
quantity('150Mi').isGreaterThan(quantity('100Mi'))
!quantity('100Mi').isGreaterThan(quantity('100Mi'))
quantity('50M').isLessThan(quantity('100M'))
!quantity('100M').isLessThan(quantity('100M'))
sign(quantity('-7')) == -1 && sign(quantity('0')) == 0 && sign(quantity('7')) == 1
quantity('1000m') == quantity('1')
isSemver('1.2.3') && isSemver('1.2.3-rc.1+build')
!isSemver('v1.2.3') && !isSemver('1.2') && !isSemver('01.2.3')
isSemver('v1.2', true) && isSemver('01.2.3', true)
!isSemver('snow', true)
semver('1.2.3').major() == 1
semver('1.2.3').minor() == 2
semver('1.2.3').patch() == 3
semver('v1.02', true) == semver('1.2.0')
semver('1.2.3').compareTo(semver('1.2.3')) == 0
semver('1.2.3').compareTo(semver('1.10.0')) == -1
semver('1.2.3').compareTo(semver('1.2.3-rc.1')) == 1
semver('1.2.3').isGreaterThan(semver('1.2.2'))
!semver('1.2.3').isGreaterThan(semver('1.2.3'))
semver('1.2.3').isLessThan(semver('1.2.4'))
!semver('1.2.3').isLessThan(semver('1.2.3'))
!format.named('no-such-format').hasValue()
format.named('dns1123Label').hasValue()
!format.dns1123Label().validate('snow').hasValue()
format.dns1123Label().validate('Snow').hasValue()
format.dns1123Label().validate('snow.flake').value().size() == 1
!format.dns1123Subdomain().validate('snow.flake').hasValue()
format.dns1123Subdomain().validate('snow_flake').hasValue()
!format.dns1035Label().validate('snow').hasValue()
format.dns1035Label().validate('1snow').hasValue()
!format.dns1123LabelPrefix().validate('snow-').hasValue()
format.dns1123LabelPrefix().validate('Snow-').hasValue()
!format.dns1123SubdomainPrefix().validate('snow.flake-').hasValue()
format.dns1123SubdomainPrefix().validate('Snow-').hasValue()
!format.dns1035LabelPrefix().validate('snow-').hasValue()
format.dns1035LabelPrefix().validate('1snow-').hasValue()
!format.qualifiedName().validate('example.com/snow').hasValue()
format.qualifiedName().validate('/snow').hasValue()
!format.labelValue().validate('Snow_flake.1').hasValue()
format.labelValue().validate('-snow').hasValue()
!format.uri().validate('https://example.com').hasValue()
format.uri().validate('example.com').hasValue()
!format.uuid().validate('12345678-1234-1234-1234-123456789012').hasValue()
format.uuid().validate('12345678').hasValue()
!format.byte().validate('c25vdw==').hasValue()
format.byte().validate('snow!').hasValue()
!format.date().validate('2000-01-31').hasValue()
format.date().validate('2000-02-30').hasValue()
!format.datetime().validate('2000-01-31T00:00:00Z').hasValue()
format.datetime().validate('2000-01-31').hasValue()
'a,b,c'.split(',') == ['a', 'b', 'c']
'snow'.charAt(1) == 'n' && 'snow'.substring(1, 3) == 'no' && 'snow'.indexOf('w') == 3
'%s has %d'.format(['it', 7]) == 'it has 7'
sets.contains([1, 2], [2]) && !sets.contains([1], [2])
sets.equivalent([1, 2], [2, 1]) && sets.intersects([1], [1, 2])
[1, 2].all(i, v, v == i + 1)
optional.of(1).hasValue() && !optional.none().hasValue()
{'a': 1}[?'a'].orValue(2) == 1 && {'a': 1}[?'b'].orValue(2) == 2
`

func celLibraryComputes(ctx context.Context, t *suite.T) {
	p := newPolicies(ctx, t)
	validations := []registrationv1.Validation{{Expression: "object.metadata.name != 'marker'", Message: "in force"}}
	for line := range strings.Lines(strings.TrimSpace(truths)) {
		truth := strings.TrimSpace(line)
		validations = append(validations, registrationv1.Validation{Expression: truth, Message: "not true: " + truth})
	}
	p.create(ctx, p.policy("library", validations...))
	p.bind(ctx, p.binding("library"))
	p.inForce(ctx, p.object("marker", "", ""), "in force")
	p.allowed(ctx, p.object("one", "", ""))
}
