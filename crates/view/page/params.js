// Parameters panel: values by node, edited in place where the robot allows it.

import { empty, h, reconcile, setText, Throttle } from "./dom.js";

/** Least time between two drawings of the table. */
const DRAW_MS = 250;

/** `/node.name` as its node and name. */
function split(full) {
  const dot = full.indexOf(".", full.lastIndexOf("/"));
  return dot < 0 ? [full, ""] : [full.slice(0, dot), full.slice(dot + 1)];
}

/** The value that a text stands for, of the type of the value before. */
export function parseValue(text, before) {
  if (typeof before === "string") return text;
  if (typeof before === "boolean") {
    if (text === "true" || text === "false") return text === "true";
    throw new Error("neither true nor false");
  }
  const value = JSON.parse(text);
  if (typeof before === "number" && typeof value !== "number") throw new Error("not a number");
  if (Array.isArray(before) && !Array.isArray(value)) throw new Error("not a list");
  return value;
}

const valueText = (value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

export function paramsPanel({ connection }) {
  const rows = new Map();
  let endUpdates;
  const filter = h("input", { type: "search", placeholder: "Filter parameters", "aria-label": "Filter parameters", oninput: () => draw() });
  const count = h("span", { class: "dim" });
  const status = h("p", { class: "problem", role: "alert", hidden: true });
  const hint = empty("");
  const body = h("tbody");
  const element = h("div", { class: "panel" },
    h("div", { class: "tools" }, filter, h("button", { onclick: () => load() }, "read again"), count),
    status, hint, h("div", { class: "scroll" }, h("table", { class: "params" }, body)));

  function say(text) {
    status.hidden = !text;
    setText(status, text);
  }

  const mayEdit = () => connection.has("parameters") && String(connection.info.metadata.allow ?? "").split(",").some((word) => word.trim() === "params");

  async function load() {
    if (!connection.has("parameters")) return draw();
    // Before the values are read, so that no change in between is missed.
    if (isShown && connection.has("parametersSubscribe")) endUpdates ??= connection.watchParameters();
    try {
      await connection.getParameters();
      say("");
    } catch (error) {
      say(`The parameters cannot be read: ${error.message}`);
    }
    draw();
  }

  function draw() {
    const words = filter.value.toLowerCase();
    const items = [];
    let node;
    const all = [...connection.parameters.values()].filter(({ name }) => name.toLowerCase().includes(words)).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const parameter of all) {
      const [owner] = split(parameter.name);
      if (owner !== node) items.push({ name: `node ${owner}`, owner });
      node = owner;
      items.push(parameter);
    }
    setText(count, `${all.length} of ${connection.parameters.size}${mayEdit() ? "" : ", read-only: start pteros view with --allow params to edit"}`);
    hint.hidden = connection.parameters.size > 0;
    setText(hint, connection.has("parameters") ? "Reading…" : "The robot offers no parameters here.");
    reconcile(body, rows, items, ({ name }) => name, (item) => (item.owner ? headingRow(item) : valueRow(item)));
  }

  function headingRow({ owner }) {
    return { element: h("tr", { class: "heading" }, h("th", { colspan: "2", scope: "rowgroup" }, owner)) };
  }

  function valueRow({ name }) {
    let current;
    const input = h("input", { "aria-label": name, spellcheck: "false", onchange: () => change(), onkeydown: (event) => {
      if (event.key === "Escape") show(current);
    } });
    const problem = h("div", { class: "note bad" });

    function show(parameter) {
      input.value = valueText(parameter.value);
      input.classList.toggle("number", typeof parameter.value === "number");
      setText(problem, "");
    }

    async function change() {
      try {
        const value = parseValue(input.value, current.value);
        const answer = await connection.setParameters([{ name, value, type: current.type }]);
        const kept = answer.find((parameter) => parameter.name === name);
        if (kept && JSON.stringify(kept.value) !== JSON.stringify(value)) throw new Error(`the node keeps ${valueText(kept.value)}`);
        setText(problem, "");
      } catch (error) {
        setText(problem, `${input.value}: ${error.message}`);
        input.value = valueText(current.value);
      }
    }

    return {
      element: h("tr", {}, h("td", { title: name }, split(name)[1]), h("td", {}, input, problem)),
      update(parameter) {
        const isNew = current === undefined || JSON.stringify(current) !== JSON.stringify(parameter);
        current = parameter;
        input.disabled = !mayEdit() || parameter.value === undefined;
        if (isNew && document.activeElement !== input) show(parameter);
      },
    };
  }

  let isShown = false;
  const redraw = new Throttle(DRAW_MS, () => isShown && draw());
  connection.on("parameters", () => isShown && redraw.ask());
  connection.on("info", () => {
    endUpdates = undefined;
    if (isShown) load();
  });
  return {
    id: "params", title: "Parameters", element,
    show() {
      isShown = true;
      draw();
      load();
    },
    hide() {
      isShown = false;
      endUpdates?.();
      endUpdates = undefined;
    },
  };
}
