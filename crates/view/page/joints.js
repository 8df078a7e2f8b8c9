// Joints panel: a slider for each movable joint of the robot description, within its limits. While
// it publishes, it is what joint_state_publisher_gui is; otherwise it shows the joints' positions.

import { empty, h, reconcile, setText, store, stored } from "./dom.js";
import { SCHEMAS } from "./schemas.js";
import { parseUrdf } from "./urdf.js";

const TYPE = "sensor_msgs/msg/JointState";
/** As joint_state_publisher: 10 Hz. */
const PERIOD_MS = 100;
const JOINTS_MAX = 300;
const MOVABLE = ["revolute", "continuous", "prismatic"];

/** Joints that a slider moves, with `lower`, `upper` and a first position, and those that follow. */
export function movableJoints(robot) {
  const movable = robot.joints.filter(({ type }) => MOVABLE.includes(type)).slice(0, JOINTS_MAX);
  const names = new Set(movable.map(({ name }) => name));
  const follows = ({ mimic }) => mimic && names.has(mimic.joint);
  const sliders = movable.filter((joint) => !follows(joint)).map(({ name, type, limit }) => {
    const isLimited = type !== "continuous" && limit && limit.upper > limit.lower;
    const [lower, upper] = isLimited ? [limit.lower, limit.upper] : [-Math.PI, Math.PI];
    // Zero if the limits allow it, as joint_state_publisher does.
    return { name, type, lower, upper, initial: lower <= 0 && upper >= 0 ? 0 : (lower + upper) / 2 };
  });
  return { sliders, followers: movable.filter(follows) };
}

/** The message of all joints; a joint that mimics another has its position, scaled. */
export function jointState(positions, followers, stamp) {
  const all = new Map(positions);
  const position = (joint, depth = 0) => {
    if (all.has(joint.name) || depth > 32) return all.get(joint.name) ?? 0;
    const { joint: leader, multiplier, offset } = joint.mimic;
    const other = followers.find(({ name }) => name === leader);
    const value = (other ? position(other, depth + 1) : all.get(leader) ?? 0) * multiplier + offset;
    all.set(joint.name, value);
    return value;
  };
  for (const joint of followers) position(joint);
  return { header: { stamp, frame_id: "" }, name: [...all.keys()], position: [...all.values()], velocity: [], effort: [] };
}

