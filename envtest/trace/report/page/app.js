// Keeps what is shown, and listens.

const model = readModel(JSON.parse(byId("data").textContent));
const painter = new Painter(byId("chart"));
const [scroller, canvas, labels, panel] = [byId("lanes"), byId("chart"), byId("rows"), byId("details")];
const groupHeight = 26, runHeight = 30;

const state = {
  axis: null, steps: true, from: 0, to: 1,
  paired: model.runs.length > 1, // the lanes of one name, of two runs, are next to each other
  rows: [], pinned: [], head: 0,
  selected: null, found: [], matches: null, // a set of events, or null if nothing is searched
};

// Layout: which rows there are, and where.

function layOut() {
  state.pinned = [];
  state.rows = [];
  let y = axisHeight, row = 0;
  for (const run of model.runs) {
    for (const lane of run.groups.filter((g) => g.script).flatMap((g) => g.lanes)) {
      const height = heightOf(lane);
      state.pinned.push({ run, lane, y, height, odd: row++ % 2 === 1 });
      y += height;
    }
  }
  state.head = y + 1;
  if (state.paired) layOutGroups(model.runs);
  else {
    for (const run of model.runs) {
      if (model.runs.length > 1) addRow({ run }, runHeight);
      layOutGroups([run]);
    }
  }
  labels.style.height = `${bottomOf(state.rows) + state.head + 40}px`;
  labels.replaceChildren();
  scroller.style.scrollPaddingTop = `${state.head}px`; // what Tab reaches is not below the head
  byId("pinned").style.height = `${state.head}px`;
  byId("pinned").replaceChildren(...state.pinned.map((r) => label(r, r.y)));
}

/** Adds the groups of runs: those of one name share a row, and so do not their lanes. */
function layOutGroups(runs) {
  const matching = (lane) => !state.matches || lane.events.some((e) => state.matches.has(e));
  for (const groups of byName(runs.map((run) => run.groups.filter((g) => !g.script && g.lanes.some(matching))))) {
    addRow({ groups, run: groups.length < 2 ? groups[0].run : undefined }, groupHeight);
    if (!groups[0].open) continue;
    byName(groups.map((g) => g.lanes.filter(matching))).forEach((lanes, i) => {
      for (const lane of lanes) addRow({ run: lane.run, lane, odd: i % 2 === 1 }, heightOf(lane));
    });
  }
}

/** Merges sorted lists: what has the same name in several is one entry. */
function byName(lists) {
  const entries = [];
  for (const list of lists) {
    let after = -1;
    for (const thing of list) {
      const same = entries.findIndex((entry) => entry[0].name === thing.name);
      if (same >= 0) entries[same].push(thing);
      else entries.splice(after + 1, 0, [thing]);
      after = same >= 0 ? same : after + 1;
    }
  }
  return entries;
}

function addRow(what, height) { state.rows.push({ ...what, y: bottomOf(state.rows), height }); }

function bottomOf(rows) { return rows.length ? rows.at(-1).y + rows.at(-1).height : 0; }

function heightOf(lane) { return lane.tracks.length * trackHeight + 2 * lanePadding; }

function label(row, y) {
  const properties = { class: `row${row.odd ? " odd" : ""}${row.lane || row.groups ? "" : " run"}` };
  let element;
  if (row.lane) {
    const whose = model.runs.length > 1 && (state.paired || row.lane.group.script) ? el("small", null, row.run.name) : null;
    element = el("div", { ...properties, title: row.lane.name }, el("span", null, row.lane.name), whose);
  } else if (row.groups) {
    const [group] = row.groups;
    const events = row.groups.flatMap((g) => g.events);
    const count = state.matches ? `${events.filter((e) => state.matches.has(e)).length} found` : events.length;
    element = el("button", { ...properties, title: group.name, "aria-expanded": group.open, click: () => fold(group) },
      el("span", null, group.name), el("small", null, String(count)));
  } else {
    element = el("div", properties, el("span", null, row.run.name));
  }
  element.style.top = `${y}px`;
  element.style.height = `${row.height}px`;
  element.style.lineHeight = `${row.height}px`;
  return element;
}

/** Makes the labels of the rows that can be seen, and of all groups, for Tab; removes the others. */
function showLabels() {
  const [top, bottom] = [scroller.scrollTop - 200, scroller.scrollTop + scroller.clientHeight + 200];
  for (const row of state.rows) {
    const y = row.y + state.head, near = !!row.groups || (y + row.height >= top && y <= bottom);
    if (near === !!(row.element && row.element.isConnected)) continue;
    if (near) {
      row.element = label(row, y);
      const after = state.rows.find((other) => other.y > row.y && other.element && other.element.isConnected);
      labels.insertBefore(row.element, after ? after.element : null); // in order
    } else if (document.activeElement !== row.element) row.element.remove();
  }
}

