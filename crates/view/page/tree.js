// Live tree of a message: nested, open or closed by the user, numbers that can be plotted by click.
//
// Only open nodes have rows, and a long list shows its first elements, so that a point cloud costs
// no more than a short message.

import { formatNumber, h, setText } from "./dom.js";

const ELEMENTS_SHOWN = 50;
const TEXT_SHOWN = 300;

const isList = (value) => Array.isArray(value) || ArrayBuffer.isView(value);
const isNode = (value) => value !== null && typeof value === "object";

function summary(value) {
  if (isList(value)) {
    const first = Array.from(value.slice(0, 6), (item) => (isNode(item) ? "…" : formatNumber(item)));
    return `[${value.length}]  ${first.join(", ")}${value.length > 6 ? ", …" : ""}`;
  }
  const entries = Object.entries(value);
  if (entries.length === 2 && "sec" in value && "nanosec" in value) {
    return `${value.sec}.${String(value.nanosec).padStart(9, "0")}`;
  }
  const short = entries.filter(([, inner]) => !isNode(inner)).slice(0, 4);
  return short.map(([key, inner]) => `${key} ${leaf(inner)}`).join("  ");
}

function leaf(value) {
  if (typeof value === "string") {
    const text = value.length > TEXT_SHOWN ? `${value.slice(0, TEXT_SHOWN)}… (${value.length} characters)` : value;
    return JSON.stringify(text);
  }
  return formatNumber(value);
}

/** A tree whose root is a message. `onPlot(path)` is called for a number's button. */
export class MessageTree {
  constructor(onPlot) {
    this.onPlot = onPlot;
    this.open = new Set([""]);
    this.nodes = new Map();
    this.element = h("div", { class: "tree", role: "tree" });
  }

  clear(...children) {
    this.nodes.clear();
    this.element.replaceChildren(...children);
  }

  /** Shows a value in place of the one before. */
  update(value) {
    this.value = value;
    const seen = new Set();
    this.fill(this.element, "", value, 0, seen);
    for (const [path, node] of this.nodes) {
      if (seen.has(path)) continue;
      node.row.remove();
      node.children?.remove();
      this.nodes.delete(path);
    }
  }

  fill(container, path, value, depth, seen) {
    const keys = isList(value)
      ? Array.from({ length: Math.min(value.length, ELEMENTS_SHOWN) }, (_, i) => i)
      : Object.keys(value);
    for (const key of keys) {
      const inner = isList(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key;
      this.node(container, inner, String(key), value[key], depth, seen);
    }
    if (isList(value) && value.length > ELEMENTS_SHOWN) {
      this.node(container, `${path}[…]`, "…", `${value.length - ELEMENTS_SHOWN} more`, depth, seen, true);
    }
  }

  node(container, path, name, value, depth, seen, isRest = false) {
    seen.add(path);
    let node = this.nodes.get(path);
    const kind = isRest ? "rest" : isNode(value) ? "node" : typeof value;
    if (node && node.kind !== kind) {
      node.row.remove();
      node.children?.remove();
      node = undefined;
    }
    node ??= this.make(container, path, name, kind, depth);
    const isOpen = this.open.has(path);
    setText(node.text, isRest ? value : kind === "node" ? (isOpen && !isList(value) ? "" : summary(value)) : leaf(value));
    if (kind !== "node") return;
    node.row.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      node.children?.remove();
      node.children = undefined;
      return;
    }
    if (!node.children) {
      node.children = h("div", { role: "group" });
      node.row.after(node.children);
    }
    this.fill(node.children, path, value, depth + 1, seen);
  }

  make(container, path, name, kind, depth) {
    const text = h("span", { class: `value ${kind}` });
    const plots = kind === "number" || kind === "bigint" || kind === "boolean";
    const act = () => (kind === "node" ? this.toggle(path) : plots && this.onPlot?.(path));
    const row = h("div", {
      class: `row ${kind}${plots ? " plots" : ""}`,
      role: "treeitem",
      tabindex: kind === "node" || plots ? "0" : "-1",
      title: plots ? `plot ${path}` : undefined,
      onclick: act,
      onkeydown: (event) => this.key(event, path, act),
    }, h("span", { class: "key" }, name), text);
    row.style.setProperty("--depth", String(depth));
    container.append(row);
    const node = { row, text, kind };
    this.nodes.set(path, node);
    return node;
  }

  key(event, path, act) {
    const isOpen = this.open.has(path);
    if (event.key === "Enter" || event.key === " ") act();
    else if ((event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen)) this.toggle(path);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const rows = [...this.element.querySelectorAll('.row[tabindex="0"]')];
      rows[rows.indexOf(event.currentTarget) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
    } else return;
    event.preventDefault();
  }

  toggle(path) {
    if (!this.open.delete(path)) this.open.add(path);
    if (this.value) this.update(this.value);
  }
}

/** The value at a path such as `pose.position.x` or `ranges[3]`, or undefined. */
export function valueAt(value, path) {
  let at = value;
  for (const [, key, index] of path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)) {
    if (at === null || typeof at !== "object") return undefined;
    at = index !== undefined ? at[Number(index)] : Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}
