"use strict";
// The page can be read without this: it only hides cases, and changes the theme.
(() => {
  const byId = (id) => document.getElementById(id);
  const [filter, query, system, state, shown, none] = ["filter", "query", "system", "state", "shown", "none"].map(byId);
  const systems = [...document.querySelectorAll("details.system")];
  const cases = systems.flatMap((of) => [...of.querySelectorAll(".case")].map((element) => ({
    element, system: of.id, states: element.dataset.states.split(" "), text: element.textContent.toLowerCase(),
  })));
  const openAtFirst = new Set(systems.filter((of) => of.open));

  function apply() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const c of cases) {
      const fits = (!system.value || c.system === system.value) &&
        (!state.value || c.states.includes(state.value)) && words.every((word) => c.text.includes(word));
      c.element.hidden = !fits;
      count += fits ? 1 : 0;
    }
    const filtered = Boolean(words.length || system.value || state.value);
    for (const of of systems) {
      of.hidden = !of.querySelector(".case:not([hidden])");
      of.open = filtered || openAtFirst.has(of);
    }
    shown.value = filtered ? `${count} of ${cases.length} cases` : "";
    none.hidden = count > 0;
  }

  // A link to a system, from the table, opens it.
  function follow() {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details.system")) {
      target.hidden = false;
      target.open = true;
    }
  }

  const themes = ["auto", "light", "dark"];
  byId("theme").addEventListener("click", (event) => {
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    event.target.textContent = `Theme: ${next}`;
  });

  filter.hidden = false;
  byId("theme").hidden = false;
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", follow);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      query.focus();
    }
  });
  apply();
  follow();
})();
