// Diagnostics panel: the newest status of each component on /diagnostics, the worst first.

import { empty, h, reconcile, setText, Ticker } from "./dom.js";

const LEVELS = ["ok", "warn", "error", "stale"];
const STALE_SECONDS = 10;
const STATUSES_MAX = 2000;

export function diagnosticsPanel({ connection }) {
  const statuses = new Map();
  const rows = new Map();
  let end;
  const count = h("span", { class: "dim" });
  const problem = h("p", { class: "problem", hidden: true });
  const hint = empty("Nothing on /diagnostics yet.");
  const list = h("ul", { class: "diagnostics scroll" });
  const element = h("div", { class: "panel" }, h("div", { class: "tools" }, count), problem, hint, list);

  function receive({ value, error }) {
    problem.hidden = !error;
    setText(problem, error ?? "");
    for (const status of value?.status ?? []) {
      if (!statuses.has(status.name) && statuses.size >= STATUSES_MAX) continue;
      statuses.set(status.name, { ...status, at: performance.now() });
    }
  }

  const levelOf = ({ level, at }) => (performance.now() - at > STALE_SECONDS * 1000 ? 3 : Math.min(3, level));

  function draw() {
    const items = [...statuses.values()].sort((a, b) => levelOf(b) - levelOf(a) || (a.name < b.name ? -1 : 1));
    hint.hidden = items.length > 0;
    const counts = LEVELS.map((name, level) => [items.filter((item) => levelOf(item) === level).length, name]);
    setText(count, counts.filter(([number]) => number > 0).map(([number, name]) => `${number} ${name}`).join(", "));
    reconcile(list, rows, items, ({ name }) => name, () => {
      const level = h("b");
      const name = h("span", { class: "name" });
      const message = h("span", { class: "text" });
      const values = h("dl");
      const row = h("li", {}, h("details", {}, h("summary", {}, level, name, message), values));
      return { element: row, update(status) {
        row.className = LEVELS[levelOf(status)];
        setText(level, LEVELS[levelOf(status)]);
        setText(name, status.name);
        setText(message, status.message);
        const pairs = [["hardware", status.hardware_id], ...status.values.map(({ key, value }) => [key, value])];
        if (row.firstElementChild.open) values.replaceChildren(...pairs.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
      } };
    });
  }

  const ticker = new Ticker(500, draw);
  return {
    id: "diagnostics", title: "Diagnostics", element,
    show() {
      end ??= connection.subscribe("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", receive);
      ticker.start();
    },
    hide() {
      end?.();
      end = undefined;
      ticker.stop();
    },
  };
}
