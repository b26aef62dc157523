// The time axis: where an event, or a moment of virtual time, is along the lanes.
//
// Virtual time stands still, leaps and stands still again: thousands of events happen
// in a millisecond, and then nothing for an hour. So the axis has two scales. On the
// scale of steps every event that is shown takes one step, and waiting takes only a
// few, more for longer waits, and what is folded is a narrow strip, whatever is in it. On
// the scale of time it is nanoseconds.

const shortestWait = 1e5; // ns; less than that takes no room on the scale of steps
const leastStrip = 3; // steps
const stripsShare = 0.2; // of what is not folded; half of it for one strip
const markedWait = 5e6; // ns; from this on a wait is marked in the lanes

class Axis {
  /** events are those that are shown, of all runs. */
  constructor(runs, events, steps) {
    this.steps = steps;
    this.knots = []; // {time, rank, u, wait, strip}: where the shown events are
    this.strips = []; // {from, to, events}: where folded events are
    this.end = Math.max(1, ...runs.map((run) => (run.events.length ? run.events[run.events.length - 1].time : 0)));
    this.makeKnots(events);
    for (const run of runs) this.place(run);
    this.length = steps ? (this.knots.length ? this.knots[this.knots.length - 1].u : 1) : this.end;
  }

  /** Events of two runs share a knot if they are at the same moment, and of the same rank in it. */
  makeKnots(events) {
    rank(events);
    const sorted = [...events].sort((x, y) => x.time - y.time || x.rank - y.rank);
    let last = null;
    for (const e of sorted) {
      if (!last || last.time !== e.time || last.rank !== e.rank) {
        last = { time: e.time, rank: e.rank, u: 0, wait: 0, strip: null, events: [] };
        this.knots.push(last);
      }
      last.events.push(e);
      e.knot = last;
    }
    this.makeStrips();
    this.layKnots();
  }

  /** Neighbouring knots of which all events are folded make a strip. */
  makeStrips() {
    let strip = null;
    for (const knot of this.knots) {
      if (!knot.events.every(isFolded)) {
        strip = null;
        continue;
      }
      if (!strip) this.strips.push((strip = { from: 0, to: 0, knots: 0, events: [] }));
      strip.knots++;
      strip.events.push(...knot.events);
      knot.strip = strip;
    }
  }

  /** Places the knots: first as if strips took no room, and then with their share of the width. */
  layKnots() {
    this.layKnotsWith(0);
    const length = this.knots.length ? this.knots.at(-1).u : 0;
    this.layKnotsWith(Math.max(leastStrip, (stripsShare * length) / (this.strips.length + 1)));
  }

  layKnotsWith(width) {
    let last = null;
    for (const knot of this.knots) {
      const { strip } = knot, within = strip && last && last.strip === strip;
      if (last && !within) knot.wait = knot.time - last.time;
      knot.u = last ? last.u + (within ? 0 : 1 + waitSteps(knot.wait)) : 0;
      if (strip) {
        if (!within) strip.from = this.steps ? knot.u : knot.time;
        knot.u += width / strip.knots;
        strip.to = this.steps ? knot.u : knot.time;
      }
      last = knot;
    }
  }

  place(run) {
    for (const e of run.events) {
      if (!this.steps) e.u = e.time;
      else e.u = e.knot ? e.knot.u : this.at(e.time);
      e.knot = null;
    }
    for (const lane of run.lanes) {
      for (const track of lane.tracks) {
        let free = 0; // where the track's last item ends
        for (const item of track) {
          item.b = Math.max(item.to.u, item.from ? item.from.u : 0);
          item.a = item.from ? item.from.u : Math.min(Math.max(this.at(item.start), free), item.b);
          free = item.b;
        }
      }
    }
  }

