package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/fakes/oidc"
	"snowglobe.test/internal/nearest"
)

// tokenKeys are what a token of a fake issuer can be signed with.
var tokenKeys = map[string]oidc.Key{
	"current": oidc.CurrentKey, "previous": oidc.PreviousKey, "unknown": oidc.UnknownKey, "forged": oidc.ForgedKey, "none": oidc.NoKey,
}

var issueCommand = command{
	name:  "issue",
	args:  "[--lifetime DURATION] [--audience AUDIENCE] [--key current|previous|unknown|forged|none] HOST USER [GROUP...]",
	least: 2, most: anyNumber,
	summary: "have a fake OIDC issuer issue a token for a user and put it into $TOKEN",
	details: `It prints when the token expires: after an hour, unless --lifetime says otherwise; one
with a negative lifetime has already expired. The audience is kubernetes, which the API
server expects. With --key, a token is signed with the newest key (current), with the one
before the last "rotate" (previous), with one that the issuer does not know (unknown),
with a different key under the current key's id (forged), or not at all (none).`,
	example: "issue issuer.example.com jane developers\nas token $TOKEN",
	prepare: func(flags *pflag.FlagSet) action {
		lifetime := flags.Duration("lifetime", time.Hour, "")
		to := flags.String("audience", audience, "")
		key := flags.String("key", "current", "")
		return func(_ context.Context, s *session, args []string) error {
			found, err := s.fakeAt(args[0])
			if err != nil {
				return err
			}
			signer, known := tokenKeys[*key]
			switch {
			case found.issue == nil:
				return fmt.Errorf("%w: %s issues no tokens; a fake of the kind oidc does", errUsage, args[0])
			case !known:
				names := slices.Sorted(maps.Keys(tokenKeys))
				return fmt.Errorf("%w: no key is called %q%s; there are %s", errUsage, *key, nearest.DidYouMean(*key, names), nearest.Either(names))
			}
			token, err := found.issue(oidc.Token{
				Subject: args[1], Audience: []string{*to}, Lifetime: *lifetime, Key: signer,
				Claims: map[string]any{"groups": args[2:]},
			})
			if err != nil {
				return err
			}
			s.ts.Setenv(tokenVariable, token)
			fmt.Fprintf(&s.out, "expires %s\n", time.Now().Add(*lifetime).UTC().Format(time.RFC3339))
			return nil
		}
	},
}
