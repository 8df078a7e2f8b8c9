// Logs panel: /rosout, by level, node and text.

import { empty, formatTime, h, setOptions, setText } from "./dom.js";

const LINES_MAX = 5000;
const SHOWN_MAX = 500;
const LEVELS = [[10, "debug"], [20, "info"], [30, "warn"], [40, "error"], [50, "fatal"]];
const levelName = (level) => [...LEVELS].reverse().find(([value]) => level >= value)?.[1] ?? "debug";

export function logsPanel({ connection }) {
  let lines = [];
  const seen = new Set();
  let end;
  let pending;

  const level = h("select", { "aria-label": "Least level", onchange: () => draw() });
  setOptions(level, LEVELS.map(([value, name]) => [String(value), name]), "20");
  const node = h("select", { "aria-label": "Node", onchange: () => draw() });
  setOptions(node, [["", "all nodes"]]);
  const words = h("input", { type: "search", placeholder: "Filter text", "aria-label": "Filter text", oninput: () => draw() });
  const count = h("span", { class: "dim" });
  const problem = h("p", { class: "problem", hidden: true });
  const list = h("ol", { class: "log scroll", role: "log", tabindex: "0", "aria-label": "Log lines" });
  const hint = empty("No log line yet. Nodes publish them on /rosout.");
  const element = h("div", { class: "panel" },
    h("div", { class: "tools" }, level, node, words, h("button", { onclick: () => { lines = []; draw(); } }, "clear"), count),
    problem, hint, list);

  function receive({ value, error }) {
    problem.hidden = !error;
    setText(problem, error ?? "");
    if (!value) return;
    // Late joiners get the last lines again when the panel is opened again.
    const key = `${value.stamp.sec}.${value.stamp.nanosec} ${value.name} ${value.msg}`;
    if (seen.has(key)) return;
    seen.add(key);
    lines.push(value);
    if (lines.length > LINES_MAX) lines = lines.slice(-LINES_MAX * 0.9);
    if (seen.size > LINES_MAX * 2) seen.clear();
    pending ??= requestAnimationFrame(draw);
  }

  function draw() {
    cancelAnimationFrame(pending);
    pending = undefined;
    const names = [...new Set(lines.map(({ name }) => name))].sort();
    setOptions(node, [["", "all nodes"], ...names]);
    const text = words.value.toLowerCase();
    const matching = lines.filter((line) => line.level >= Number(level.value)
      && (!node.value || line.name === node.value)
      && (!text || `${line.name} ${line.msg}`.toLowerCase().includes(text)));
    setText(count, `${matching.length} of ${lines.length}`);
    hint.hidden = lines.length > 0;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
    list.replaceChildren(...matching.slice(-SHOWN_MAX).map((line) => {
      const name = levelName(line.level);
      const place = line.file ? `${line.file}:${line.line} ${line.function}` : "";
      return h("li", { class: name, title: place },
        h("time", {}, formatTime(line.stamp.sec + line.stamp.nanosec / 1e9)), h("b", {}, name),
        h("span", { class: "who" }, line.name), h("span", { class: "text" }, line.msg));
    }));
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }

  return {
    id: "logs", title: "Logs", element,
    show() {
      end ??= connection.subscribe("/rosout", "rcl_interfaces/msg/Log", receive);
      draw();
    },
    hide() {
      end?.();
      end = undefined;
    },
  };
}