  /** Where a moment is. */
  at(time) {
    if (!this.steps || !this.knots.length) return this.steps ? 0 : time;
    const j = lowerBound(this.knots, (k) => k.time >= time);
    if (j === this.knots.length) return this.knots[j - 1].u;
    const right = this.knots[j];
    if (j === 0 || right.time === time) return right.u;
    const left = this.knots[j - 1];
    return left.u + ((right.u - left.u) * (time - left.time)) / (right.time - left.time);
  }

  /** The moment at a place. */
  time(u) {
    if (!this.steps || !this.knots.length) return this.steps ? 0 : u;
    const j = lowerBound(this.knots, (k) => k.u >= u);
    if (j === 0) return this.knots[0].time;
    if (j === this.knots.length) return this.knots[j - 1].time;
    const [left, right] = [this.knots[j - 1], this.knots[j]];
    return left.time + ((right.time - left.time) * (u - left.u)) / (right.u - left.u);
  }

  /** The waits that are folded between two places, as [from, to, nanoseconds]. */
  waits(from, to) {
    const found = [];
    if (!this.steps) return found;
    for (let j = Math.max(1, lowerBound(this.knots, (k) => k.u >= from)); j < this.knots.length; j++) {
      const [left, right] = [this.knots[j - 1], this.knots[j]];
      if (left.u > to) break;
      if (right.wait >= markedWait) found.push([left.u + 0.5, right.u - 0.5, right.wait]);
    }
    return found;
  }

  /** The strip at a place, if any. */
  stripAt(u) { return this.strips.find((strip) => strip.from <= u && u <= strip.to); }

  /** Labelled places between two others, at least a distance apart, as [u, text]. */
  ticks(from, to, distance) {
    return this.steps ? this.stepTicks(from, to, distance) : this.timeTicks(from, to, distance);
  }

  stepTicks(from, to, distance) {
    const chosen = [];
    for (let j = lowerBound(this.knots, (k) => k.u >= from); j < this.knots.length;) {
      const k = this.knots[j];
      if (k.u > to) break;
      if (!k.strip) chosen.push(k);
      const next = lowerBound(this.knots, (other) => other.u >= k.u + distance);
      j = Math.max(j + 1, next);
    }
    return chosen.map((k, i) => {
      const other = (n) => n.time !== k.time;
      const near = [chosen.slice(0, i).findLast(other), chosen.slice(i).find(other)].filter(Boolean);
      const digits = [3, 6, 9].find((d) => near.every((n) => clock(n.time, d) !== clock(k.time, d)));
      return [k.u, clock(k.time, digits || 9)];
    });
  }

  timeTicks(from, to, distance) {
    const size = 10 ** Math.floor(Math.log10(distance));
    const round = distance > 50e9 ? roundTimes : [size, 2 * size, 5 * size, 10 * size];
    const step = round.find((s) => s >= distance) || Math.ceil(distance / 3600e9) * 3600e9;
    const digits = [0, 3, 6, 9].find((d) => step >= 10 ** (9 - d)) ?? 9;
    const chosen = [];
    for (let u = Math.max(0, Math.ceil(from / step)) * step; u <= to; u += step) chosen.push([u, clock(u, digits)]);
    return chosen;
  }
}

/** Round distances between ticks from a minute on, in nanoseconds. */
const roundTimes = [60, 120, 300, 600, 1200, 1800, 3600].map((s) => s * 1e9);

/** Numbers the events of each run at the same moment, in their order. */
function rank(events) {
  const last = new Map(); // of each run
  for (const e of events) {
    const before = last.get(e.run);
    e.rank = before && before.time === e.time ? before.rank + 1 : 0;
    last.set(e.run, e);
  }
}

function waitSteps(ns) {
  return ns > shortestWait ? 1.5 * Math.log10(ns / shortestWait) : 0;
}

/** The first index at which a condition holds that holds from there on; the length if none. */
function lowerBound(sorted, holds) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(sorted[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Where a fold that is open begins and ends. */
function rangeOf(fold) {
  const shown = fold.events.filter(hasLane);
  return shown.length ? [shown[0].u, shown.at(-1).u] : [0, -1];
}
