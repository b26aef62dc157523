// Keeps what is shown, and changes it.

const model = readModel(JSON.parse(byId("data").textContent));
const painter = new Painter(byId("chart"));
const [scroller, canvas, labels, panel] = [byId("lanes"), byId("chart"), byId("rows"), byId("details")];
const lineHeight = 16, groupPadding = 5, runHeight = 30;
const [ruler, boldRuler] = [new Ruler(`13px ${fontFamily}`), new Ruler(`600 13px ${fontFamily}`)]; // as in the style of rows

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
  const there = (group) => !group.script && (!state.matches || group.lanes.some(hasRow));
  for (const groups of byName(runs.map((run) => run.groups.filter(there)))) {
    const lanes = groups[0].open ? byName(groups.map((g) => g.lanes.filter(hasRow))) : [];
    const run = groups.length < 2 ? groups[0].run : undefined, count = countOf(groups);
    const heading = wrap(`${groups[0].name} ${count}`, headingRoom(), boldRuler);
    addRow({ groups, closed: !lanes.length, run, heading, count }, heading.length * lineHeight + 2 * groupPadding);
    const names = fitNames(lanes.map(([lane]) => lane.short), nameRoom(), ruler);
    lanes.forEach((same, i) => {
      for (const lane of same) addRow({ run: lane.run, lane, name: names[i], odd: i % 2 === 1 }, heightOf(lane));
    });
  }
}

/** How many events groups have to show, as one word: it stays on one line. */
function countOf(groups) {
  const events = groups.flatMap((group) => group.events);
  return state.matches ? `${events.filter((e) => state.matches.has(e)).length}\u00a0found` : String(events.length);
}

/** The width that the heading of a group has beside its sign. */
function headingRoom() { return labels.clientWidth - 22 - boldRuler.measure("▾"); } // 22 is its padding and the gap

/** Reports whether a lane of an open group has anything to show: a match, or an event that is not folded. */
function hasRow(lane) { return lane.events.some((e) => (state.matches ? state.matches.has(e) : !isFolded(e))); }

/** The width that a name has beside the lanes. */
function nameRoom() {
  const runs = model.runs.length > 1 && state.paired ? Math.max(...model.runs.map((run) => ruler.measure(run.name))) + 6 : 0;
  return labels.clientWidth - 32 - runs; // 32 is its padding
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
    element = el("div", { ...properties, title: row.lane.name }, el("span", null, row.name || row.lane.name), whose);
  } else if (row.groups) {
    const [group] = row.groups;
    const folded = new Set(row.groups.flatMap((g) => g.events).filter(isFolded).map((e) => e.fold.name));
    const title = joined(group.name, folded.size && `some events are folded: ${[...folded].join(", ")}`);
    element = el("button", { ...properties, title, "aria-label": group.name, "aria-expanded": !row.closed, click: () => fold(group) },
      el("span", null, ...headingLines(row)));
  } else {
    element = el("div", properties, el("span", null, row.run.name));
  }
  element.style.top = `${y}px`;
  element.style.height = `${row.height}px`;
  element.style.lineHeight = `${row.heading ? lineHeight : row.height}px`;
  return element;
}

/** The lines of a group's heading; after its name, how many events it has. */
function headingLines({ heading, count }) {
  const last = heading.at(-1).slice(0, -count.length);
  return [...heading.slice(0, -1).map((line) => el("span", null, line)), el("span", null, last, el("small", null, count))];
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
  if (group.open && !group.lanes.some(hasRow)) { // there is nothing else in it
    openFolds(group.events.filter(isFolded));
    afterFolds();
  } else {
    setOpen(group, !group.open);
    relayOut();
  }
  const row = state.rows.find((r) => r.groups && r.groups.includes(group));
  if (row && row.element) row.element.focus();
}

/** Folds a group or opens it, with those of its name if they share a row. */
function setOpen(group, open) {
  for (const run of state.paired ? model.runs : [group.run]) {
    for (const other of run.groups) if (other.name === group.name) other.open = open;
  }
}

// Folds: the boots of servers, and their end.

function folds() { return model.runs.flatMap((run) => run.folds); }

/** Opens the folds of events, and those of the same name in the other run. */
function openFolds(events) {
  const names = new Set(events.filter((e) => e.fold).map((e) => e.fold.name));
  for (const f of folds()) f.open ||= model.runs.length > 1 ? names.has(f.name) : events.some((e) => e.fold === f);
}

/** Opens all folds, or closes them if all are open. */
function changeFolds() {
  const open = folds().some((f) => !f.open);
  for (const f of folds()) f.open = open;
  afterFolds();
}

function afterFolds() {
  if (state.selected && isFolded(state.selected)) select(null);
  relayOut();
  sayFolds();
  sayMatches();
}

function sayFolds() {
  const closed = folds().filter((f) => !f.open);
  byId("boot").textContent = `Boot: ${closed.length ? "folded" : "shown"}`;
}

/** Opens what is folded at a place of the canvas, or folds what its axis says is open. */
function toggleFoldAt(x, y) {
  const at = foldAt(x, y);
  if (!at) return;
  if (at.strip) openFolds(at.strip.events);
  else at.fold.open = false;
  afterFolds();
}

/** What can be opened or folded at a place of the canvas: {strip} or {fold}; null if nothing. */
function foldAt(x, y) {
  const u = state.from + x / painter.scale, strip = state.axis.stripAt(u);
  if (strip) return { strip };
  if (y >= axisHeight) return null;
  const fold = folds().find((f) => f.open && rangeOf(f)[0] <= u && u <= rangeOf(f)[1]);
  return fold ? { fold } : null;
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
  state.axis = new Axis(model.runs, model.runs.flatMap((run) => run.events.filter(hasLane)), state.steps);
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
  }
  const folded = isFolded(event);
  if (folded) openFolds([event]);
  if (folded || hidden()) relayOut();
  if (folded) sayFolds();
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
  const found = search(model, query), shown = found.filter(isShown);
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

/** The events of a lane, or of a group, that are not folded. */
function unfolded(lane) { return lane.events.filter((e) => !isFolded(e)); }

function nearest(lane, u) {
  const events = unfolded(lane), i = lowerBound(events, (e) => e.u >= u);
  const near = [events[i - 1], events[i]].filter(Boolean);
  return near.sort((x, y) => Math.abs(x.u - u) - Math.abs(y.u - u))[0];
}

function step(by) {
  if (!state.selected) return selectFirst();
  const events = unfolded(state.selected.lane), next = events[events.indexOf(state.selected) + by];
  if (next) select(next);
}

function change(by) {
  if (!state.selected) return selectFirst();
  const lanes = lanesShown();
  const next = lanes[lanes.indexOf(state.selected.lane) + by], event = next && nearest(next, state.selected.u);
  if (event) select(event);
}

function selectFirst() {
  const event = lanesShown().map((lane) => nearest(lane, state.from)).find(Boolean);
  if (event) select(event);
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
    if (isAway(track[i], state.matches)) continue;
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
  const ends = model.runs.map((run) => run.events[run.divergence]).filter(Boolean);
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
