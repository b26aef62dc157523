package fakes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/fakes/oidc"
	"snowglobe.test/scenarios/engine"
)

// tokenVariable is the variable that holds the last token.
const tokenVariable = "TOKEN"

// tokenKeys are what a token of a fake issuer can be signed with.
var tokenKeys = map[string]oidc.Key{
	"current": oidc.CurrentKey, "previous": oidc.PreviousKey, "unknown": oidc.UnknownKey, "forged": oidc.ForgedKey,
	"none": oidc.NoKey,
}

func (f *Fakes) IssueToken() engine.Command {
	return engine.Command{
		Name:     "issue-token",
		Formerly: "issue",
		Args: "[--lifetime DURATION] [--audience AUDIENCE] [--key current|previous|unknown|forged|none] HOST " +
			"USER [GROUP...]",
		Summary: "have a fake OIDC issuer issue a token for a user and put it into $TOKEN",
		Details: `It prints when the token expires: after an hour, unless --lifetime says otherwise; one
with a negative lifetime has already expired. The audience is kubernetes, which the API
server expects. With --key, a token is signed with the newest key (current), with the one
before the last "rotate-key" (previous), with one that the issuer does not know (unknown),
with a different key under the current key's id (forged), or not at all (none).`,
		Example: "issue-token issuer.example.com jane developers\nas token $TOKEN",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			lifetime := flags.Duration("lifetime", time.Hour, "")
			to := flags.String("audience", audience, "")
			signer := oidc.CurrentKey
			flags.Func("key", "", func(name string) error {
				signer = tokenKeys[name]
				return engine.CheckName("no key is called", name, slices.Sorted(maps.Keys(tokenKeys)))
			})
			return func(_ context.Context, args []string) error {
				found, err := f.fakeAt(args[0])
				if err != nil {
					return err
				}
				if found.issue == nil {
					return fmt.Errorf("%w: %s issues no tokens; a fake of the kind oidc does", engine.ErrUsage, args[0])
				}
				token, err := found.issue(oidc.Token{
					Subject: args[1], Audience: []string{*to}, Lifetime: *lifetime, Key: signer,
					Claims: map[string]any{"groups": args[2:]},
				})
				if err != nil {
					return err
				}
				f.run.Setenv(tokenVariable, token)
				fmt.Fprintf(&f.run.Stdout, "expires %s\n", time.Now().Add(*lifetime).UTC().Format(time.RFC3339))
				return nil
			}
		},
	}
}
