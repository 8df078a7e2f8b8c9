// Lifecycle panel: the state of each lifecycle node, and its transitions as buttons.

import { askedPanel } from "./asked_panel.js";
import { empty, h, reconcile, setText } from "./dom.js";

const TYPE = "lifecycle_msgs/srv/GetState";
const SUFFIX = "/get_state";
const PERIOD_MS = 2000;
const NODES_MAX = 40;

/** Lifecycle nodes by their services: `{name, getState, getTransitions, change}`. */
export function lifecycleNodes(services) {
  const byName = new Map([...services].map((service) => [service.name, service]));
  return [...byName.values()].filter(({ name, type }) => type === TYPE && name.endsWith(SUFFIX)).map((getState) => {
    const name = getState.name.slice(0, -SUFFIX.length);
    return { name, getState, getTransitions: byName.get(`${name}/get_available_transitions`), change: byName.get(`${name}/change_state`) };
  }).sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, NODES_MAX);
}

export function lifecyclePanel({ connection }) {
  const rows = new Map();
  const hint = empty("");
  const body = h("tbody");
  const element = h("div", { class: "panel" }, hint, h("div", { class: "scroll" }, h("table", { class: "states" }, body)));

  function list() {
    const nodes = lifecycleNodes(connection.services.values());
    hint.hidden = nodes.length > 0;
    setText(hint, connection.has("services") ? "The robot has no lifecycle nodes." : "Lifecycle services are not allowed: start pteros view with --allow services.");
    reconcile(body, rows, nodes, ({ name }) => name, makeRow);
  }

  function makeRow(first) {
    let node = first;
    let isAsking = false;
    // Whether the problem is that of the last question; that of a transition stays.
    let isUnanswered = false;
    let drawn = "";
    const state = h("span", { class: "state" });
    const buttons = h("span", { class: "buttons" });
    const problem = h("div", { class: "note bad", role: "alert" });

    async function ask() {
      if (isAsking) return;
      isAsking = true;
      try {
        const { current_state: now } = await connection.callService(node.getState, {});
        setText(state, now.label || `state ${now.id}`);
        state.dataset.state = now.label;
        const { available_transitions: all = [] } = node.getTransitions ? await connection.callService(node.getTransitions, {}) : {};
        drawButtons(all.slice(0, 20).map(({ transition }) => transition));
        if (isUnanswered) setText(problem, "");
        isUnanswered = false;
      } catch (error) {
        isUnanswered = true;
        setText(state, "no answer");
        setText(problem, error.message);
      }
      isAsking = false;
    }

    function drawButtons(transitions) {
      const now = JSON.stringify(transitions);
      // The same buttons stay, so that the focus of the keyboard does.
      if (now === drawn) return;
      drawn = now;
      buttons.replaceChildren(...transitions.map((transition) => h("button", { onclick: () => change(transition) }, transition.label)));
    }

    async function change(transition) {
      setText(problem, "");
      isUnanswered = false;
      for (const button of buttons.children) button.disabled = true;
      try {
        const { success } = await connection.callService(node.change, { transition });
        if (!success) setText(problem, `${transition.label} has failed; the node's log says why`);
      } catch (error) {
        setText(problem, `${transition.label}: ${error.message}`);
      }
      drawn = "";
      await ask();
    }

    const row = h("tr", {}, h("td", {}, h("span", { class: "name" }, node.name), problem), h("td", {}, state), h("td", {}, buttons));
    return { element: row, ask, update: (now) => (node = now) };
  }

  return askedPanel(connection, { id: "lifecycle", title: "Lifecycle", element, periodMs: PERIOD_MS, list, rows: rows });
}