function fold(group) {
  setOpen(group, !group.open);
  relayOut();
  const row = state.rows.find((r) => r.groups && r.groups.includes(group));
  if (row && row.element) row.element.focus();
}

/** Folds a group or opens it, with those of its name if they share a row. */
function setOpen(group, open) {
  for (const run of state.paired ? model.runs : [group.run]) {
    for (const other of run.groups) if (other.name === group.name) other.open = open;
  }
}

/** Lays out again and keeps the moment in the middle, and the top row, where they are. */
function relayOut() {
  const middle = state.axis.time((state.from + state.to) / 2), width = state.to - state.from, all = width >= state.axis.length;
  layOut();
  makeAxis();
  if (all) fit();
  else look(state.axis.at(middle) - width / 2, state.axis.at(middle) + width / 2);
  showLabels();
}

function makeAxis() {
  const shown = (e) => e.lane.group.open || e.lane.group.script;
  state.axis = new Axis(model.runs, model.runs.flatMap((run) => run.events.filter(shown)), state.steps);
}

// The view: which part of the axis is shown.

function look(from, to) {
  const { length, steps } = state.axis;
  const least = steps ? 2 : 200, most = length * 1.06 + least, margin = Math.max(length * 0.03, (to - from) * 0.3);
  const width = Math.min(Math.max(to - from, least), most);
  const center = Math.min(Math.max((from + to) / 2, width / 2 - margin), Math.max(width / 2 - margin, length + margin - width / 2));
  [state.from, state.to] = [center - width / 2, center + width / 2];
  redraw();
}

function fit() { look(-0.02 * state.axis.length, state.axis.length * 1.04); }

function zoom(factor, x = painter.width / 2) {
  const fixed = state.from + (x / painter.width) * (state.to - state.from);
  look(fixed - (fixed - state.from) / factor, fixed + (state.to - fixed) / factor);
}

function pan(pixels) {
  const by = (pixels / painter.width) * (state.to - state.from);
  look(state.from + by, state.to + by);
}

let waiting = false;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    showLabels();
    painter.paint({ ...state, model, scroll: scroller.scrollTop });
  });
}

// Selection and search.

/** Selects an event and brings it into view. */
function select(event) {
  state.selected = event;
  if (event) {
    reveal(event);
    byId("said").textContent = `${clock(event.time, 6)}, ${lineOf(event)}`;
    if (!panel.hidden) showDetails(panel, event, model, select, closeDetails);
  }
  byId("tip").hidden = true;
  redraw();
}

function reveal(event) {
  const hidden = () => !state.pinned.some((r) => r.lane === event.lane) && !state.rows.some((r) => r.lane === event.lane);
  if (hidden()) {
    if (state.matches && !state.matches.has(event)) clearSearch();
    if (!event.lane.group.open) setOpen(event.lane.group, true);
    relayOut();
  }
  const width = state.to - state.from;
  if (event.u < state.from + width * 0.04 || event.u > state.to - width * 0.12) look(event.u - width / 2, event.u + width / 2);
  const row = state.rows.find((r) => r.lane === event.lane);
  if (!row) return;
  const room = scroller.clientHeight - state.head, y = row.y + event.item.track * trackHeight;
  if (y < scroller.scrollTop || y + 2 * trackHeight > scroller.scrollTop + room) scroller.scrollTop = y - room / 3;
}

function openDetails() {
  if (!state.selected) return;
  showDetails(panel, state.selected, model, select, closeDetails);
  resize();
  reveal(state.selected);
}

function closeDetails() {
  panel.hidden = true;
  resize();
  canvas.focus();
}

function runSearch() {
  const query = byId("query").value;
  const found = search(model, query), shown = found.filter((e) => e.lane.group.open || e.lane.group.script);
  state.matches = query.trim() ? new Set(found) : null;
  state.found = shown.length ? shown : found; // folded groups stay folded if there is anything else
  sayMatches();
  layOut();
  redraw();
}

function clearSearch() {
  byId("query").value = "";
  runSearch();
}

function sayMatches() {
  const at = state.found.indexOf(state.selected);
  const folded = state.matches ? state.matches.size - state.found.length : 0;
  byId("matches").textContent = !state.matches ? "" : !state.found.length ? "none found" :
    `${at < 0 ? "" : `${at + 1} of `}${state.found.length} found${folded ? `, ${folded} folded` : ""}`;
}

/** Selects the next match, or the one before, from the selection or the left edge on. */
function jump(by) {
  const n = state.found.length;
  if (!n) return;
  let at = state.found.indexOf(state.selected);
  if (at < 0) {
    const first = state.found.findIndex((e) => e.u >= state.from);
    at = first < 0 ? -1 : by > 0 ? first - 1 : first;
  }
  goTo(state.found[(at + by + n) % n]);
  sayMatches();
}

