package clients

import (
	"context"
	"fmt"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) Drain() engine.Command {
	return engine.Command{
		Name:     "drain",
		Formerly: "events",
		Args:     "NAME",
		Summary:  "take and print all events that a watch, an informer or a candidate has had so far",
		Details: `It prints a line for each, such as "ADDED default/a", and does not wait. After
"settle" nothing more is on its way.`,
		Example: "settle\ndrain settings\nstdout '^ADDED default/a$'",
		Run: func(_ context.Context, args []string) error {
			stream, err := c.stream(args[0])
			if err != nil {
				return err
			}
			for _, event := range stream.take() {
				fmt.Fprintln(&c.run.Stdout, event)
			}
			return nil
		},
	}
}
