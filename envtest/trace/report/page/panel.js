// What is around the lanes: details, legend, help, notices and the table for paper.
// All text gets into the page as text, never as HTML.

/** Makes an element. A property that is a function listens to that event. */
function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((c) => c !== undefined && c !== null));
  return element;
}

const byId = (id) => document.getElementById(id);

/** An event in one line, for the tip, the live region and the lists of causes. */
function lineOf(event) {
  return `${event.label || event.kind} · ${event.lane.name}`;
}

/** Fills the details of an event. go selects another event; close closes the details. */
function showDetails(panel, event, model, go, close) {
  const item = event.item;
  const facts = [
    ["time", clock(event.time, 9)],
    ["lane", event.lane.name],
    ["of", event.lane.group.name + (model.runs.length > 1 ? ` · ${event.run.name}` : "")],
    ["takes", spanOf(item) + (item.open ? ", until the end" : "")],
    ["record", String(event.seq)],
    ...event.fields,
  ].filter(([, value]) => value !== "");
  panel.replaceChildren(
    el("button", { class: "close", click: close, title: "Close (Escape)", "aria-label": "Close details" }, "✕"),
    el("h2", null, event.label || event.kind),
    el("p", null, [event.kind, toneWords[event.tone]].filter(Boolean).join(", ")),
    el("dl", null, ...facts.flatMap(([key, value]) => [el("dt", null, key), el("dd", null, value)])),
    ...related("Where it comes from", event, event.causes, 1, model, go),
    ...related("What came of it", event, event.effects, 0, model, go),
  );
  panel.hidden = false;
}

const toneWords = {
  plain: "", good: "as it should be", bad: "failed", waiting: "held or refused", strong: "",
};

const maxRelated = 60;

function related(title, event, links, side, model, go) {
  if (!links.length) return [];
  const items = links.slice(0, maxRelated).map(({ event: other, how }) => {
    const apart = other.time - event.time;
    const when = apart ? `${took(Math.abs(apart))} ${apart < 0 ? "before" : "after"}` : "at the same moment";
    return el("li", null, el("button", { click: () => go(other) },
      el("small", null, `${model.relations[how][side]} · ${when}`), lineOf(other)));
  });
  if (links.length > maxRelated) items.push(el("li", null, `and ${links.length - maxRelated} more`));
  return [el("h3", null, title), el("ul", null, ...items)];
}

const legendShapes = [
  ["signal", "signal"], ["write", "store write"], ["watch", "watch event"], ["answer", "answer"], ["fault", "fault"],
  ["turn", "turn"], ["note", "note"], ["bad", "failed"],
];

function fillLegend(legend) {
  const svg = (shape, fill) => {
    const space = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(space, "svg"), path = document.createElementNS(space, "path");
    picture.setAttribute("viewBox", "-7 -7 14 14");
    path.setAttribute("d", shapes[shape]);
    path.setAttribute("fill", fill);
    picture.append(path);
    return picture;
  };
  const bar = (tone, style) => {
    const box = el("i", { class: "bar" });
    box.style.background = style || `var(--${tone}-fill)`;
    box.style.borderColor = `var(--${tone})`;
    return box;
  };
  const hatch = "repeating-linear-gradient(135deg, var(--waiting-fill) 0 4px, var(--waiting) 4px 5px)";
  const open = bar("good");
  open.style.borderStyle = "dashed";
  const bad = bar("bad");
  bad.style.borderWidth = "2px";
  legend.replaceChildren(
    el("span", null, bar("good"), "time taken"), el("span", null, bar("waiting", hatch), "held, refused"),
    el("span", null, bad, "failed"), el("span", null, bar("strong"), "script"), el("span", null, open, "never ended"),
    ...legendShapes.map(([shape, name]) => el("span", null, svg(shape, shape === "bad" ? "var(--bad)" : "var(--muted)"), name)),
    el("span", null, bar("plain", "repeating-linear-gradient(135deg, var(--back) 0 3px, var(--wait) 3px 6px)"), "folded wait"),
    el("span", null, bar("plain", "var(--group)"), "folded boot"), el("span", null, "→ cause"), el("span", null, "⇢ effect"),
  );
}

