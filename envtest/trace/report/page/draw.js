// Draws the lanes on a canvas. It knows nothing of input: a scene says what to show.

const trackHeight = 20, lanePadding = 3, axisHeight = 30, textInset = 5;
const font = `12px ${fontFamily}`;

/** The shapes of the kinds of events, in a box of 12 by 12 around the origin. */
const shapes = {
  note: "M-4 -5H5L1 0L5 5H-4Z",
  stage: "M-4 -3H4V3H-4Z",
  signal: "M0 -6L6 0L0 6L-6 0Z",
  hook: "M0 -5L5 -2V3L0 6L-5 3V-2Z",
  check: "M-5 0L-3 -2L-1 0L4 -5L6 -3L-1 4Z",
  request: "M-6 -3H1V-6L6 0L1 6V3H-6Z",
  fault: "M2 -6L-5 1H-1L-2 6L5 -1H1Z",
  answer: "M6 -3H-1V-6L-6 0L-1 6V3H6Z",
  watch: "M-6 -4H6L0 6Z",
  write: "M-4 -4H4V4H-4Z",
  turn: "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z",
  bad: "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z",
};

const colorNames = ["back", "stripe", "group", "line", "text", "muted", "select", "wait", "plain", "good", "bad", "waiting", "strong",
  "plain-fill", "good-fill", "bad-fill", "waiting-fill", "strong-fill"];

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.ctx = canvas.getContext("2d", { alpha: false });
    this.paths = Object.fromEntries(Object.entries(shapes).map(([kind, d]) => [kind, new Path2D(d)]));
    this.ruler = new Ruler(font);
  }

  /** Reads the colours of the style sheet, which depend on the theme. */
  readColors() {
    const probe = document.createElement("i");
    document.body.append(probe);
    this.colors = Object.fromEntries(colorNames.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }));
    probe.remove();
    this.hatch = this.makeHatch(this.colors.waiting, 0.45);
    this.waitHatch = this.makeHatch(this.colors.wait, 1);
  }

  makeHatch(color, alpha) {
    const tile = new OffscreenCanvas(8, 8), ctx = tile.getContext("2d");
    ctx.strokeStyle = color;
    ctx.globalAlpha = alpha;
    ctx.lineWidth = 1.5;
    for (const x of [-8, 0, 8]) {
      ctx.moveTo(x, 8);
      ctx.lineTo(x + 8, 0);
    }
    ctx.stroke();
    return this.ctx.createPattern(tile, "repeat");
  }

  resize(width, height) {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    [this.width, this.height] = [width, height];
    this.ctx.setTransform(scale, 0, 0, scale, 0, 0);
    this.ctx.font = font;
    this.ctx.textBaseline = "middle";
    this.ctx.lineJoin = "round";
  }

  /**
   * Draws a scene: {model, axis, from, to, rows, pinned, head, scroll, selected, matches}.
   * rows and pinned are rows of {y, height, lane or groups}; head is the height above rows.
   */
  paint(scene) {
    const { ctx, colors } = this;
    this.scene = scene;
    this.scale = this.width / (scene.to - scene.from);
    ctx.fillStyle = colors.back;
    ctx.fillRect(0, 0, this.width, this.height);
    const bottom = scene.scroll + this.height - scene.head;
    this.visible = scene.rows.filter((row) => row.y + row.height >= scene.scroll && row.y <= bottom);
    const ticks = scene.axis.ticks(scene.from, scene.to, 115 / this.scale);
    this.paintGround(ticks);
    for (const row of this.visible) this.paintRow(row, row.y - scene.scroll + scene.head);
    this.paintMarkers();
    this.paintHead(ticks);
    if (scene.selected) this.paintLinks(scene.selected);
  }

  x(u) { return (u - this.scene.from) * this.scale; }

  /** Where an event is on the canvas: its place may be outside of what can be seen. */
  y(event) {
    const { rows, pinned, head, scroll } = this.scene;
    const own = (row) => row.lane === event.lane;
    const row = pinned.find(own);
    if (row) return row.y + row.height / 2;
    const found = rows.find(own) || rows.find((r) => r.groups && r.groups.includes(event.lane.group));
    if (!found) return -1000;
    const inside = found.lane ? lanePadding + event.item.track * trackHeight + trackHeight / 2 : found.height / 2;
    return found.y - scroll + head + inside;
  }

  paintGround(ticks) {
    const { ctx, colors, scene } = this;
    for (const row of this.visible) {
      const y = row.y - scene.scroll + scene.head;
      ctx.fillStyle = row.lane ? (row.odd ? colors.stripe : colors.back) : colors.group;
      ctx.fillRect(0, y, this.width, row.height);
    }
    ctx.fillStyle = this.waitHatch;
    for (const [from, to] of scene.axis.waits(scene.from, scene.to)) ctx.fillRect(this.x(from), scene.head, this.x(to) - this.x(from), this.height);
    this.paintStrips(scene.head, this.height);
    ctx.fillStyle = colors.line;
    for (const [u] of ticks) ctx.fillRect(Math.round(this.x(u)), axisHeight - 6, 1, this.height);
  }

  /** What is folded, as strips from one height to another. */
  paintStrips(top, bottom) {
    const { ctx, colors, scene } = this;
    for (const { from, to } of scene.axis.strips) {
      const x = Math.round(this.x(from)), width = Math.round(this.x(to)) - x;
      ctx.fillStyle = colors.group;
      ctx.fillRect(x, top, width, bottom - top);
      ctx.fillStyle = colors.muted;
      for (const edge of [x, x + width - 1]) ctx.fillRect(edge, top, 1, bottom - top);
    }
  }

  paintRow(row, y) {
    const { ctx } = this;
    if (row.lane) {
      row.lane.tracks.forEach((track, i) => this.paintTrack(track, y + lanePadding + i * trackHeight));
    } else if (row.groups && !row.groups[0].open) {
      const height = row.height / row.groups.length;
      row.groups.forEach((group, i) => this.paintStrip(group, y + i * height, height));
    }
    ctx.globalAlpha = 1;
  }

  /** The events of a folded group, as ticks. */
  paintStrip(group, y, height) {
    const { ctx, colors, scene } = this;
    const events = group.events;
    let next = -1;
    for (let i = lowerBound(events, (e) => e.u >= scene.from); i < events.length && events[i].u <= scene.to; i++) {
      const e = events[i], x = this.x(e.u), hidden = scene.matches ? !scene.matches.has(e) : isFolded(e);
      if (hidden || (x < next && e.tone !== "bad")) continue;
      const bad = e.tone === "bad";
      ctx.fillStyle = bad ? colors.bad : colors.muted;
      const half = bad ? height / 2 - 1 : height / 5;
      ctx.fillRect(x - 0.75, y + height / 2 - half, 1.5, 2 * half);
      next = x + 1.5;
    }
  }

  paintTrack(track, y) {
    const { ctx, scene } = this;
    const margin = 8 / this.scale;
    let last = -Infinity; // where the last item ends
    for (let i = lowerBound(track, (item) => item.b >= scene.from - margin); i < track.length; i++) {
      const item = track[i];
      if (item.a > scene.to + margin) break;
      if (isAway(item, scene.matches)) continue;
      const a = this.x(item.a), b = this.x(item.b);
      if (b < last + 1 && item.main.tone !== "bad") continue;
      const room = i + 1 < track.length ? this.x(track[i + 1].a) : Infinity;
      ctx.globalAlpha = this.shown(item) ? 1 : 0.2;
      if (item.bar) this.paintBar(item, a, b, y, room);
      else this.paintMark(item, b, y, room, b - last < 8);
      last = Math.max(last, b);
    }
  }

  shown(item) {
    const { matches } = this.scene;
    return !matches || item.main.lane.group.script || matches.has(item.main) || (item.from && matches.has(item.from)) || matches.has(item.to);
  }

  paintBar(item, a, b, y, room) {
    const { ctx, colors } = this;
    const tone = this.tone(item.main), height = trackHeight - 3;
    const left = Math.max(a, -4), right = Math.min(Math.max(b, a + 3), this.width + 4), width = right - left;
    if (width < 6) {
      const more = tone === "bad" ? 3 : 0; // as there is no room for a sign
      ctx.fillStyle = colors[tone];
      ctx.fillRect(left, y + 1 - more, width, height + 2 * more);
    } else {
      this.paintBox(item, tone, left, y + 1, width, height);
    }
    if (this.isSelected(item)) this.outline(left - 2, y - 1, width + 4, height + 4);
    const from = Math.max(left, 0) + textInset, inside = Math.min(right, this.width) - textInset - from;
    const outside = Math.min(room, this.width) - right - 10;
    if (Math.max(inside, outside) < 28) {
      if (tone === "bad" && width >= 12) this.paintShape("bad", tone, (left + right) / 2, y + trackHeight / 2);
      return;
    }
    const text = this.barText(item, tone);
    if (inside >= Math.min(this.measure(text), outside)) this.paintText(text, from, y, inside, tone === "waiting");
    else this.paintText(text, right + 4, y, outside);
  }

  paintBox(item, tone, x, y, width, height) {
    const { ctx, colors } = this;
    const endless = item.open && item.main.kind !== "check" && item.main.kind !== "note";
    ctx.fillStyle = colors[`${tone}-fill`];
    ctx.fillRect(x, y, width, height);
    if (tone === "waiting") {
      ctx.fillStyle = this.hatch;
      ctx.fillRect(x, y, width, height);
    }
    ctx.strokeStyle = colors[tone];
    ctx.lineWidth = tone === "bad" ? 2 : 1;
    if (endless) ctx.setLineDash([4, 3]);
    ctx.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    if (endless) ctx.setLineDash([]);
  }

  barText(item, tone) {
    const text = (tone === "bad" ? "✗ " : "") + item.main.label;
    if (item.main.kind === "note" || item.open) return text;
    return joined(text, spanOf(item));
  }

  paintMark(item, x, y, room, dense) {
    const { ctx, colors } = this;
    const e = item.main, tone = this.tone(e), middle = y + trackHeight / 2;
    if (dense || (room - x < 5 && tone !== "bad")) {
      ctx.fillStyle = colors[tone];
      const inset = tone === "bad" ? 0 : 4;
      ctx.fillRect(x - 1, y + inset, 2, trackHeight - 2 * inset);
    } else {
      this.paintShape(tone === "bad" ? "bad" : e.kind, tone, x, middle);
      const space = Math.min(room, this.width + 8) - x - 20;
      if (space > 26) this.paintText(e.label, x + 10, y, space);
    }
    if (this.isSelected(item)) this.outline(x - 8, y, 16, trackHeight);
  }

  paintShape(shape, tone, x, y) {
    const { ctx, colors } = this;
    ctx.translate(x, y);
    ctx.lineWidth = 1.5;
    ctx.strokeStyle = colors[tone];
    ctx.fillStyle = tone === "waiting" ? colors.back : colors[tone];
    ctx.fill(this.paths[shape]);
    if (tone === "waiting") ctx.stroke(this.paths[shape]);
    ctx.translate(-x, -y);
  }

  /** Writes as much of a text as there is room for; on ground, it clears what is below. */
  paintText(text, x, y, room, ground = false) {
    const { ctx, colors } = this;
    const short = this.fit(text, room);
    if (!short) return;
    if (ground) {
      ctx.fillStyle = colors["waiting-fill"];
      ctx.fillRect(x - 2, y + 3, Math.min(this.measure(short), room) + 4, trackHeight - 7);
    }
    ctx.fillStyle = colors.text;
    ctx.fillText(short, x, y + trackHeight / 2);
  }

  fit(text, room) {
    const width = this.measure(text);
    if (width <= room) return text;
    let n = Math.floor((text.length * room) / width); // about right, as letters differ in width
    while (n > 2 && this.measure(text.slice(0, n) + "…") > room) n--;
    return n < 3 ? "" : text.slice(0, n) + "…";
  }

  measure(text) { return this.ruler.measure(text); }

  tone(event) { return event.run.failed && event.run.failed.event === event.index ? "bad" : event.tone; }

  isSelected(item) { return this.scene.selected && this.scene.selected.item === item; }

  outline(x, y, width, height) {
    const { ctx, colors } = this;
    ctx.strokeStyle = colors.select;
    ctx.lineWidth = 2.5;
    ctx.strokeRect(x, y, width, height);
  }

  /** Lines across the lanes: the selected event, where a run failed, and where runs part. */
  paintMarkers() {
    const { scene, colors } = this;
    for (const run of scene.model.runs) {
      if (run.failed) this.paintLine(run.events[run.failed.event], colors.bad, [], "✗ failed here");
      if (run.divergence >= 0) this.paintLine(run.events[run.divergence], colors.select, [6, 4], `≠ ${run.name} diverges here`);
    }
    if (scene.selected) this.paintLine(scene.selected, colors.select, [2, 3], "");
  }

  /** A line down all lanes of an event's run, with a flag at its top. */
  paintLine(event, color, dash, text) {
    const { ctx, scene } = this;
    const x = event ? Math.round(this.x(event.u)) + 0.5 : -2;
    if (x < -1 || x > this.width + 1) return;
    ctx.strokeStyle = color;
    ctx.lineWidth = 1.5;
    ctx.setLineDash(dash);
    ctx.beginPath();
    for (const row of this.visible) {
      if (row.run && row.run !== event.run) continue;
      const y = row.y - scene.scroll + scene.head;
      ctx.moveTo(x, y);
      ctx.lineTo(x, y + row.height);
    }
    ctx.stroke();
    ctx.setLineDash([]);
    const top = this.visible.find((row) => (!row.run || row.run === event.run) && row.y >= scene.scroll);
    if (text && top) this.paintFlag(text, x, top.y - scene.scroll + scene.head + 2 + event.run.index * (trackHeight + 2), color);
  }

  paintFlag(text, x, y, color) {
    const { ctx, colors } = this;
    const width = this.measure(text) + 10, left = x + width > this.width ? x - width : x;
    ctx.fillStyle = color;
    ctx.fillRect(left, y, width, trackHeight);
    ctx.fillStyle = colors.back;
    ctx.fillText(text, left + 5, y + trackHeight / 2);
  }

  /** The axis and the script, which stay above the lanes. */
  paintHead(ticks) {
    const { ctx, colors, scene } = this;
    ctx.fillStyle = colors.back;
    ctx.fillRect(0, 0, this.width, scene.head);
    ctx.fillStyle = colors.muted;
    const taken = [...this.waitLabels(), ...this.foldLabels()];
    for (const [u, text] of ticks) {
      const x = this.x(u), end = x + this.measure(text) + 6;
      ctx.fillRect(Math.round(x), axisHeight - 8, 1, 8);
      if (end < this.width && taken.every(([from, to]) => end < from || x > to)) ctx.fillText(text, x + 3, 15);
    }
    ctx.fillStyle = colors.text;
    for (const [from, , text] of taken) ctx.fillText(text, from, 15);
    for (const row of scene.pinned) {
      ctx.fillStyle = row.odd ? colors.stripe : colors.back;
      ctx.fillRect(0, row.y, this.width, row.height);
      this.paintStrips(row.y, row.y + row.height);
      this.paintRow(row, row.y);
    }
    ctx.fillStyle = colors.line;
    ctx.fillRect(0, 0, this.width, 4);
    const all = scene.axis.length || 1;
    ctx.fillStyle = colors.muted;
    ctx.fillRect((scene.from / all) * this.width, 0, Math.max(6, ((scene.to - scene.from) / all) * this.width), 4);
    ctx.fillRect(0, scene.head - 1, this.width, 1);
  }

  /** What the axis says of the waits that are folded, where there is room: [from, to, text]. */
  waitLabels() {
    const labels = [];
    for (const [from, to, wait] of this.scene.axis.waits(this.scene.from, this.scene.to)) {
      const a = this.x(from), b = this.x(to), text = took(wait), width = this.measure(text);
      if (b - a > width + 6) labels.push([(a + b - width) / 2, (a + b + width) / 2, text]);
    }
    return labels;
  }

  /** What the axis says of strips and of folds that are open, where there is room. */
  foldLabels() {
    const { axis, model } = this.scene, labels = [];
    const add = (from, to, sign, name) => {
      const [a, b] = [Math.max(0, this.x(from)), Math.min(this.width, this.x(to))];
      const [what] = name.split(" "); // without its server
      const text = [`${sign} ${name}`, `${sign} ${what}`, sign].find((t) => this.measure(t) <= b - a + 2);
      if (text) labels.push([(a + b - this.measure(text)) / 2, (a + b + this.measure(text)) / 2, text]);
    };
    for (const strip of axis.strips) add(strip.from, strip.to, "▸", strip.events[0].fold.name);
    for (const fold of model.runs.flatMap((run) => run.folds).filter((f) => f.open)) {
      const [from, to] = rangeOf(fold);
      this.paintBand(from, to);
      add(from, to, "▾", fold.name);
    }
    return labels;
  }

  /** Marks on the axis what can be folded. */
  paintBand(from, to) {
    this.ctx.fillStyle = this.colors.group;
    this.ctx.fillRect(this.x(from), 4, this.x(to) - this.x(from), axisHeight - 4);
    this.ctx.fillStyle = this.colors.muted;
  }

  /** Arrows from what led to an event, and dashed ones to what came of it. */
  paintLinks(event) {
    const { ctx, scene } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, axisHeight, this.width, this.height);
    ctx.clip();
    for (const [cause, effect] of ancestry(event, 40)) this.paintArrow(cause, effect, []);
    for (const { event: effect } of event.effects.slice(0, 60)) this.paintArrow(event, effect, [5, 3]);
    ctx.restore();
  }

  paintArrow(from, to, dash) {
    if (from.item === to.item) return; // the ends of one bar
    const { ctx, colors } = this;
    const [x0, y0, x1, y1] = [this.x(from.u), this.y(from), this.x(to.u), this.y(to)];
    if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > this.width || Math.max(y0, y1) < 0 || Math.min(y0, y1) > this.height) return;
    const bend = Math.min(40, Math.max(12, Math.abs(x1 - x0) / 2));
    ctx.strokeStyle = ctx.fillStyle = colors.select;
    ctx.lineWidth = 1.5;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7, y1 - 4);
    ctx.lineTo(x1 - 7, y1 + 4);
    ctx.fill();
  }
}
