// Goals of an action: sends one, follows its feedback and status, fetches its result, cancels it.
// The action's parts are services and topics below `NAME/_action/` (design.ros2.org/articles/actions).

import { parseSchema } from "./cdr.js";

const SEND = "/_action/send_goal";
export const STATUS_WORDS = ["unknown", "accepted", "executing", "canceling", "succeeded", "canceled", "aborted"];
const CANCEL_ERRORS = ["", "the server rejects the cancellation", "the server knows no such goal", "the goal has ended already"];
const FIRST_FINAL = 4;

export const isFinal = (status) => status >= FIRST_FINAL;
/** A goal's id as text. */
export const idText = (uuid) => Array.from(uuid, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The robot's actions: `{name, type, sendGoal, getResult, cancelGoal}`, of which parts may be missing. */
export function actionsOf(services) {
  const byName = new Map([...services].map((service) => [service.name, service]));
  return [...byName.values()].filter(({ name }) => name.endsWith(SEND)).map((sendGoal) => {
    const name = sendGoal.name.slice(0, -SEND.length);
    const part = (suffix) => byName.get(`${name}/_action/${suffix}`);
    return { name, type: sendGoal.type.replace(/_SendGoal$/, ""), sendGoal, getResult: part("get_result"), cancelGoal: part("cancel_goal") };
  }).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The type of an action's goal: a field of its request. */
export function goalType({ sendGoal }) {
  const request = parseSchema(sendGoal.request.name, sendGoal.request.schema);
  const field = request.fields.find(({ name }) => name === "goal");
  if (!field?.nested) throw new Error(`${sendGoal.type}: its request has no goal`);
  return field.nested;
}

/** The goals of one action, from the moment on at which it is watched. */
export class Goals {
  /** `changed` is called when a goal, its feedback or its result changes. */
  constructor(connection, action, changed) {
    Object.assign(this, { connection, action, changed });
    /** Own goals by id, the newest last. */
    this.own = new Map();
    /** All goals that the server tells of: `{id, uuid, status}`. */
    this.all = [];
    const topic = (part) => `${action.name}/_action/${part}`;
    this.ends = [
      connection.subscribe(topic("status"), "action_msgs/msg/GoalStatusArray", ({ value, error }) => (value ? this.receiveStatus(value) : this.fail(error))),
      connection.subscribe(topic("feedback"), `${action.type}_FeedbackMessage`, ({ value, error }) => (value ? this.receiveFeedback(value) : this.fail(error))),
    ];
  }

  fail(error) {
    this.problem = error;
    this.changed();
  }

  end() {
    for (const end of this.ends) end();
  }

  /** Sends a goal. Returns it once the server has accepted it; throws if it does not. */
  async send(value) {
    const uuid = Array.from(crypto.getRandomValues(new Uint8Array(16)));
    const goal = { id: idText(uuid), uuid, status: 0, feedback: undefined, result: undefined };
    this.own.set(goal.id, goal);
    try {
      const { accepted } = await this.connection.callService(this.action.sendGoal, { goal_id: { uuid }, goal: value });
      if (!accepted) throw new Error("the server rejects this goal");
    } catch (error) {
      this.own.delete(goal.id);
      throw error;
    }
    goal.status ||= 1;
    this.changed();
    return goal;
  }

  receiveStatus({ status_list }) {
    this.all = status_list.slice(-100).map(({ goal_info, status }) => ({ id: idText(goal_info.goal_id.uuid), uuid: Array.from(goal_info.goal_id.uuid), status }));
    for (const { id, status } of this.all) {
      const goal = this.own.get(id);
      if (!goal || goal.status === status) continue;
      goal.status = status;
      if (isFinal(status)) this.fetchResult(goal);
    }
    this.changed();
  }

  receiveFeedback({ goal_id, feedback }) {
    const goal = this.own.get(idText(goal_id.uuid));
    if (!goal) return;
    goal.feedback = feedback;
    this.changed();
  }

  /** Only after the end of a goal: a request before it would wait longer than the server lets it. */
  async fetchResult(goal) {
    try {
      if (!this.action.getResult) throw new Error("the action has no service for results");
      const { status, result } = await this.connection.callService(this.action.getResult, { goal_id: { uuid: goal.uuid } });
      Object.assign(goal, { status: status || goal.status, result });
    } catch (error) {
      goal.problem = `the result: ${error.message}`;
    }
    this.changed();
  }

  /** Asks the server to cancel a goal. Throws with its refusal. */
  async cancel({ uuid }) {
    if (!this.action.cancelGoal) throw new Error("the action has no service for cancelling");
    const request = { goal_info: { goal_id: { uuid }, stamp: { sec: 0, nanosec: 0 } } };
    const { return_code } = await this.connection.callService(this.action.cancelGoal, request);
    if (return_code) throw new Error(CANCEL_ERRORS[return_code] ?? `the server answers ${return_code}`);
  }
}
