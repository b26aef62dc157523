package kubelet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/stub"
)

const logsPath = "/containerLogs/default/web/app"

func TestLogs(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		began := time.Now().UTC()
		hourAgo := began.Add(-time.Hour)
		w.app.Log.Append(kubelet.Line{Time: hourAgo.Add(-time.Hour), Text: "before"})
		w.app.Log.Restart()
		w.app.Log.Append(
			kubelet.Line{Time: hourAgo, Text: "one"},
			kubelet.Line{Time: began.Add(-time.Minute), Text: "two", Stderr: true},
			kubelet.Line{Time: began.Add(-time.Second), Text: "three"},
		)
		const stamp = "2006-01-02T15:04:05.000000000Z07:00"
		for query, want := range map[string]string{
			"":                              "200 one\ntwo\nthree\n",
			"tailLines=2":                   "200 two\nthree\n",
			"tailLines=0":                   "200 ",
			"tailLines=9223372036854775807": "200 one\ntwo\nthree\n",
			"limitBytes=6":                  "200 one\ntw",
			"limitBytes=8&follow=true":      "200 one\ntwo\n",
			"limitBytes=100":                "200 one\ntwo\nthree\n",
			"sinceSeconds=1800":             "200 two\nthree\n",
			"sinceSeconds=1800&tailLines=3": "200 two\nthree\n",
			"sinceTime=" + hourAgo.Add(time.Second).Format(time.RFC3339): "200 two\nthree\n",
			"timestamps=true&tailLines=1":                                "200 " + began.Add(-time.Second).Format(stamp) + " three\n",
			"previous=true":                                              "200 before\n",
			"previous=true&follow=true":                                  "200 before\n",
			"stream=Stderr":                                              "200 two\n",
			"stream=Stdout":                                              "200 one\nthree\n",
			"stream=All&follow=false":                                    "200 one\ntwo\nthree\n",
			"stream=Stderr&tailLines=1":                                  `422 {"message": "Invalid request."}`,
			"stream=stdin":                                               `422 {"message": "Invalid request."}`,
			"tailLines=-1":                                               `422 {"message": "Invalid request."}`,
			"tailLines=two":                                              `422 {"message": "Invalid request."}`,
			"limitBytes=0":                                               `422 {"message": "Invalid request."}`,
			"sinceSeconds=0":                                             `422 {"message": "Invalid request."}`,
			"sinceTime=yesterday":                                        `422 {"message": "Invalid request."}`,
			"sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z":              `422 {"message": "Invalid request."}`,
		} {
			response, err := w.get(t.Context(), w.parse(logsPath+"?"+query))
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			assert.NoError(t, err)
			assert.NoError(t, response.Body.Close())
			assert.Equal(t, want, fmt.Sprint(response.StatusCode, " ", string(body)), query)
		}
	})
}

func TestNoPreviousLogs(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		response, err := w.get(t.Context(), w.parse(logsPath+"?previous=true"))
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		assert.NoError(t, response.Body.Close())
	})
}

// TestFollow reads lines as they are written, until the container ends.
func TestFollow(t *testing.T) {
	for name, end := range map[string]func(l *kubelet.Log){
		"end": (*kubelet.Log).End, "restart": (*kubelet.Log).Restart,
		"two restarts": func(l *kubelet.Log) { l.Restart(); l.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(t *testing.T, w *world) {
				w.app.Log.Print("one")
				response, err := w.get(t.Context(), w.parse(logsPath+"?follow=true"))
				require.NoError(t, err)
				lines := bufio.NewScanner(response.Body)
				for _, want := range []string{"one", "two", "three"} {
					assert.True(t, lines.Scan())
					assert.Equal(t, want, lines.Text())
					switch want {
					case "one":
						w.app.Log.Print("two", "three")
					case "three":
						end(&w.app.Log)
					}
				}
				assert.False(t, lines.Scan())
				assert.NoError(t, lines.Err())
				assert.NoError(t, response.Body.Close())
				sessions, err := w.AwaitSessions(t.Context(), 1)
				require.NoError(t, err)
				assert.NoError(t, sessions[0].Err)
			})
		})
	}
}

// TestFollowerLeaves ends what a client no longer reads.
func TestFollowerLeaves(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.app.Log.Print("one")
		ctx, cancel := context.WithCancel(t.Context())
		response, err := w.get(ctx, w.parse(logsPath+"?follow=true"))
		require.NoError(t, err)
		cancel()
		sessions, err := w.AwaitSessions(t.Context(), 1)
		require.NoError(t, err)
		assert.ErrorIs(t, sessions[0].Err, context.Canceled)
		assert.NoError(t, response.Body.Close())
	})
}

// TestLogsBroken breaks logs off in the middle, or fails before the first line.
func TestLogsBroken(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		var line string
		var failure error
		remove := w.Requests.Use(stub.Rule[kubelet.Request, kubelet.Answer]{
			Name: "broken",
			Answer: func(context.Context, kubelet.Request) (kubelet.Answer, error) {
				return kubelet.Answer{Logs: func(_ context.Context, out io.Writer) error {
					_, err := io.WriteString(out, line)
					return errors.Join(failure, err)
				}}, nil
			},
		})
		line, failure = "half a li", stub.ErrBreak
		response, err := w.get(t.Context(), w.parse(logsPath))
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, "half a li", string(body))
		assert.NoError(t, response.Body.Close())

		line, failure = "half a li", errors.New("the runtime is ill")
		response, err = w.get(t.Context(), w.parse(logsPath))
		require.NoError(t, err)
		body, err = io.ReadAll(response.Body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, "half a li", string(body))
		assert.NoError(t, response.Body.Close())

		line, failure = "", errors.New("the runtime is ill")
		response, err = w.get(t.Context(), w.parse(logsPath))
		require.NoError(t, err)
		body, err = io.ReadAll(response.Body)
		assert.NoError(t, err)
		assert.Equal(t, "400 the runtime is ill\n", fmt.Sprint(response.StatusCode, " ", string(body)))
		assert.NoError(t, response.Body.Close())

		line, failure = "", stub.ErrBreak
		_, err = w.get(t.Context(), w.parse(logsPath))
		assert.Error(t, err)

		remove()
		response, err = w.get(t.Context(), w.parse(logsPath))
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, response.StatusCode)
		assert.NoError(t, response.Body.Close())
		assert.Equal(t, "broken", w.Requests.Calls()[0].Rule)
	})
}
