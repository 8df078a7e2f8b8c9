// Panels that change the robot: forms, goals of actions, joints, gamepads, lists of nodes.
import assert from "node:assert/strict";
import test from "node:test";

import { decode, encode, parseSchema } from "../../page/cdr.js";
import { containersOf } from "../../page/components.js";
import { parseField } from "../../page/form.js";
import { padCommand } from "../../page/gamepad.js";
import { actionsOf, Goals, goalType } from "../../page/goals.js";
import { jointState, movableJoints } from "../../page/joints.js";
import { lifecycleNodes } from "../../page/lifecycle.js";
import { SCHEMAS } from "../../page/schemas.js";
import { parseUrdf } from "../../page/urdf.js";

const rule = "=".repeat(80);
const UUID = `${rule}\nMSG: unique_identifier_msgs/UUID\nuint8[16] uuid\n`;
const part = (name, schema) => ({ name, schema });
const SEND_GOAL = {
  id: 1, name: "/dance/_action/send_goal", type: "a/action/Dance_SendGoal",
  request: part("a/action/Dance_SendGoal_Request", `unique_identifier_msgs/UUID goal_id\na/Dance_Goal goal\n${UUID}${rule}\nMSG: a/Dance_Goal\nint32 order\n`),
  response: part("r", "bool accepted\n"),
};
const others = ["get_result", "cancel_goal"].map((name, i) => ({ id: i + 2, name: `/dance/_action/${name}`, type: name, request: part("q", ""), response: part("r", "") }));