// Where things are.

/** The lanes that can be reached by keys, from the top. */
function lanesShown() { return [...state.pinned, ...state.rows].filter((row) => row.lane).map((row) => row.lane); }

function nearest(lane, u) {
  const i = lowerBound(lane.events, (e) => e.u >= u);
  const near = [lane.events[i - 1], lane.events[i]].filter(Boolean);
  return near.sort((x, y) => Math.abs(x.u - u) - Math.abs(y.u - u))[0];
}

function step(by) {
  if (!state.selected) return selectFirst();
  const { lane, place } = state.selected;
  if (lane.events[place + by]) select(lane.events[place + by]);
}

function change(by) {
  if (!state.selected) return selectFirst();
  const lanes = lanesShown();
  const next = lanes[lanes.indexOf(state.selected.lane) + by];
  if (next) select(nearest(next, state.selected.u));
}

function selectFirst() {
  const lane = lanesShown()[0];
  if (lane) select(nearest(lane, state.from));
}

/** The event at a place of the canvas, or null. */
function eventAt(x, y) {
  const inHead = y < state.head, at = inHead ? y : y - state.head + scroller.scrollTop;
  const row = (inHead ? state.pinned : state.rows).find((r) => at >= r.y && at < r.y + r.height);
  if (!row) return null;
  const near = (e) => Math.abs(painter.x(e.u) - x);
  if (!row.lane) {
    const group = row.groups && row.groups[Math.floor(((at - row.y) / row.height) * row.groups.length)];
    const e = group && !group.open && nearest(group, state.from + x / painter.scale);
    return e && near(e) < 8 ? e : null;
  }
  const track = row.lane.tracks[Math.floor((at - row.y - lanePadding) / trackHeight)] || [];
  let best = null, least = 10;
  for (let i = lowerBound(track, (item) => painter.x(item.b) >= x - 10); i < track.length && painter.x(track[i].a) <= x + 10; i++) {
    const distance = Math.max(0, painter.x(track[i].a) - x, x - painter.x(track[i].b));
    if (distance < least) [best, least] = [track[i], distance];
  }
  if (!best) return null;
  // The ends of a bar are events of their own.
  if (best.from && best.from !== best.main && near(best.from) < 8) return best.from;
  return best.to.item === best && best.to !== best.main && near(best.to) < 8 ? best.to : best.main;
}

let partingShown = 0;

function goToParting() {
  const ends = model.runs.map((run) => run.events[run.parting]).filter(Boolean);
  if (ends.length) goTo(ends[partingShown++ % ends.length]);
}

function goToFailure() {
  const run = model.runs.find((r) => r.failed);
  if (run) goTo(run.events[run.failed.event]);
}

/** Selects an event and shows about as much around it as fits with its text. */
function goTo(event) {
  if (!event) return;
  select(event);
  const room = state.steps ? painter.width / 24 : Math.max(4 * (event.item.to.time - event.item.start), 5e6);
  if (state.to - state.from > room) look(event.u - room * 0.35, event.u + room * 0.65);
}

// Input.

const keys = {
  ArrowLeft: (e) => (e.shiftKey ? pan(-painter.width / 8) : step(-1)),
  ArrowRight: (e) => (e.shiftKey ? pan(painter.width / 8) : step(1)),
  ArrowUp: () => change(-1),
  ArrowDown: () => change(1),
  Home: () => state.selected && select(state.selected.lane.events[0]),
  End: () => state.selected && select(state.selected.lane.events.at(-1)),
  Enter: () => {
    openDetails();
    if (state.selected) panel.focus();
  },
};

const anywhere = {
  "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": fit,
  "/": () => byId("query").focus(), n: () => jump(1), N: () => jump(-1),
  f: goToFailure, p: goToParting, t: changeAxis, s: changePairing, d: changeTheme, "?": () => showHelp(byId("keys")),
  Escape: () => (panel.hidden ? select(null) : closeDetails()),
};

document.addEventListener("keydown", (e) => {
  if (byId("keys").open || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target === byId("query")) {
    if (e.key === "Escape") {
      clearSearch();
      canvas.focus();
    }
    return;
  }
  const act = (e.target === canvas && keys[e.key]) || anywhere[e.key];
  if (!act) return;
  e.preventDefault();
  act(e);
});

byId("search").addEventListener("submit", (e) => {
  e.preventDefault();
  jump(1);
});
byId("query").addEventListener("input", runSearch);

