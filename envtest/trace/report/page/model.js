// Makes runs, groups, lanes, events and items of the page's data block. The form of
// the block is documented at pageData in data.go.

/** Reads the data block. Events know their run, lane and neighbours by index. */
function readModel(data) {
  const model = { ...data, runs: data.runs.map((run, index) => readRun(run, index, data)) };
  for (const run of model.runs) {
    run.divergence = data.divergence ? data.divergence.events[run.index] : undefined;
  }
  return model;
}

function readRun(raw, index, data) {
  const run = { index, name: raw.name, failed: raw.failed, groups: [], lanes: [], events: [], folds: [] };
  for (const g of raw.groups || []) {
    const group = { run, name: g.name, script: !!g.script, open: !g.folded, lanes: [], events: [] };
    for (const [i, name] of g.lanes.entries()) {
      const lane = { run, group, name, short: g.short[i] || name, number: run.lanes.length, events: [], tracks: [] };
      group.lanes.push(lane);
      run.lanes.push(lane);
    }
    run.groups.push(group);
  }
  readEvents(run, raw, data);
  readFolds(run, raw.folds || []);
  readBars(run, raw.bars);
  readLinks(run, raw.links);
  return run;
}

function readEvents(run, raw, data) {
  let time = 0, seq = 0;
  raw.events.forEach((e, index) => {
    time += e[0];
    seq += e[1];
    const lane = run.lanes[e[2]];
    const fields = [];
    for (let i = 6; i < e.length; i += 2) fields.push([raw.strings[e[i]], raw.strings[e[i + 1]]]);
    const event = {
      run, index, time, seq, lane, place: lane.events.length,
      kind: data.kinds[e[3]], tone: data.tones[e[4]], label: raw.strings[e[5]], fields,
      u: 0, item: null, fold: null, causes: [], effects: [],
    };
    run.events.push(event);
    lane.events.push(event);
    lane.group.events.push(event);
  });
}

/** Folds are what is a narrow strip until it is opened: events know theirs. */
function readFolds(run, raw) {
  for (const { name, open, spans } of raw) {
    const fold = { run, name, open: !!open, events: [] };
    let at = 0;
    for (let i = 0; i < spans.length; i += 2) {
      at += spans[i];
      for (const end = at + spans[i + 1]; at < end; at++) {
        run.events[at].fold = fold;
        fold.events.push(run.events[at]);
      }
    }
    run.folds.push(fold);
  }
}

function isFolded(event) { return !!event.fold && !event.fold.open; }

/** Reports whether an event is in a lane that can be seen, or in a fold of one. */
function hasLane(event) { return event.lane.group.open || event.lane.group.script; }

function isShown(event) { return hasLane(event) && !isFolded(event); }

/** Reports whether all of an item is in one fold, and is none of the matches of a search. */
function isAway(item, matches) {
  return isFolded(item.to) && (item.from || item.main).fold === item.to.fold && !(matches && matches.has(item.main));
}

/**
 * Items are what is drawn: a bar, or the mark of an event that belongs to no bar. Each
 * lane puts its items on tracks, so that those on one track do not overlap.
 */
function readBars(run, raw) {
  for (let i = 0; i < raw.length; i += 4) {
    const main = run.events[raw[i]], from = raw[i + 1];
    const item = {
      main, bar: true, open: raw[i + 3] === 1, to: run.events[raw[i + 2]],
      from: from >= 0 ? run.events[from] : null,
      start: from >= 0 ? run.events[from].time : main.time + from + 1,
      a: 0, b: 0, track: 0,
    };
    main.item = item;
    if (item.from) item.from.item ||= item;
    // A held operation ends with an event that is no bar's main event.
    if (item.to.lane === main.lane && item.to.kind === main.kind && isEnd(item)) item.to.item ||= item;
    main.lane.tracks.push(item);
  }
  for (const event of run.events) {
    if (event.item) continue;
    event.item = { main: event, bar: false, open: false, from: event, to: event, start: event.time, a: 0, b: 0, track: 0 };
    event.lane.tracks.push(event.item);
  }
  for (const lane of run.lanes) lane.tracks = intoTracks(lane.tracks);
}

/** Reports whether a bar ends with an event of its own, not with the next bar. */
function isEnd(item) {
  return !item.open && item.main.kind !== "check" && item.main.kind !== "note";
}

function intoTracks(items) {
  const order = (item) => (item.from ? item.from.index : -1);
  items.sort((x, y) => x.start - y.start || order(x) - order(y) || x.main.index - y.main.index);
  const tracks = [];
  for (const item of items) {
    const fits = (track) => {
      const last = track[track.length - 1];
      return last.to.time < item.start || (last.to.time === item.start && (!item.from || last.to.index <= order(item)));
    };
    item.track = tracks.findIndex(fits);
    if (item.track < 0) item.track = tracks.push([]) - 1;
    tracks[item.track].push(item);
  }
  return tracks;
}

function readLinks(run, raw) {
  for (let i = 0; i < raw.length; i += 3) {
    const from = run.events[raw[i]], to = run.events[raw[i + 1]];
    from.effects.push({ event: to, how: raw[i + 2] });
    to.causes.push({ event: from, how: raw[i + 2] });
  }
}

/** The text that a search looks at. It is made when first needed, as searches are rare. */
function textOf(event) {
  event.text ||= [event.kind, event.label, event.lane.name, event.lane.group.name, ...event.fields.map((f) => f.join(" "))]
    .join("\n").toLowerCase();
  return event.text;
}

/** The events that have all words of a query, in the order of time. */
function search(model, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const found = model.runs.flatMap((run) => run.events.filter((e) => words.every((w) => textOf(e).includes(w))));
  return found.sort((x, y) => x.time - y.time || x.run.index - y.run.index || x.index - y.index);
}

/** All that led to an event, nearest first, as pairs. It is bounded, as chains can be long. */
function ancestry(event, limit) {
  const pairs = [], seen = new Set([event]);
  for (let todo = [event]; todo.length && pairs.length < limit;) {
    const next = todo.shift();
    for (const { event: cause } of next.causes) {
      pairs.push([cause, next]);
      if (!seen.has(cause)) todo.push(cause);
      seen.add(cause);
    }
  }
  return pairs;
}

/** How long an item takes, in words; empty if it is a mark or takes no time. */
function spanOf(item) {
  const length = item.to.time - item.start;
  return item.bar && length > 0 ? took(length) : "";
}

/** A duration in words: nanoseconds in. */
function took(ns) {
  const units = [[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const [size, unit] = units.find(([s]) => Math.abs(ns) >= s) || units[5];
  return `${+(ns / size).toPrecision(4)} ${unit}`;
}

/** A virtual time since the start, such as +1.304s or +1:02:03.500s, with that many digits. */
function clock(ns, digits = 3) {
  const whole = Math.floor(ns / 60e9);
  let seconds = ((ns - whole * 60e9) / 1e9).toFixed(9);
  seconds = seconds.slice(0, seconds.length - 9 + digits).replace(/\.$/, "");
  if (!whole) return `+${seconds}s`;
  const [hours, minutes] = [Math.floor(whole / 60), whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return (hours ? `+${hours}:${two(minutes)}:` : `+${minutes}:`) + (Number(seconds) < 10 ? "0" : "") + seconds + "s";
}

function joined(...words) { return words.filter(Boolean).join(" · "); }