/** A connection whose calls the test answers. */
function fake(answers) {
  const topics = new Map();
  const calls = [];
  return {
    calls, topics,
    subscribe(topic, type, listener) {
      topics.set(topic, listener);
      return () => topics.delete(topic);
    },
    async callService(service, request) {
      const part = service.name.split("/").pop();
      calls.push([part, request]);
      return answers[part](request);
    },
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("an action is known by its services, its goal by the request", () => {
  const [action, ...rest] = actionsOf([...others, SEND_GOAL, { name: "/add", type: "x" }]);
  assert.deepEqual([action.name, action.type, rest.length], ["/dance", "a/action/Dance", 0]);
  assert.deepEqual([action.getResult.id, action.cancelGoal.id], [2, 3]);
  assert.deepEqual(goalType(action).fields.map(({ name }) => name), ["order"]);
});

test("a goal is sent, followed to its end, and its result fetched", async () => {
  const connection = fake({
    send_goal: () => ({ accepted: true }),
    get_result: () => ({ status: 4, result: { sequence: [1] } }),
    cancel_goal: () => ({ return_code: 3 }),
  });
  const [action] = actionsOf([SEND_GOAL, ...others]);
  const goals = new Goals(connection, action, () => {});
  const goal = await goals.send({ order: 5 });
  assert.equal(goal.status, 1);
  const [, request] = connection.calls[0];
  assert.equal(decode(parseSchema(SEND_GOAL.request.name, SEND_GOAL.request.schema), encode(parseSchema(SEND_GOAL.request.name, SEND_GOAL.request.schema), request)).goal.order, 5);
  const feedback = (uuid, n) => connection.topics.get("/dance/_action/feedback")({ value: { goal_id: { uuid }, feedback: { n } } });
  feedback(new Uint8Array(16), 1);
  assert.equal(goal.feedback, undefined, "of another goal");
  feedback(Uint8Array.from(goal.uuid), 2);
  assert.deepEqual(goal.feedback, { n: 2 });
  const status = (value) => connection.topics.get("/dance/_action/status")({ value: { status_list: [{ goal_info: { goal_id: { uuid: Uint8Array.from(goal.uuid) } }, status: value }] } });
  status(2);
  assert.equal(connection.calls.length, 1, "no result before the end");
  status(4);
  status(4);
  await turn();
  assert.deepEqual(goal.result, { sequence: [1] });
  assert.equal(connection.calls.filter(([name]) => name === "get_result").length, 1);
  await assert.rejects(goals.cancel(goal), /has ended already/);
  goals.end();
  assert.equal(connection.topics.size, 0);
});

test("a rejected goal is forgotten, and a faulty message is told", async () => {
  const connection = fake({ send_goal: () => ({ accepted: false }) });
  const [action] = actionsOf([SEND_GOAL]);
  const goals = new Goals(connection, action, () => {});
  await assert.rejects(goals.send({ order: 1 }), /rejects this goal/);
  assert.equal(goals.own.size, 0);
  await assert.rejects(goals.cancel({ uuid: [] }), /no service for cancelling/);
  connection.topics.get("/dance/_action/status")({ error: "cut short" });
  assert.equal(goals.problem, "cut short");
});

test("fields are numbers of their type, or the reason why not", () => {
  assert.equal(parseField("int32", " -5 "), -5);
  assert.equal(parseField("uint64", "9007199254740993"), 9007199254740993n);
  assert.equal(parseField("float64", "1e3"), 1000);
  assert.equal(parseField("float32", "nan"), "nan");
  assert.equal(parseField("string", " a "), " a ");
  for (const [type, wrong] of [["int32", "1.5"], ["int32", ""], ["float64", "x"], ["float64", ""], ["float64", "Infinity"]]) {
    assert.throws(() => parseField(type, wrong), /is no (integer|number)/);
  }
});

const URDF = `<robot name="r"><link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="e"/>
<joint name="fixed" type="fixed"><parent link="a"/><child link="b"/></joint>
<joint name="knee" type="revolute"><parent link="b"/><child link="c"/><limit lower="0.5" upper="1.5"/></joint>
<joint name="foot" type="revolute"><parent link="c"/><child link="d"/><limit lower="-1" upper="1"/><mimic joint="knee" multiplier="-2" offset="0.25"/></joint>
<joint name="wheel" type="continuous"><parent link="d"/><child link="e"/></joint></robot>`;

test("sliders have the joints' limits, and mimicking joints follow", () => {
  const { sliders, followers } = movableJoints(parseUrdf(URDF));
  assert.deepEqual(sliders.map(({ name, lower, upper, initial }) => [name, lower, upper, initial]), [["knee", 0.5, 1.5, 1], ["wheel", -Math.PI, Math.PI, 0]]);
  const state = jointState(new Map([["knee", 1], ["wheel", 0]]), followers, { sec: 1, nanosec: 2 });
  assert.deepEqual([state.name, state.position], [["knee", "wheel", "foot"], [1, 0, -1.75]]);
  const type = parseSchema("sensor_msgs/msg/JointState", SCHEMAS["sensor_msgs/msg/JointState"]);
  assert.deepEqual(decode(type, encode(type, state)).name, state.name);
});

test("joints that mimic each other in a circle end", () => {
  const circle = ["a", "b"].map((name, i) => ({ name, mimic: { joint: i ? "a" : "b", multiplier: 1, offset: 1 } }));
  assert.equal(jointState(new Map(), circle, { sec: 0, nanosec: 0 }).position.length, 2);
});

test("a gamepad drives only while the dead man's button is held", () => {
  const settings = { button: 4, forward: 1, turn: 0 };
  const pad = (pressed, axes, connected = true) => ({ connected, axes, buttons: Array.from({ length: 6 }, (_, i) => ({ pressed: pressed && i === 4 })) });
  assert.equal(padCommand(pad(false, [0, -1]), settings), undefined);
  assert.equal(padCommand(pad(true, [0, -1], false), settings), undefined);
  assert.equal(padCommand(undefined, settings), undefined);
  assert.deepEqual(padCommand(pad(true, [1, -1]), settings), [1, -1]);
  assert.deepEqual(padCommand(pad(true, [0.05, -0.1]), settings), [0, 0], "a worn stick at rest");
  assert.deepEqual(padCommand(pad(true, [NaN]), settings), [0, 0], "an axis that it lacks");
});

test("lifecycle nodes and containers are known by their services", () => {
  const service = (name, type = "") => ({ name, type });
  const [arm, ...rest] = lifecycleNodes([service("/arm/get_state", "lifecycle_msgs/srv/GetState"), service("/arm/change_state"), service("/x/get_state", "other/srv/GetState")]);
  assert.deepEqual([arm.name, arm.change.name, arm.getTransitions, rest.length], ["/arm", "/arm/change_state", undefined, 0]);
  const [box] = containersOf([service("/box/_container/list_nodes"), service("/box/_container/unload_node")]);
  assert.deepEqual([box.name, box.load, box.unload.name], ["/box", undefined, "/box/_container/unload_node"]);
});
