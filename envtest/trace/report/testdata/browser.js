// As much of a browser as the page's program needs to run in node: elements that keep their
// children and call those who listen, and a canvas on which nothing is seen.

class FakeElement {
  constructor(id) {
    this.id = id;
    [this.style, this.dataset, this.attributes, this.children, this.listeners] = [{}, {}, {}, [], {}];
    [this.clientWidth, this.clientHeight, this.offsetWidth, this.offsetHeight] = { lanes: [1200, 800, 1200, 800], rows: [240, 800, 240, 800] }[id] || [100, 20, 100, 20];
    [this.scrollTop, this.value, this.textContent, this.hidden] = [0, "", "", id === "details"];
  }
  append(...children) { this.replaceChildren(...this.children, ...children); }
  replaceChildren(...children) {
    for (const child of this.children) if (child instanceof FakeElement) child.parent = null;
    this.children = children;
    for (const child of children) if (child instanceof FakeElement) child.parent = this;
  }
  insertBefore(child, before) {
    const at = before ? this.children.indexOf(before) : this.children.length;
    this.replaceChildren(...this.children.slice(0, at), child, ...this.children.slice(at));
  }
  remove() { this.parent?.replaceChildren(...this.parent.children.filter((child) => child !== this)); }
  get isConnected() { return !!this.parent; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(name, listener) { (this.listeners[name] ||= []).push(listener); }
  dispatch(name, event) { for (const listener of this.listeners[name] || []) listener({ preventDefault() {}, target: this, ...event }); }
  getContext() { return nothingSeen; }
  focus() {}
  setPointerCapture() {}
}

const nothingSeen = new Proxy({ measureText: (text) => ({ width: 6.6 * text.length }) }, {
  get: (known, name) => known[name] ?? (() => undefined),
});

const fakeElements = new Map();
const document = new FakeElement("document");
document.body = new FakeElement("body");
document.documentElement = new FakeElement("html");
document.createElement = document.createElementNS = (tag) => new FakeElement(tag);
document.getElementById = (id) => {
  if (!fakeElements.has(id)) fakeElements.set(id, new FakeElement(id));
  return fakeElements.get(id);
};
const window = new FakeElement("window");
const [innerWidth, innerHeight] = [1200, 800];
const Path2D = class {};
const OffscreenCanvas = FakeElement;
const ResizeObserver = class { observe() {} };
const matchMedia = () => new FakeElement("media");
const getComputedStyle = (element) => element.style;
const framesAsked = [];
const requestAnimationFrame = (paint) => framesAsked.push(paint);

/** Paints what was asked for. */
function showFrame() { for (const paint of framesAsked.splice(0)) paint(); }