for (const [id, act] of Object.entries({
  previous: () => jump(-1), in: () => zoom(1.5), out: () => zoom(1 / 1.5), fit, axis: changeAxis, pair: changePairing, theme: changeTheme, help: () => showHelp(byId("keys")),
})) byId(id).addEventListener("click", act);

function changeAxis() {
  const middle = state.axis.time((state.from + state.to) / 2), part = (state.to - state.from) / state.axis.length;
  state.steps = !state.steps;
  byId("axis").textContent = `Axis: ${state.steps ? "steps" : "time"}`;
  makeAxis();
  const half = (part * state.axis.length) / 2, center = state.selected ? state.selected.u : state.axis.at(middle);
  if (part >= 1) fit();
  else look(center - half, center + half);
}

function changePairing() {
  if (model.runs.length < 2) return;
  state.paired = !state.paired;
  byId("pair").textContent = state.paired ? "By lane" : "By run";
  for (const group of model.runs[0].groups) setOpen(group, group.open); // those that share a row are alike
  relayOut();
  if (state.selected) reveal(state.selected);
}

const themes = ["", "light", "dark"];

function changeTheme() {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme || "") + 1) % themes.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  byId("theme").textContent = `Theme: ${next || "auto"}`;
  recolor();
}

function recolor() {
  painter.readColors();
  redraw();
}

scroller.addEventListener("scroll", redraw, { passive: true });
scroller.addEventListener("wheel", (e) => {
  if (e.target !== canvas) return;
  const unit = e.deltaMode === 1 ? 20 : 1;
  if (e.ctrlKey || e.metaKey || e.altKey || e.offsetY < state.head) zoom(Math.exp(-e.deltaY * unit * (e.ctrlKey ? 0.01 : 0.003)), e.offsetX);
  else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) pan((e.deltaX || e.deltaY) * unit);
  else return; // the browser scrolls the lanes
  e.preventDefault();
}, { passive: false });

// One pointer drags, two pinch; one that does not move selects.
const pointers = new Map();
let moved = false;

canvas.addEventListener("pointerdown", (e) => {
  if (e.button !== 0) return;
  canvas.focus();
  canvas.setPointerCapture(e.pointerId);
  pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
  moved = pointers.size > 1;
  byId("tip").hidden = true;
});

canvas.addEventListener("pointermove", (e) => {
  const pointer = pointers.get(e.pointerId);
  if (!pointer) return hover(e);
  const [dx, dy] = [e.offsetX - pointer.x, e.offsetY - pointer.y];
  if (!moved && Math.hypot(dx, dy) < 5) return;
  moved = true;
  const other = [...pointers.entries()].find(([id]) => id !== e.pointerId);
  if (other) {
    const before = Math.abs(pointer.x - other[1].x), now = Math.abs(e.offsetX - other[1].x);
    if (before > 10 && now > 10) zoom(now / before, (e.offsetX + other[1].x) / 2);
  } else {
    pan(-dx);
    if (e.pointerType === "mouse") scroller.scrollTop -= dy;
  }
  pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
});

canvas.addEventListener("pointerup", (e) => {
  if (!pointers.delete(e.pointerId) || moved) return;
  const event = eventAt(e.offsetX, e.offsetY);
  select(event);
  if (event) openDetails();
});
canvas.addEventListener("pointercancel", (e) => pointers.delete(e.pointerId));
canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });

function hover(e) {
  const event = eventAt(e.offsetX, e.offsetY), tip = byId("tip");
  tip.hidden = !event;
  canvas.style.cursor = event ? "pointer" : "";
  if (!event) return;
  tip.replaceChildren(el("b", null, event.label || event.kind), [clock(event.time, 6), spanOf(event.item), event.lane.name].filter(Boolean).join(" · "));
  tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 10 : e.clientY + 18}px`;
}

function resize() {
  const width = scroller.clientWidth - labels.offsetWidth, height = scroller.clientHeight;
  if (width === painter.width && height === painter.height) return;
  const all = state.to - state.from >= state.axis.length, scale = painter.width / (state.to - state.from);
  painter.resize(Math.max(50, width), height);
  if (all || !scale) fit();
  else look(state.from, state.from + painter.width / scale);
}

new ResizeObserver(resize).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
window.addEventListener("beforeprint", () => {
  fillPrint(byId("print"), model, (e) => (e.lane.group.open || e.lane.group.script) && (!state.matches || state.matches.has(e)));
});
window.addEventListener("afterprint", () => byId("print").replaceChildren());

// Start: everything, or what went wrong.

byId("pair").hidden = model.runs.length < 2;
fillLegend(byId("legend"));
fillNotices(byId("notices"), model, (event) => {
  goTo(event);
  canvas.focus();
});
layOut();
makeAxis();
resize();
painter.readColors();
fit();
goToFailure();
if (!state.selected) goToParting();