const helpKeys = [
  ["← →", "previous and next event in the lane"], ["↑ ↓", "the nearest event in the lane above or below"],
  ["Home, End", "first and last event in the lane"], ["Enter", "details of the event: its facts, what led to it and what came of it"],
  ["Escape", "close the details, then drop the selection"], ["+ −", "zoom; so do pinching, the wheel on the axis, and Ctrl or Alt and the wheel"],
  ["Shift + ← →", "pan; so do dragging and the wheel sideways"], ["0", "show everything"],
  ["/", "search; lanes without a match are hidden, other events fade"], ["N, Shift + N", "next and previous match"],
  ["F", "go to where a run failed"], ["P", "go to where two runs part, in one and then the other"], ["B", "show the boot of the servers, and their end after the script, or fold them"], ["T", "change the time axis: steps or time"],
  ["S", "two runs: each lane of one above that of the other, or one run above the other"],
  ["D", "light, dark, or as the system has it"], ["Tab", "to the lanes' groups, which Enter folds"],
];

function showHelp(dialog) {
  dialog.replaceChildren(
    el("h2", null, "How to read this page"),
    el("p", null, "Each lane is one thing: a hook, a check, a client, a cache. Bars take time, marks are moments. The script is above, with its phases and commands. Groups of the servers' own routine are folded at first: click them."),
    el("p", null, "The boot of a server takes little room, and so does the end of all servers after the last line of the script: click such a strip to open it, and its name on the axis to fold it again. What was held, what a rule changed and what failed in it is shown all the same."),
    el("p", null, "The axis is virtual time. In steps, each event that is shown takes the same room, and waiting is folded into hatched strips. In time, the room is that of the clock."),
    el("dl", null, ...helpKeys.flatMap(([key, text]) => [el("dt", null, el("kbd", null, key)), el("dd", null, text)])),
    el("button", { click: () => dialog.close() }, "Close"),
  );
  dialog.showModal();
}

/** Says where runs failed and where they part, with buttons that go there. */
function fillNotices(box, model, go) {
  for (const run of model.runs) {
    if (!run.failed) continue;
    const where = run.failed.line ? ` in line ${run.failed.line}` : "";
    const event = run.events[run.failed.event];
    const text = `✗ ${model.runs.length > 1 ? run.name + " failed" : "Failed"}${where}${run.failed.text ? ": " + run.failed.text : ""}`;
    box.append(el("div", { class: "failed", role: "status" }, el("p", null, text),
      event && el("button", { click: () => go(event), title: "Go there (F)" }, "Show")));
  }
  if (!model.divergence) return;
  const ends = model.runs.map((run) => run.events[run.divergence]);
  const when = ends.filter(Boolean).map((e) => e.time);
  box.append(el("div", { class: "parts", role: "status" },
    el("p", null, `≠ The runs part at ${clock(Math.min(...when), 3)}`),
    ...ends.map((event, i) => event && el("button", { click: () => go(event), title: "Go there (P)" }, `Show in ${model.runs[i].name}`)),
    el("details", null, el("summary", null, "In words"), el("pre", null, model.divergence.words))));
}

/** Makes the table for paper, of the events that are shown. */
function fillPrint(box, model, shown) {
  box.replaceChildren();
  for (const run of model.runs) {
    const events = run.events.filter(shown);
    const left = run.events.length - events.length;
    const rows = events.map((e) => {
      const phase = e.lane.group.script && e.lane.name === "phases";
      const failed = run.failed && run.failed.event === e.index;
      const bad = e.tone === "bad" || failed;
      const facts = e.fields.filter(([key]) => printed.has(key)).map(([key, value]) => `${key}: ${value}`).join("; ");
      const span = spanOf(e.item) && e.item.main === e ? `takes ${spanOf(e.item)}` : "";
      return el("tr", { class: phase ? "phase" : bad ? "bad" : undefined },
        el("td", null, clock(e.time, 6)), el("td", null, e.lane.group.script ? "Script" : e.lane.name), el("td", null, e.kind),
        el("td", null, (failed ? "✗ failed here: " : bad ? "✗ " : "") + e.label), el("td", null, [span, facts].filter(Boolean).join("; ")));
    });
    const heads = ["Time", "Lane", "Kind", "Event", "Facts"].map((h) => el("th", { scope: "col" }, h));
    box.append(el("h2", null, run.name || "Events"),
      el("p", null, `${events.length} events${left ? `; ${left} more are folded, or do not match the search` : ""}.`),
      el("table", null, el("thead", null, el("tr", null, ...heads)), el("tbody", null, ...rows)));
  }
}

/** The facts that the table for paper has: the others are in the label or the lane. */
const printed = new Set(["phase", "rule", "error", "reason", "objects", "took", "answered by", "cause"]);
