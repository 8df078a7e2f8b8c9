// Teleop panel: drives by keys, by a stick for mouse and touch, or by a gamepad.
//
// Commands go out while a key, the stick or the dead man's button of the gamepad is held. Release, a hidden panel or a page that loses the
// focus sends zero at once.

import { h, setOptions, setText, store, stored, Ticker } from "./dom.js";
import { Gamepads } from "./gamepad.js";
import { SCHEMAS } from "./schemas.js";

const PERIOD_MS = 50;
const TWIST = "geometry_msgs/msg/Twist";
const STAMPED = "geometry_msgs/msg/TwistStamped";
const KEYS = {
  w: [1, 0], arrowup: [1, 0], s: [-1, 0], arrowdown: [-1, 0],
  a: [0, 1], arrowleft: [0, 1], d: [0, -1], arrowright: [0, -1],
};

export function teleopPanel({ connection }) {
  const held = new Set();
  let stick = [0, 0];
  /** Of the gamepad, while its dead man's button is held. */
  let pads;
  const gamepads = new Gamepads();
  const poll = new Ticker(PERIOD_MS, () => readPad());
  let timer;
  let isShown = false;

  const topic = h("input", { value: stored("teleop.topic", "/cmd_vel"), "aria-label": "Topic", spellcheck: "false", onchange: () => store("teleop.topic", topic.value) });
  const type = h("select", { "aria-label": "Type" });
  setOptions(type, [["", "type: automatic"], [TWIST, "Twist"], [STAMPED, "TwistStamped"]]);
  const speed = (name, initial, unit) => {
    const value = h("span", { class: "number value" });
    const input = h("input", { type: "range", min: "0.05", max: "2", step: "0.05", value: String(stored(`teleop.${name}`, initial)), "aria-label": `Greatest ${name} speed`, oninput: () => show() });
    const show = () => {
      setText(value, `${Number(input.value).toFixed(2)} ${unit}`);
      store(`teleop.${name}`, Number(input.value));
    };
    show();
    return { input, row: h("label", { class: "speed" }, h("span", {}, name), input, value) };
  };
  const linear = speed("linear", 0.3, "m/s");
  const angular = speed("angular", 0.8, "rad/s");
  const knob = h("div", { class: "knob" });
  const pad = h("div", { class: "pad", tabindex: "0", role: "application", "aria-label": "Drive: hold W, A, S, D or the arrow keys" }, knob);
  const state = h("p", { class: "facts number", role: "status" });
  const refusal = h("p", { class: "problem", hidden: true });
  const element = h("div", { class: "panel teleop" },
    refusal,
    h("div", { class: "tools" }, topic, type), linear.row, angular.row, pad,
    h("p", { class: "dim" }, "Hold W A S D or the arrow keys, or drag the stick. Release stops the robot."), gamepads.element, state);

  function command() {
    const keys = [...held].reduce(([x, z], key) => [x + KEYS[key][0], z + KEYS[key][1]], [0, 0]);
    const limit = (value) => Math.max(-1, Math.min(1, value));
    const [x, z] = [0, 1].map((axis) => limit(keys[axis] + stick[axis] + (pads?.[axis] ?? 0)));
    return { x: x * Number(linear.input.value), z: z * Number(angular.input.value) };
  }

  /** The chosen type, else the one that the topic's subscribers have. */
  function wantedType() {
    if (type.value) return type.value;
    const types = connection.stats.topics.find(({ name }) => name === topic.value)?.types ?? [];
    return types.includes(STAMPED) && !types.includes(TWIST) ? STAMPED : TWIST;
  }

  function send({ x, z }) {
    const twist = { linear: { x, y: 0, z: 0 }, angular: { x: 0, y: 0, z } };
    const name = wantedType();
    const value = name === STAMPED ? { header: { stamp: connection.stamp(), frame_id: "base_link" }, twist } : twist;
    try {
      connection.publish(topic.value, name, SCHEMAS[name], value);
      setText(state, `${topic.value} ${name.split("/").pop()}  linear ${x.toFixed(2)} m/s  angular ${z.toFixed(2)} rad/s`);
    } catch (error) {
      setText(state, error.message);
    }
  }

  const isHeld = () => held.size > 0 || pads !== undefined || stick[0] !== 0 || stick[1] !== 0;

  function change() {
    if (isHeld() && !timer) {
      send(command());
      timer = setInterval(() => send(command()), PERIOD_MS);
    } else if (!isHeld() && timer) {
      clearInterval(timer);
      timer = undefined;
      send({ x: 0, z: 0 });
    }
  }

  function readPad() {
    const command = gamepads.read();
    pads = connection.publishRefusal ? undefined : command;
    change();
  }

  function release() {
    held.clear();
    pads = undefined;
    moveStick(0, 0);
  }

  function moveStick(forward, left) {
    stick = [forward, left];
    knob.style.transform = `translate(${-left * 70}px, ${-forward * 70}px)`;
    change();
  }

  function drag({ clientX, clientY }) {
    const { left, top, width, height } = pad.getBoundingClientRect();
    let x = ((clientX - left) / width - 0.5) * 2;
    let y = ((clientY - top) / height - 0.5) * 2;
    const length = Math.max(1, Math.hypot(x, y));
    [x, y] = [x / length, y / length];
    // A small hand movement near the middle does not drive.
    moveStick(Math.abs(y) < 0.08 ? 0 : -y, Math.abs(x) < 0.08 ? 0 : -x);
  }

  pad.addEventListener("pointerdown", (event) => {
    if (connection.publishRefusal) return;
    pad.setPointerCapture(event.pointerId);
    pad.addEventListener("pointermove", drag);
    drag(event);
  });
  pad.addEventListener("lostpointercapture", () => {
    pad.removeEventListener("pointermove", drag);
    moveStick(0, 0);
  });
  addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    const isTyping = event.target.closest?.("input, select, textarea, [role=tab], canvas");
    if (!isShown || isTyping || !KEYS[key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (connection.publishRefusal) return;
    held.add(key);
    change();
  });
  addEventListener("keyup", (event) => {
    held.delete(event.key.toLowerCase());
    change();
  });
  addEventListener("blur", release);

  function refresh() {
    const reason = connection.publishRefusal;
    refusal.hidden = !reason;
    setText(refusal, reason ? `Driving is not possible: ${reason}.` : "");
    pad.classList.toggle("off", Boolean(reason));
    if (reason) release();
  }
  connection.on("state", refresh);
  connection.on("info", refresh);
  return {
    id: "teleop", title: "Teleop", element,
    show() {
      isShown = true;
      refresh();
      poll.start();
      pad.focus({ preventScroll: true });
    },
    hide() {
      isShown = false;
      poll.stop();
      release();
    },
  };
}
