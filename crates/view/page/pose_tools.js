// Tools of the scene that publish: goal pose, initial pose, point. A press on the ground sets the
// place, a drag the direction. With keys: arrows move, Shift with arrows turns, Enter publishes.

import { h, setText } from "./dom.js";
import { arrowGeometry } from "./displays.js";
import { SCHEMAS } from "./schemas.js";
import { fromRpy } from "./tf.js";
import * as THREE from "./vendor/three/three.module.min.js";

const quaternion = (yaw) => {
  const [x, y, z, w] = fromRpy([0, 0, yaw]);
  return { x, y, z, w };
};
const pose = ({ x, y, yaw }) => ({ position: { x, y, z: 0 }, orientation: quaternion(yaw) });
// Variances of x, y and yaw, as rviz publishes them.
const COVARIANCE = Array.from({ length: 36 }, (_, i) => (i === 0 || i === 7 ? 0.25 : i === 35 ? 0.0685 : 0));

const TOOLS = [
  { title: "Goal", topic: "/goal_pose", type: "geometry_msgs/msg/PoseStamped", turns: true, body: (at) => ({ pose: pose(at) }) },
  { title: "Initial pose", topic: "/initialpose", type: "geometry_msgs/msg/PoseWithCovarianceStamped", turns: true, body: (at) => ({ pose: { pose: pose(at), covariance: COVARIANCE } }) },
  { title: "Point", topic: "/clicked_point", type: "geometry_msgs/msg/PointStamped", turns: false, body: ({ x, y }) => ({ point: { x, y, z: 0 } }) },
];

export class PoseTools {
  constructor(connection, viewport, fixedFrame) {
    Object.assign(this, { connection, viewport, fixedFrame });
    this.arrow = new THREE.Mesh(arrowGeometry(), new THREE.MeshBasicMaterial({ color: "#35b3a7", side: THREE.DoubleSide, depthTest: false }));
    this.arrow.visible = false;
    this.arrow.renderOrder = 10;
    viewport.scene.add(this.arrow);
    this.buttons = TOOLS.map((tool) => h("button", { "aria-pressed": "false", onclick: () => this.choose(this.tool === tool ? undefined : tool) }, tool.title));
    this.hint = h("p", { class: "hint", role: "status", hidden: true });
    this.element = h("div", { class: "pose-tools", role: "toolbar", "aria-label": "Publish" }, this.buttons);
    const { canvas } = viewport;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => this.release());
    canvas.addEventListener("keydown", (event) => this.key(event), { capture: true });
    this.refresh();
    connection.on("state", () => this.refresh());
    connection.on("info", () => this.refresh());
  }

  /** Topics by title, which a `.rviz` file may change. */
  setTopics(topics = {}) {
    for (const tool of TOOLS) {
      tool.usual ??= tool.topic;
      tool.topic = topics[tool.title] ?? tool.usual;
    }
    this.refresh();
  }

  refresh() {
    const refusal = this.connection.publishRefusal;
    this.buttons.forEach((button, i) => {
      button.disabled = Boolean(refusal);
      button.title = refusal || `publish ${TOOLS[i].topic}`;
    });
    if (refusal) this.choose(undefined);
  }

  say(text) {
    setText(this.hint, text);
    this.hint.hidden = !text;
  }

  choose(tool) {
    this.tool = tool;
    this.at = undefined;
    this.arrow.visible = false;
    this.viewport.controls.enabled = !tool;
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(TOOLS[i] === tool)));
    this.say(tool ? `${tool.topic}: press on the ground${tool.turns ? " and drag to the direction" : ""}. Keys: arrows, Enter, Escape` : "");
    if (tool) this.viewport.canvas.focus();
    this.viewport.request();
  }

  press(event) {
    if (!this.tool || event.button > 0) return;
    const point = this.viewport.groundPoint(event);
    if (!point) return;
    this.viewport.canvas.setPointerCapture(event.pointerId);
    this.isPressed = true;
    this.show({ x: point.x, y: point.y, yaw: 0 });
  }

  move(event) {
    if (!this.isPressed || !this.tool?.turns) return;
    const point = this.viewport.groundPoint(event);
    if (point && Math.hypot(point.x - this.at.x, point.y - this.at.y) > 0.05) {
      this.show({ ...this.at, yaw: Math.atan2(point.y - this.at.y, point.x - this.at.x) });
    }
  }

  release() {
    if (!this.isPressed) return;
    this.isPressed = false;
    this.publish();
  }

  show(at) {
    this.at = at;
    this.arrow.visible = true;
    this.arrow.position.set(at.x, at.y, 0.03);
    this.arrow.rotation.z = at.yaw;
    this.arrow.scale.setScalar(Math.max(0.3, this.viewport.distance * 0.09));
    this.viewport.request();
  }

  key(event) {
    if (!this.tool) return;
    const { x, y } = this.viewport.controls.target;
    const at = this.at ?? { x, y, yaw: 0 };
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === "Escape") this.choose(undefined);
    else if (event.key === "Enter" && this.at) this.publish();
    else if ((dx || dy) && event.shiftKey) this.show({ ...at, yaw: at.yaw + (dy - dx) * 0.1 });
    else if (dx || dy) this.show({ ...at, x: at.x + dx * 0.1, y: at.y + dy * 0.1 });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  publish() {
    const { tool, at, connection } = this;
    const header = { stamp: connection.stamp(), frame_id: this.fixedFrame() };
    this.choose(undefined);
    try {
      connection.publish(tool.topic, tool.type, SCHEMAS[tool.type], { header, ...tool.body(at) });
      this.say(`${tool.topic}: ${at.x.toFixed(2)}, ${at.y.toFixed(2)} in ${header.frame_id} published`);
    } catch (error) {
      this.say(`${tool.topic}: ${error.message}`);
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.say(""), 4000);
  }
}
