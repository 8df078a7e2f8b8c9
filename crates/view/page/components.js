// Components panel: containers with the components that run in them, loaded and unloaded here.

import { askedPanel } from "./asked_panel.js";
import { parseSchema } from "./cdr.js";
import { empty, h, reconcile, setText } from "./dom.js";
import { problemLine, RequestForm } from "./form.js";

const SUFFIX = "/_container/list_nodes";
const PERIOD_MS = 3000;
const CONTAINERS_MAX = 40;

/** Containers by their services: `{name, list, load, unload}`. */
export function containersOf(services) {
  const byName = new Map([...services].map((service) => [service.name, service]));
  return [...byName.values()].filter(({ name }) => name.endsWith(SUFFIX)).map((list) => {
    const name = list.name.slice(0, -SUFFIX.length);
    return { name, list, load: byName.get(`${name}/_container/load_node`), unload: byName.get(`${name}/_container/unload_node`) };
  }).sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, CONTAINERS_MAX);
}

export function componentsPanel({ connection }) {
  const cards = new Map();
  const hint = empty("");
  const body = h("div", { class: "scroll" });
  const element = h("div", { class: "panel components" }, hint, body);

  function list() {
    const containers = containersOf(connection.services.values());
    hint.hidden = containers.length > 0;
    setText(hint, connection.has("services") ? "The robot has no containers of components." : "Services of containers are not allowed: start pteros view with --allow services.");
    reconcile(body, cards, containers, ({ name }) => name, makeCard);
  }

  function makeCard(first) {
    let container = first;
    let isAsking = false;
    // Whether the problem is that of the last question; that of a change stays.
    let isUnanswered = false;
    const rows = new Map();
    const nodes = h("ul", { class: "names" });
    const { element: problem, say } = problemLine();
    const form = new RequestForm();
    const button = h("button", { class: "primary", onclick: () => load() }, "Load");
    const count = h("span", { class: "dim", role: "status" });
    const loading = h("details", { ontoggle: () => loading.open && !form.type && begin() },
      h("summary", {}, "Load a component"), form.element, h("div", { class: "tools" }, button, form.toggle));

    function begin() {
      if (!container.load) return say("this container has no service to load components");
      try {
        form.setType(parseSchema(container.load.request.name, container.load.request.schema));
      } catch (error) {
        say(error.message);
      }
    }

    async function ask() {
      if (isAsking) return;
      isAsking = true;
      try {
        const { full_node_names: names, unique_ids: ids } = await connection.callService(container.list, {});
        const items = names.slice(0, 500).map((name, i) => ({ name, id: ids[i] }));
        reconcile(nodes, rows, items, ({ name, id }) => `${id} ${name}`, nodeRow);
        setText(count, items.length === 1 ? "1 component" : `${items.length} components`);
        if (isUnanswered) say("");
        isUnanswered = false;
      } catch (error) {
        isUnanswered = true;
        say(error.message);
      }
      isAsking = false;
    }

    function nodeRow({ name, id }) {
      const unload = h("button", { disabled: !container.unload, onclick: () => change(unload, container.unload, { unique_id: id }) }, "Unload");
      return { element: h("li", { class: "row" }, h("code", {}, String(id)), h("span", { class: "name" }, name), h("span", { class: "gap" }), unload) };
    }

    async function change(by, service, request) {
      say("");
      isUnanswered = false;
      by.disabled = true;
      try {
        const { success, error_message: reason } = await connection.callService(service, request);
        if (!success) say(reason || "the container refuses, without a reason");
      } catch (error) {
        say(error.message);
      }
      by.disabled = false;
      await ask();
    }

    function load() {
      try {
        change(button, container.load, form.value());
      } catch (error) {
        say(error.message);
      }
    }

    return {
      element: h("section", {}, h("header", {}, h("h2", {}, container.name), count), nodes, problem, loading), ask,
      update: (now) => (container = now),
    };
  }

  return askedPanel(connection, { id: "components", title: "Components", element, periodMs: PERIOD_MS, list, rows: cards });
}
