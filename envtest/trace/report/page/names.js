// Makes names fit where there is little room for them.

const fontFamily = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

/** Measures texts in a font. */
class Ruler {
  constructor(font) {
    this.ctx = new OffscreenCanvas(1, 1).getContext("2d");
    this.ctx.font = font;
    this.widths = new Map(); // of texts, in pixels
  }

  measure(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 30000) this.widths.clear();
      width = this.ctx.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }
}

/**
 * Shortens names to a width. Of each the beginning and the end stay; of those that would then
 * read alike, what tells them apart.
 */
function fitNames(names, room, ruler) {
  const middles = names.map((name) => fitMiddle(name, room, 0.35, ruler));
  const owners = new Map(); // of what is shown, the name
  return names.map((name, i) => {
    const alike = names.filter((other, j) => other !== name && middles[j] === middles[i]);
    for (const shown of cuts(name, middles[i], alike, room, ruler)) {
      if (owners.has(shown) && owners.get(shown) !== name) continue;
      owners.set(shown, name);
      return shown;
    }
    return name;
  });
}

/** Ways to show a name beside others whose middle way reads alike, the best first. */
function* cuts(name, middle, alike, room, ruler) {
  if (!alike.length) yield middle;
  else yield fitFrom(name, wordBefore(name, Math.max(...alike.map((other) => sharedLength(name, other)))), room, ruler);
  for (const share of [0.15, 0.6, 0.8]) yield fitMiddle(name, room, share, ruler);
  for (let from = 1; from < name.length; from++) {
    if (wordBefore(name, from) === from) yield fitFrom(name, from, room, ruler);
  }
}

/** As much of a name as fits, from a place on. */
function fitFrom(name, from, room, ruler) {
  const mark = from > 0 ? "…" : "";
  return longest(mark + name.slice(from), room, (n) => `${mark}${name.slice(from, from + n)}…`, ruler);
}

/**
 * As much of a name as fits, without its middle. share is how much of that is the beginning;
 * it is more where the end can begin with a word.
 */
function fitMiddle(name, room, share, ruler) {
  const cut = (n) => {
    const least = name.length - Math.ceil(n * (1 - share)), word = wordAfter(name, least);
    const end = name.slice(name.length - word > 4 ? word : least);
    return `${name.slice(0, n - end.length)}…${end}`;
  };
  return longest(name, room, cut, ruler);
}

/** The lines of a text: as many as it needs in a width. Only a word that needs more is broken. */
function wrap(text, room, ruler) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && ruler.measure(longer) <= room) lines[lines.length - 1] = longer;
    else lines.push(...pieces(word, room, ruler));
  }
  return lines;
}

/** The parts of a word that fit, each as long as it can be. */
function pieces(word, room, ruler) {
  const parts = [""];
  for (const letter of word) {
    if (parts.at(-1) && ruler.measure(parts.at(-1) + letter) > room) parts.push("");
    parts[parts.length - 1] += letter;
  }
  return parts;
}

/** A text, or the longest cut of it that fits. */
function longest(text, room, cut, ruler) {
  if (ruler.measure(text) <= room) return text;
  let [low, high] = [1, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measure(cut(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

function sharedLength(a, b) {
  let n = 0;
  while (n < a.length && a[n] === b[n]) n++;
  return n;
}

/** Where the next word begins, from a place on. */
function wordAfter(text, at) {
  while (at < text.length && /[\w.]/.test(text[at - 1])) at++;
  return at;
}

/** Where the word at a place begins. */
function wordBefore(text, at) {
  while (at > 0 && /[\w.]/.test(text[at - 1])) at--;
  return at;
}
