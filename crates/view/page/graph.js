// Graph panel: nodes and topics, what flows between them, and pairs that do not match.

import { empty, formatRate, h, setText, Ticker } from "./dom.js";
import { layout } from "./graph_layout.js";
import { mismatchText } from "./topics.js";

const HOUSEKEEPING = /^\/(parameter_events|rosout|tf|tf_static|diagnostics)$|\/_/;
const VERTICES_MAX = 600;
const [COLUMN, ROW, WIDTH, HEIGHT] = [218, 34, 168, 22];
const SHRINK_MIN = 0.8;
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const shorten = (text, length) => (text.length > length ? `…${text.slice(1 - length)}` : text);

export function graphPanel(app) {
  const { connection } = app;
  let end;
  let drawn = "";
  const filter = h("input", { type: "search", placeholder: "Filter nodes and topics", "aria-label": "Filter nodes and topics", oninput: () => draw() });
  const all = h("input", { type: "checkbox", onchange: () => draw() });
  const count = h("span", { class: "dim" });
  const problems = h("ul", { class: "mismatches" });
  const canvas = h("div", { class: "graph scroll", tabindex: "0", "aria-label": "Graph of nodes and topics" });
  const element = h("div", { class: "panel" }, h("div", { class: "tools" }, filter, h("label", {}, all, " all"), count), problems, canvas);

  /** Edges as texts: nodes have the prefix `n`, topics `t`. */
  function edges() {
    const { publishers, subscribers } = connection.graph;
    const pairs = [];
    const words = filter.value.toLowerCase();
    const fits = (node, topic) => (all.checked || !HOUSEKEEPING.test(topic)) && `${node} ${topic}`.toLowerCase().includes(words);
    for (const [topic, nodes] of publishers) for (const node of nodes) if (fits(node, topic)) pairs.push([`n${node}`, `t${topic}`]);
    for (const [topic, nodes] of subscribers) for (const node of nodes) if (fits(node, topic)) pairs.push([`t${topic}`, `n${node}`]);
    return pairs;
  }

  /** What `pteros.stats` says about endpoints, for servers that send no graph. */
  function edgesOfStats() {
    const { publishers, subscribers } = connection.graph;
    if (publishers.size + subscribers.size > 0) return;
    for (const { name, publishers: from, subscribers: to } of connection.stats.topics) {
      publishers.set(name, [...new Set(from.map(({ node }) => node))]);
      subscribers.set(name, [...new Set(to.map(({ node }) => node))]);
    }
  }

  function draw() {
    edgesOfStats();
    const pairs = edges();
    const mismatches = connection.stats.topics.flatMap(({ name, mismatches: found }) => (found ?? []).map((mismatch) => ({ topic: name, ...mismatch })));
    const bad = new Set(mismatches.flatMap(({ topic, publisher, subscriber }) => [`n${publisher}\nt${topic}`, `t${topic}\nn${subscriber}`]));
    const state = JSON.stringify([pairs, [...bad]]);
    if (state !== drawn) {
      drawn = state;
      drawGraph(pairs, bad);
      problems.replaceChildren(...mismatches.map((mismatch) => h("li", {}, h("b", {}, mismatch.topic), ` ${mismatchText(mismatch)}`)));
    }
    const rates = new Map(connection.stats.topics.map(({ name, rate }) => [name, rate]));
    for (const label of canvas.querySelectorAll("[data-topic]")) {
      const rate = rates.get(label.dataset.topic);
      setText(label, rate == null ? "" : `${formatRate(rate)} Hz`);
    }
  }

  function drawGraph(pairs, bad) {
    const keys = [...new Set(pairs.flat())].sort();
    const nodes = keys.filter((key) => key.startsWith("n")).length;
    setText(count, `${nodes} nodes, ${keys.length - nodes} topics`);
    if (keys.length === 0) return canvas.replaceChildren(empty("No node publishes or subscribes yet."));
    if (keys.length > VERTICES_MAX) return canvas.replaceChildren(empty(`${keys.length} nodes and topics are too many to draw. Filter them.`));
    const { places, layers, rows } = layout(keys, pairs);
    const spot = (key) => {
      const { layer, row } = places.get(key);
      return [12 + layer * COLUMN, 12 + row * ROW];
    };
    const [width, height] = [layers * COLUMN - COLUMN + WIDTH + 24, rows * ROW + 16];
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const lines = pairs.map(([from, to]) => {
      const [x, y] = spot(from);
      const [toX, toY] = spot(to);
      const isBack = toX <= x;
      const [ax, ay, bx, by] = [isBack ? x : x + WIDTH, y + HEIGHT / 2, isBack ? toX + WIDTH : toX, toY + HEIGHT / 2];
      const bend = isBack ? -40 : Math.max(24, (bx - ax) / 2);
      const isBad = bad.has(`${from}\n${to}`);
      const line = svg("path", { d: `M${ax},${ay} C${ax + bend},${ay} ${bx - bend},${by} ${bx},${by}`, class: `edge${isBad ? " bad" : ""}${isBack ? " back" : ""}` });
      drawing.append(line);
      return { line, from, to };
    });
    for (const key of keys) drawing.append(vertex(key, spot(key), lines));
    // A graph wider than the panel shrinks a little before it scrolls.
    drawing.style.width = `max(${Math.round(width * SHRINK_MIN)}px, min(100%, ${width}px))`;
    drawing.style.height = "auto";
    canvas.replaceChildren(drawing);
  }

  function vertex(key, [x, y], lines) {
    const isTopic = key.startsWith("t");
    const name = key.slice(1);
    const group = svg("g", { class: isTopic ? "topic" : "node", transform: `translate(${x},${y})`, tabindex: isTopic ? "0" : "-1" },
      svg("title", {}, name),
      svg("rect", { width: WIDTH, height: HEIGHT, rx: isTopic ? 11 : 3 }),
      svg("text", { x: 9, y: HEIGHT / 2 + 4 }, shorten(name, isTopic ? 17 : 24)));
    if (isTopic) {
      const rate = svg("text", { x: WIDTH - 9, y: HEIGHT / 2 + 4, class: "rate" });
      rate.dataset.topic = name;
      group.append(rate);
      group.addEventListener("click", () => app.openTopic(name));
      group.addEventListener("keydown", ({ key: pressed }) => pressed === "Enter" && app.openTopic(name));
    }
    const mark = (on) => () => {
      for (const { line, from, to } of lines) line.classList.toggle("near", on && (from === key || to === key));
    };
    group.addEventListener("pointerenter", mark(true));
    group.addEventListener("pointerleave", mark(false));
    return group;
  }

  const ticker = new Ticker(1000, draw);
  return {
    id: "graph", title: "Graph", element,
    show() {
      end ??= connection.watchGraph();
      ticker.start();
    },
    hide() {
      end?.();
      end = undefined;
      ticker.stop();
    },
  };
}
