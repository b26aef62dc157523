package report

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

// inNode runs a program in node, if there is one.
func inNode(t *testing.T, parts ...string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run the page's program in")
	}
	run := exec.CommandContext(t.Context(), node, "--input-type=commonjs", "-")
	run.Stdin = strings.NewReader(strings.Join(parts, "\n"))
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	require.NoError(t, run.Run(), "%s", &said)
}

// TestFitNames has names keep what tells them apart, in as much room as there is.
func TestFitNames(t *testing.T) {
	names, err := files.ReadFile("page/names.js")
	require.NoError(t, err)
	inNode(t, string(names), `
const assert = require("node:assert");
const ruler = { measure: (text) => [...text].length };
const fit = (room, ...names) => fitNames(names, room, ruler);

assert.deepEqual(fit(20, "short", "kube-scheduler"), ["short", "kube-scheduler"]);

// The beginning and the end stay.
const [one] = fit(20, "namespaces/default/configmaps/snow-falls");
assert.match(one, /^name.*….*falls$/);

// Of names that differ at the end, the end is shown; of those that differ in the middle, that.
for (const names of [
  ["system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:generic-garbage-collector"],
  ["/registry/configmaps/default/snowflake-1", "/registry/configmaps/default/snowflake-2"],
  ["replicaset-controller of apiserver-0 in the north", "replicaset-controller of apiserver-1 in the north"],
  Array.from({ length: 30 }, (_, i) => "watch of configmaps in the namespace number " + i + " by the informer"),
]) {
  const shown = fit(24, ...names);
  assert.equal(new Set(shown).size, names.length, shown);
  for (const name of shown) assert.ok(ruler.measure(name) <= 24, name);
}
assert.match(fit(24, "/registry/configmaps/default/snowflake-1", "/registry/configmaps/default/snowflake-2")[1], /2$/);

// One name twice is one name.
const twice = fit(10, "a name that is long", "a name that is long");
assert.equal(twice[0], twice[1]);
`)
}

// TestWrap has headings keep all their letters, in lines that fit.
func TestWrap(t *testing.T) {
	names, err := files.ReadFile("page/names.js")
	require.NoError(t, err)
	inNode(t, string(names), `
const assert = require("node:assert");
const ruler = { measure: (text) => [...text].length };
assert.deepEqual(wrap("Clients 30", 20, ruler), ["Clients 30"]);
assert.deepEqual(wrap("apiserver-0 · Stages and signals 36", 20, ruler), ["apiserver-0 · Stages", "and signals 36"]);
assert.deepEqual(wrap("a-server-of-a-long-name · Hooks", 10, ruler), ["a-server-o", "f-a-long-n", "ame ·", "Hooks"]);
assert.deepEqual(wrap("❄❄❄", 2, ruler), ["❄❄", "❄"]);
assert.deepEqual(wrap("ab", 0, ruler), ["a", "b"], "no room at all");
`)
}

// inBrowser runs a page, and then a program that looks at it, in as much of a browser as there
// is in node.
func inBrowser(t *testing.T, records []trace.Record, program string) {
	t.Helper()
	text := page(t, Page{Title: "snow", Runs: []Run{{Name: "snow", Records: records}}})
	browser, err := os.ReadFile("testdata/browser.js")
	require.NoError(t, err)
	data := strconv.Quote(block(t, text, dataBegin, scriptEnd))
	parts := []string{string(browser), `document.getElementById("data").textContent = ` + data + `;`}
	for _, name := range scripts {
		text, err := files.ReadFile("page/" + name)
		require.NoError(t, err)
		parts = append(parts, string(text))
	}
	inNode(t, append(parts, `const assert = require("node:assert");`, program)...)
}

// TestHeadings has the headings of groups whole in a narrow window, in rows that hold them.
func TestHeadings(t *testing.T) {
	var s tale
	for _, server := range []string{"apiserver-0", "apiserver-1"} {
		s.boot(server)
		s.add(server, trace.Check{Endpoint: "readyz", Name: "etcd", Reason: "gone"})
	}
	inBrowser(t, s.recs, `
const text = (element) => element instanceof FakeElement ? element.children.map(text).join("") : element;
const lines = (row) => row.element.children[0].children.map(text);
for (const width of [100, 176, 340]) {
  labels.clientWidth = width;
  relayOut();
  showFrame();
  const headings = state.rows.filter((row) => row.groups);
  assert.ok(headings.length > 3, headings.length);
  for (const row of headings) {
    assert.equal(lines(row).join("").replaceAll(" ", ""), (row.groups[0].name + row.groups[0].events.length).replaceAll(" ", ""));
    for (const line of lines(row)) assert.ok(boldRuler.measure(line) <= width - 22, line);
    assert.ok(row.height >= lines(row).length * lineHeight, lines(row));
  }
}
`)
}

// TestOpensByClick runs a page: its boot is folded, a click on it opens it, and a click on a
// group opens that.
func TestOpensByClick(t *testing.T) {
	var s tale
	s.note("# It snows.")
	s.note("> start")
	s.boot("apiserver-0")
	s.note("> apply a.yaml")
	s.answered(700)
	s.add("apiserver-0", trace.Check{Endpoint: "readyz", Name: "etcd", Reason: "gone"})
	inBrowser(t, s.recs, `
const click = (x, y) => {
  for (const name of ["pointerdown", "pointerup"]) canvas.dispatch(name, { button: 0, pointerId: 1, offsetX: x, offsetY: y });
  showFrame();
};
showFrame();

// The boot is a strip that says that it can be opened.
assert.equal(byId("boot").textContent, "Boot: folded");
const y = painter.height - 1; // below all lanes
const x = Array.from({ length: painter.width }, (_, x) => x).find((x) => foldAt(x, y)?.strip);
assert.ok(x !== undefined, "nothing is folded");
canvas.dispatch("pointermove", { pointerId: 1, offsetX: x, offsetY: y, clientX: x, clientY: y });
assert.ok(byId("tip").children.some((child) => String(child).includes("click to open")), byId("tip").children);
const folded = folds()[0];
assert.equal(folded.open, false);
click(x, y);
assert.equal(folded.open, true);
assert.equal(byId("boot").textContent, "Boot: shown");

// A click beside everything opens and folds nothing.
click(painter.width - 1, y);
assert.equal(folded.open, true);

// A group opens and closes.
const button = () => state.rows.find((row) => row.groups).element;
const before = button().attributes["aria-expanded"];
button().dispatch("click");
showFrame();
assert.notEqual(button().attributes["aria-expanded"], before);
button().dispatch("click");
showFrame();
assert.equal(button().attributes["aria-expanded"], before);
`)
}