export function jointsPanel({ connection }) {
  const rows = new Map();
  const positions = new Map();
  let joints = { sliders: [], followers: [] };
  let ends = [];
  let timer;
  let urdf;
  let isShown = false;
  const topic = h("input", { value: stored("joints.topic", "/joint_states"), "aria-label": "Topic", spellcheck: "false", onchange: () => {
    store("joints.topic", topic.value);
    if (isShown) subscribe();
  } });
  const button = h("button", { "aria-pressed": "false", onclick: () => (timer ? stop() : start()) }, "Publish");
  const move = (title, of) => h("button", { onclick: () => setAll(of) }, title);
  const state = h("p", { class: "facts", role: "status" });
  const warning = h("p", { class: "problem", hidden: true });
  const hint = empty("");
  const list = h("div", { class: "scroll joints" });
  const element = h("div", { class: "panel" },
    h("div", { class: "tools" }, topic, button, move("Centre", ({ lower, upper }) => (lower + upper) / 2), move("Zero", ({ initial }) => initial),
      move("Random", ({ lower, upper }) => lower + Math.random() * (upper - lower))),
    warning, state, hint, list);

  function load(text) {
    if (text === urdf) return;
    urdf = text;
    try {
      joints = movableJoints(parseUrdf(text));
    } catch (error) {
      stop();
      setText(hint, `robot description: ${error.message}`);
      joints = { sliders: [], followers: [] };
    }
    const known = new Map(positions);
    positions.clear();
    for (const { name, lower, upper, initial } of joints.sliders) {
      const before = known.get(name);
      positions.set(name, before >= lower && before <= upper ? before : initial);
    }
    for (const { element: row } of rows.values()) row.remove();
    rows.clear();
    draw();
  }

  function draw() {
    hint.hidden = joints.sliders.length > 0;
    if (!hint.textContent) setText(hint, "Waiting for a robot description with movable joints.");
    reconcile(list, rows, joints.sliders, ({ name }) => name, makeRow);
  }

  function makeRow({ name, type, lower, upper }) {
    const slider = h("input", { type: "range", min: String(lower), max: String(upper), step: "any", "aria-label": name, oninput: () => change(Number(slider.value)) });
    const value = h("input", { class: "number", "aria-label": `${name}, value`, onchange: () => {
      const wanted = Number(value.value);
      change(Number.isFinite(wanted) ? Math.min(upper, Math.max(lower, wanted)) : positions.get(name));
    } });
    const unit = type === "prismatic" ? "m" : "rad";
    const limits = `${lower.toFixed(3)} to ${upper.toFixed(3)} ${unit}`;
    function change(position) {
      positions.set(name, position);
      show();
    }
    function show() {
      slider.value = String(positions.get(name));
      if (document.activeElement !== value) value.value = positions.get(name).toFixed(3);
    }
    show();
    return { element: h("label", { class: "joint", title: limits }, h("span", { class: "name" }, name), slider, value, h("span", { class: "dim" }, unit)), show };
  }

  function setAll(of) {
    for (const joint of joints.sliders) positions.set(joint.name, of(joint));
    showAll();
  }

  const showAll = () => rows.forEach(({ show }) => show());

  function receive({ value }) {
    if (timer || !value) return;
    value.name.forEach((name, i) => {
      if (positions.has(name) && Number.isFinite(value.position[i])) positions.set(name, value.position[i]);
    });
    showAll();
  }

  function publish() {
    try {
      connection.publish(topic.value, TYPE, SCHEMAS[TYPE], jointState(positions, joints.followers, connection.stamp()));
      setText(state, `${topic.value}: ${positions.size + joints.followers.length} joints, 10 times a second`);
    } catch (error) {
      stop();
      setText(state, error.message);
    }
    checkOthers();
  }

  /** Two sources of joint states make the robot jump between them. */
  function checkOthers() {
    const others = connection.stats.topics.find(({ name }) => name === topic.value)?.publishers.map(({ node }) => node) ?? [];
    warning.hidden = !timer || others.length === 0;
    setText(warning, others.length ? `${others.slice(0, 3).join(", ")} publishes this topic, too: the robot model will jump between both.` : "");
  }

  function start() {
    if (connection.publishRefusal || joints.sliders.length === 0) return refresh();
    timer = setInterval(publish, PERIOD_MS);
    button.setAttribute("aria-pressed", "true");
    setText(button, "Stop");
    publish();
  }

  function stop() {
    clearInterval(timer);
    timer = undefined;
    button.setAttribute("aria-pressed", "false");
    setText(button, "Publish");
    refresh();
    checkOthers();
  }

  function refresh() {
    const refusal = connection.publishRefusal;
    if (refusal && timer) stop();
    button.disabled = Boolean(refusal);
    if (!timer) setText(state, refusal ? `The sliders move nothing: ${refusal}.` : "The sliders show the robot's joints until you publish.");
  }

  function subscribe() {
    for (const end of ends) end();
    const channels = [...connection.channels.values()].filter(({ topic: name, schemaName }) => /robot_description$/.test(name) && schemaName === "std_msgs/msg/String");
    const description = channels.sort((a, b) => (a.topic < b.topic ? -1 : 1))[0]?.topic ?? "/robot_description";
    ends = [
      connection.subscribe(description, "std_msgs/msg/String", ({ value }) => typeof value?.data === "string" && load(value.data)),
      connection.subscribe(topic.value, TYPE, receive),
    ];
  }

  connection.on("state", refresh);
  connection.on("info", refresh);
  connection.on("channels", () => isShown && subscribe());
  return {
    id: "joints", title: "Joints", element,
    show() {
      isShown = true;
      subscribe();
      refresh();
      draw();
    },
    hide() {
      isShown = false;
      for (const end of ends) end();
      ends = [];
      if (timer) stop();
    },
  };
}
