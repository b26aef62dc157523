// Listens to keys, buttons and pointers, and starts the page.

const keys = {
  ArrowLeft: (e) => (e.shiftKey ? pan(-painter.width / 8) : step(-1)),
  ArrowRight: (e) => (e.shiftKey ? pan(painter.width / 8) : step(1)),
  ArrowUp: () => change(-1),
  ArrowDown: () => change(1),
  Home: () => state.selected && select(unfolded(state.selected.lane)[0]),
  End: () => state.selected && select(unfolded(state.selected.lane).at(-1)),
  Enter: () => {
    openDetails();
    if (state.selected) panel.focus();
  },
};

const anywhere = {
  "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": fit,
  "/": () => byId("query").focus(), n: () => jump(1), N: () => jump(-1),
  f: goToFailure, p: goToParting, b: changeFolds, t: changeAxis, s: changePairing, d: changeTheme, "?": () => showHelp(byId("keys")),
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
  previous: () => jump(-1), in: () => zoom(1.5), out: () => zoom(1 / 1.5), fit, boot: changeFolds, axis: changeAxis, pair: changePairing, theme: changeTheme, help: () => showHelp(byId("keys")),
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
  if (!event && foldAt(e.offsetX, e.offsetY)) return toggleFoldAt(e.offsetX, e.offsetY);
  select(event);
  if (event) openDetails();
});
canvas.addEventListener("pointercancel", (e) => pointers.delete(e.pointerId));
canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; });

function hover(e) {
  const event = eventAt(e.offsetX, e.offsetY), at = event ? null : foldAt(e.offsetX, e.offsetY), tip = byId("tip");
  tip.hidden = !event && !at;
  canvas.style.cursor = event || at ? "pointer" : "";
  if (event) tip.replaceChildren(el("b", null, event.label || event.kind), joined(clock(event.time, 6), spanOf(event.item), event.lane.name));
  else if (at) tip.replaceChildren(...aboutFold(at));
  else return;
  tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 10 : e.clientY + 18}px`;
}

/** What the tip says of what can be opened or folded. */
function aboutFold({ strip, fold }) {
  if (fold) return [el("b", null, fold.name), "click to fold it"];
  const { events } = strip, names = [...new Set(events.map((e) => e.fold.name))].join(", ");
  return [el("b", null, names), joined(`${events.length} events`, took(events.at(-1).time - events[0].time), "click to open")];
}

function resize() {
  const width = scroller.clientWidth - labels.offsetWidth, height = scroller.clientHeight;
  if (width === painter.width && height === painter.height) return;
  const all = state.to - state.from >= state.axis.length, scale = painter.width / (state.to - state.from);
  const narrower = width !== painter.width;
  painter.resize(Math.max(50, width), height);
  if (narrower) layOut(); // names have another width now
  if (all || !scale) fit();
  else look(state.from, state.from + painter.width / scale);
}

new ResizeObserver(resize).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
window.addEventListener("beforeprint", () => {
  fillPrint(byId("print"), model, (e) => isShown(e) && (!state.matches || state.matches.has(e)));
});
window.addEventListener("afterprint", () => byId("print").replaceChildren());

// Start: everything, or what went wrong.

byId("pair").hidden = model.runs.length < 2;
byId("boot").hidden = !folds().length;
sayFolds();
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
