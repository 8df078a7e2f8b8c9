// Actions panel: a form of the goal, its feedback and result, and the goals of everybody.

import { empty, h, reconcile, setText } from "./dom.js";
import { problemLine, RequestForm } from "./form.js";
import { actionsOf, Goals, goalType, isFinal, STATUS_WORDS } from "./goals.js";
import { MessageTree } from "./tree.js";

export function actionsPanel({ connection }) {
  const rows = new Map();
  const goalRows = new Map();
  let selected;
  let goals;
  let own;
  let isShown = false;
  const hint = empty("");
  const names = h("ul", { class: "names scroll" });
  const title = h("h2");
  const type = h("div", { class: "facts" });
  const form = new RequestForm();
  const { element: problem, say } = problemLine();
  const send = h("button", { class: "primary", onclick: () => attempt(sendGoal) }, "Send goal");
  const cancel = h("button", { disabled: true, onclick: () => attempt(() => goals.cancel(own)) }, "Cancel goal");
  const state = h("span", { role: "status" });
  const feedback = new MessageTree();
  const result = new MessageTree();
  const feedbackPart = h("section", { hidden: true }, h("h3", {}, "Feedback"), feedback.element);
  const resultPart = h("section", { hidden: true }, h("h3", {}, "Result"), result.element);
  const list = h("ul", { class: "names" });
  const listPart = h("section", { hidden: true }, h("h3", {}, "Goals of this action"), list);
  const detail = h("section", { class: "detail", hidden: true },
    h("header", {}, title, h("button", { class: "quiet", onclick: () => select(undefined) }, "close")), type, form.element,
    h("div", { class: "tools" }, send, cancel, form.toggle, state), problem, resultPart, feedbackPart, listPart);
  const element = h("div", { class: "panel split" }, h("section", { class: "list" }, hint, names), detail);

  async function attempt(work) {
    say("");
    try {
      await work();
    } catch (error) {
      say(error.message);
    }
  }

  async function sendGoal() {
    const value = form.value();
    setText(state, "sending…");
    send.disabled = true;
    try {
      const of = goals;
      const goal = await of.send(value);
      if (of === goals) own = goal;
    } finally {
      send.disabled = false;
      showGoal();
    }
  }

  function drawList() {
    const actions = actionsOf(connection.services.values());
    hint.hidden = actions.length > 0;
    setText(hint, connection.has("services") ? "The robot has no actions whose types are known here." : "Goals are not allowed: start pteros view with --allow services.");
    reconcile(names, rows, actions, ({ name }) => name, (action) => ({
      element: h("li", {}, h("button", { class: "name", onclick: () => select(action.name) }, action.name), h("div", { class: "type" }, action.type)),
    }));
    const now = actions.find(({ name }) => name === selected?.name);
    // A server that has restarted has services of other numbers.
    if (now && goals && now.type === selected.type) goals.action = selected = now;
    else if (selected && !now) say(`${selected.name} has gone`);
  }

  function select(name) {
    goals?.end();
    goals = own = undefined;
    selected = actionsOf(connection.services.values()).find((action) => action.name === name);
    detail.hidden = !selected;
    element.classList.toggle("has-detail", Boolean(selected));
    if (!selected) return;
    setText(title, selected.name);
    setText(type, selected.type);
    say("");
    attempt(() => form.setType(goalType(selected)));
    watch();
  }

  function watch() {
    if (!selected || goals || !isShown) return;
    goals = new Goals(connection, selected, () => showGoal());
    showGoal();
  }

  function showGoal() {
    if (!goals) return;
    if (goals.problem) say(goals.problem);
    if (own?.problem) say(own.problem);
    setText(state, own ? STATUS_WORDS[own.status] ?? String(own.status) : "");
    state.className = own?.status === 4 ? "good" : own?.status > 4 ? "bad" : "";
    cancel.disabled = !own || isFinal(own.status);
    feedbackPart.hidden = !own?.feedback;
    if (own?.feedback) feedback.update(own.feedback);
    resultPart.hidden = !own?.result;
    if (own?.result) result.update(own.result);
    listPart.hidden = goals.all.length === 0;
    reconcile(list, goalRows, [...goals.all].reverse(), ({ id }) => id, (goal) => goalRow(goal));
  }

  function goalRow(goal) {
    const word = h("span", { class: "dim" });
    const button = h("button", { onclick: () => attempt(() => goals.cancel(goal)) }, "Cancel");
    return {
      element: h("li", { class: "row" }, h("code", {}, goal.id.slice(0, 8)), word, h("span", { class: "gap" }), button),
      update({ id, status }) {
        setText(word, `${STATUS_WORDS[status] ?? status}${goals.own.has(id) ? ", of this page" : ""}`);
        button.hidden = isFinal(status);
      },
    };
  }

  connection.on("services", () => isShown && drawList());
  connection.on("info", () => isShown && drawList());
  return {
    id: "actions", title: "Actions", element,
    show() {
      isShown = true;
      drawList();
      watch();
    },
    hide() {
      isShown = false;
      // A goal that runs is followed on; nothing is subscribed to for others.
      if (own && !isFinal(own.status)) return;
      goals?.end();
      goals = own = undefined;
    },
  };
}
