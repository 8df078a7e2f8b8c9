// Services panel: a form of the request, made from the type, and the response as a tree.

import { parseSchema } from "./cdr.js";
import { empty, h, reconcile, setText } from "./dom.js";
import { problemLine, RequestForm } from "./form.js";
import { MessageTree } from "./tree.js";

/** Services that every node has, and those of actions; they are shown on request. */
const HOUSEKEEPING = /\/(describe_parameters|get_parameter_types|get_parameters|list_parameters|set_parameters|set_parameters_atomically|get_type_description|get_logger_levels|set_logger_levels)$|\/_action\//;

export function servicesPanel({ connection }) {
  const rows = new Map();
  let selected;
  const filter = h("input", { type: "search", placeholder: "Filter services", "aria-label": "Filter services", oninput: () => list() });
  const all = h("input", { type: "checkbox", onchange: () => list() });
  const count = h("span", { class: "dim" });
  const hint = empty("");
  const names = h("ul", { class: "names scroll" });
  const title = h("h2");
  const type = h("div", { class: "facts" });
  const form = new RequestForm();
  form.element.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && call());
  const button = h("button", { class: "primary", onclick: () => call() }, "Call");
  const state = h("span", { class: "dim", role: "status" });
  const { element: problem, say } = problemLine();
  const tree = new MessageTree();
  const detail = h("section", { class: "detail", hidden: true }, h("header", {}, title, h("button", { class: "quiet", onclick: () => select(undefined) }, "close")),
    type, form.element, h("div", { class: "tools" }, button, form.toggle, state), problem, tree.element);
  const element = h("div", { class: "panel split" },
    h("section", { class: "list" }, h("div", { class: "tools" }, filter, h("label", {}, all, " all"), count), hint, names), detail);

  function list() {
    const words = filter.value.toLowerCase();
    const services = [...connection.services.values()]
      .filter(({ name, type: of }) => `${name} ${of}`.toLowerCase().includes(words))
      .filter(({ name }) => all.checked || words || !HOUSEKEEPING.test(name))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    setText(count, `${services.length} of ${connection.services.size}`);
    hint.hidden = services.length > 0;
    setText(hint, connection.has("services") ? "No service matches." : "Calls of services are not allowed: start pteros view with --allow services.");
    reconcile(names, rows, services, ({ id }) => id, (service) => ({
      element: h("li", {}, h("button", { class: "name", onclick: () => select(service) }, service.name), h("div", { class: "type" }, service.type)),
    }));
  }

  function select(service) {
    selected = service;
    detail.hidden = !service;
    element.classList.toggle("has-detail", Boolean(service));
    if (!service) return;
    setText(title, service.name);
    setText(type, service.type);
    setText(state, "");
    tree.clear();
    say("");
    try {
      form.setType(parseSchema(service.request.name, service.request.schema));
    } catch (error) {
      say(error.message);
    }
  }

  async function call() {
    const service = selected;
    say("");
    tree.clear();
    setText(state, "waiting for the response…");
    button.disabled = true;
    const begin = performance.now();
    try {
      const response = await connection.callService(service, form.value());
      if (service !== selected) return;
      setText(state, `response after ${(performance.now() - begin).toFixed(1)} ms`);
      tree.update(response);
      if (Object.keys(response).length === 0) tree.clear(empty("The response has no fields."));
    } catch (error) {
      setText(state, "");
      if (service === selected) say(error.message);
    } finally {
      button.disabled = false;
    }
  }

  connection.on("services", list);
  connection.on("info", list);
  return { id: "services", title: "Services", element, show: list, hide() {} };
}
