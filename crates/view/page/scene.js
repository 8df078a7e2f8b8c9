// Scene panel: chooses displays by the channels, subscribes them, places them in the fixed frame.

import { dispose, KINDS, REFERENCE_KINDS } from "./displays.js";
import { empty, h, reconcile, setOptions, setText, store, stored, Ticker } from "./dom.js";
import { FrameAxes } from "./frames.js";
import { COMPRESSED_IMAGE, imageCard, RAW_IMAGE } from "./image_card.js";
import { MeshCache } from "./meshes.js";
import { PoseTools } from "./pose_tools.js";
import { RobotModel } from "./robot_model.js";
import { qosProblem } from "./rviz.js";
import { RvizFiles } from "./rviz_files.js";
import { IDENTITY, TransformBuffer } from "./tf.js";
import * as THREE from "./vendor/three/three.module.min.js";
import { Viewport } from "./viewport.js";

const TF_TYPE = "tf2_msgs/msg/TFMessage";
const WORLD_FRAMES = ["map", "odom", "world"];
const BODY_FRAMES = ["base_link", "base_footprint"];
const DISPLAYS_MAX = 200;
/** Images are in a corner of the scene; they are off from the beginning. */
const IMAGE_KIND = { isImage: true, on: false };

const isImage = ({ schemaName }) => schemaName === RAW_IMAGE || schemaName === COMPRESSED_IMAGE;

export function createScene(app) {
  try {
    return new Scene(app);
  } catch (error) {
    console.error(error);
    const element = empty(`The scene needs WebGL 2, which this browser does not offer. ${error.message}`);
    return { element, show() {}, hide() {}, focus() {} };
  }
}

class Scene {
  constructor({ connection }) {
    this.connection = connection;
    this.buffer = new TransformBuffer();
    this.entries = new Map();
    this.ends = [];
    this.chosen = stored("displays", {});
    this.wantedFrame = "";
    this.viewport = new Viewport(() => this.place());
    const changed = () => this.viewport.request();
    this.meshes = new MeshCache(connection);
    this.model = new RobotModel(this.meshes, changed);
    this.axes = new FrameAxes();
    this.viewport.scene.add(this.model.group, this.axes.group);
    this.viewport.onTheme((theme) => this.applyTheme(theme));
    this.tools = new PoseTools(connection, this.viewport, () => this.fixed);
    this.buildElement();
    this.viewport.applyTheme();
    connection.on("channels", () => this.syncChannels());
    connection.on("info", ({ sessionId }) => {
      // Frames of a robot that has restarted are no longer true.
      if (sessionId !== this.sessionId) this.buffer.clear();
      this.sessionId = sessionId;
    });
    connection.on("state", ({ phase }) => phase === "lost" && this.drawList());
    this.show = this.show.bind(this);
    this.hide = this.hide.bind(this);
    this.ticker = new Ticker(500, () => this.tick());
    this.syncChannels();
  }

  buildElement() {
    this.frameSelect = h("select", { "aria-label": "Fixed frame", onchange: () => this.setFixed(this.frameSelect.value) });
    this.rows = new Map();
    this.list = h("ul", { class: "displays" });
    const view = (title, fromAbove) => h("button", { onclick: () => this.resetView(fromAbove) }, title);
    this.followBox = h("input", { type: "checkbox", onchange: () => (this.followed = undefined) });
    this.overlay = h("details", { class: "overlay", open: innerWidth > 760 },
      h("summary", {}, "Displays"),
      h("label", { class: "fixed" }, "fixed frame ", this.frameSelect),
      this.list);
    this.message = h("p", { class: "hint" });
    this.corner = h("div", { class: "corner" });
    this.files = new RvizFiles(this.connection, (file) => this.applyFile(file));
    this.list.before(this.files.element);
    this.element = h("div", { class: "scene" }, this.viewport.canvas, this.corner, this.overlay,
      h("div", { class: "view-tools" }, view("Robot", false), view("Above", true), h("label", { class: "button" }, this.followBox, " follow"), this.tools.element),
      h("div", { class: "hints" }, this.message, this.tools.hint));
    this.files.dropOn(this.element);
  }

  focus() {
    this.viewport.canvas.focus();
  }

  // ---- channels

  isOn({ key, byDefault }) {
    return this.chosen[key] ?? byDefault;
  }

  /** Shows what a `.rviz` file says, or the page's own choice. */
  applyFile(file) {
    this.file = file;
    this.chosen = file ? {} : stored("displays", {});
    for (const [key, entry] of this.entries) this.removeEntry(key, entry);
    for (const { element } of this.rows.values()) element.remove();
    this.rows.clear();
    this.model.setOptions(file?.robot);
    if (this.urdf) this.model.load(this.urdf);
    this.axes.setOptions(file?.frames);
    this.tools.setTopics(file?.tools);
    this.viewport.setBackground(file?.background);
    this.wantedFrame = file?.fixedFrame ?? "";
    this.target = file?.view?.target;
    this.followBox.checked = Boolean(this.target);
    this.followed = undefined;
    this.chooseFixed();
    if (file?.view) this.takeView(file.view);
    else this.resetView(false);
    this.syncChannels();
  }

  takeView(view) {
    this.isPlaced = true;
    this.viewport.setView(view);
    // The view's numbers are relative to its target: the first `follow` moves it there.
    if (view.target) this.followed = [0, 0, 0];
  }

  syncChannels() {
    const counts = {};
    const { file } = this;
    this.entry({ key: "robot", topic: "Robot model", byDefault: file ? Boolean(file.robot?.enabled) : true });
    this.entry({ key: "tf", topic: "Frames", byDefault: file ? Boolean(file.frames?.enabled) : true });
    for (const display of file?.displays ?? []) this.fileEntry(display, counts);
    const seen = new Set(this.file ? ["robot", "tf", ...file.displays.map(({ key }) => key)] : ["robot", "tf"]);
    const channels = [...this.connection.channels.values()].sort((a, b) => (a.topic < b.topic ? -1 : 1));
    for (const { topic, schemaName } of channels) {
      const kind = isImage({ schemaName }) ? IMAGE_KIND : KINDS[schemaName];
      const key = kind === IMAGE_KIND ? `${topic}\nimage` : `${topic}\n${schemaName}`;
      if (!kind || seen.has(key) || this.entries.size >= DISPLAYS_MAX) continue;
      const index = (counts[schemaName] = (counts[schemaName] ?? -1) + 1);
      seen.add(key);
      const isHeavy = (schemaName.endsWith("PointCloud2") && index > 0) || /costmap/.test(topic);
      this.entry({ key, topic, type: schemaName, byDefault: kind.on && !isHeavy && !file, kind, index });
    }
    if (this.connection.channels.size > 0) {
      for (const [key, entry] of this.entries) if (!seen.has(key)) this.removeEntry(key, entry);
    }
    const descriptions = channels.filter(({ schemaName }) => schemaName === "std_msgs/msg/String");
    this.description = descriptions.find(({ topic }) => topic === file?.robot?.topic) ?? descriptions.find(({ topic }) => /robot_description$/.test(topic));
    if (this.isShown) this.subscribeAll();
    this.drawList();
  }

  entry(entry) {
    if (!this.entries.has(entry.key)) this.entries.set(entry.key, { type: "", index: 0, ...entry });
  }

  fileEntry({ key, name, title, topic, type = "", qos, enabled, preset }, counts) {
    const kind = !topic ? REFERENCE_KINDS[name] : type === "image" ? IMAGE_KIND : KINDS[type];
    const index = (counts[type] = (counts[type] ?? -1) + 1);
    this.entry({ key, topic: topic ?? title, title, type, byDefault: enabled, kind, index, preset, qos });
  }

  removeEntry(key, entry) {
    this.stopDisplay(entry);
    this.entries.delete(key);
  }

  subscribeAll() {
    for (const entry of this.entries.values()) {
      const on = this.isOn(entry);
      if (entry.kind && on) this.startDisplay(entry);
      else this.stopDisplay(entry);
    }
    if (this.ends.length === 0) {
      const tf = (topic, isStatic) => this.connection.subscribe(topic, TF_TYPE, (message) => this.receiveTf(message, isStatic));
      this.ends = [tf("/tf", false), tf("/tf_static", true)];
    }
    this.subscribeDescription();
    this.model.group.visible = this.isOn(this.entries.get("robot"));
    this.axes.group.visible = this.isOn(this.entries.get("tf"));
    this.viewport.request();
  }

  subscribeDescription() {
    const topic = this.isOn(this.entries.get("robot")) ? this.description?.topic : undefined;
    if (topic === this.describedBy) return;
    this.endDescription?.();
    this.describedBy = topic;
    this.endDescription = topic && this.connection.subscribe(topic, "", (message) => {
      const text = message.value?.data;
      if (typeof text !== "string" || text === this.urdf) return;
      this.urdf = text;
      this.model.load(text);
      this.viewport.request();
    });
  }

  startDisplay(entry) {
    if (entry.display || entry.card) return;
    if (entry.kind.isImage) return this.startImage(entry);
    const display = new entry.kind.make(entry.topic, entry.type, entry.index, entry.preset);
    Object.assign(display, { meshes: this.meshes, changed: () => this.viewport.request(), disposeObject: dispose });
    display.setTheme?.(this.theme);
    entry.display = display;
    this.viewport.scene.add(display.group);
    const receive = (update) => (message) => {
      entry.fault = message.error ?? "";
      try {
        if (message.value) update(message.value);
      } catch (error) {
        entry.fault = error.message;
      }
      this.viewport.request();
    };
    if (!entry.type) return;
    entry.ends = [this.connection.subscribe(entry.topic, entry.type, receive((value) => display.update(value, performance.now() / 1000)))];
    if (display.updatesTopic) entry.ends.push(this.connection.subscribe(...display.updatesTopic, receive((value) => display.updatePart(value))));
  }

  startImage(entry) {
    const channel = this.connection.channelsOf(entry.topic).find(isImage);
    if (!channel) return;
    entry.card = imageCard(this.connection, channel);
    this.corner.append(entry.card.element);
  }

  stopDisplay(entry) {
    entry.card?.dispose();
    entry.card?.element.remove();
    entry.card = undefined;
    for (const end of entry.ends ?? []) end();
    entry.display?.dispose();
    entry.display = entry.ends = undefined;
    entry.fault = "";
  }

  receiveTf({ value, error }, isStatic) {
    this.tfFault = error ?? "";
    if (!value) return;
    if (this.buffer.add(value, isStatic)) this.chooseFixed();
    this.viewport.request();
  }

  // ---- fixed frame and view

  chooseFixed() {
    const names = [...this.buffer.names].sort();
    const roots = names.filter((name) => this.buffer.root(name) === name);
    const automatic = WORLD_FRAMES.find((name) => this.buffer.names.has(name)) ?? roots[0] ?? "";
    const before = this.fixed;
    this.fixed = this.buffer.names.has(this.wantedFrame) ? this.wantedFrame : automatic;
    if (this.fixed !== before) this.isPlaced = Boolean(this.file?.view);
    setOptions(this.frameSelect, names, this.fixed);
    if (!this.isPlaced && this.bodyPosition()) {
      this.isPlaced = true;
      this.resetView(false);
    }
  }

  setFixed(name) {
    this.wantedFrame = this.fixed = name;
    this.followed = undefined;
    this.resetView(false);
  }

  bodyPosition() {
    const body = this.target ?? BODY_FRAMES.find((name) => this.buffer.names.has(name)) ?? this.model.robot?.root;
    return body && this.buffer.lookup(this.fixed, body)?.t;
  }

  resetView(fromAbove) {
    this.viewport.look(this.bodyPosition() ?? [0, 0, 0], fromAbove ? 14 : 8, fromAbove);
  }

  applyTheme(theme) {
    this.theme = theme;
    this.axes.setColour(theme.text);
    for (const { display } of this.entries.values()) display?.setTheme?.(theme);
  }

  /** Places every object by the newest transforms, before a drawing. */
  place() {
    this.follow();
    for (const entry of this.entries.values()) if (entry.display) this.placeDisplay(entry);
    if (this.axes.group.visible) this.axes.place(this.buffer, this.fixed ?? "", this.viewport.isAbove ? this.viewport.distance : 1);
    if (this.model.group.visible) this.missing = this.model.place((name) => this.buffer.names.has(name) ? this.buffer.lookup(this.fixed, name) : undefined);
  }

  placeDisplay(entry) {
    entry.misplaced = "";
    for (const { object, frame, time } of entry.display.anchors) {
      // Those without a frame belong to the fixed one.
      const transform = frame === undefined ? IDENTITY : this.fixed === undefined ? undefined : this.buffer.lookup(this.fixed, frame, time);
      object.visible = Boolean(transform) || (this.fixed === undefined && entry.display.anchors.length > 0);
      if (transform) {
        object.position.set(...transform.t);
        object.quaternion.set(...transform.q);
      } else if (this.fixed !== undefined) {
        entry.misplaced = `no transform from ${frame || "an empty frame"} to ${this.fixed}`;
      }
    }
  }

  follow() {
    const at = this.followBox.checked ? this.bodyPosition() : undefined;
    if (at && this.followed) this.viewport.shift(new THREE.Vector3(...at).sub(new THREE.Vector3(...this.followed)));
    this.followed = at;
  }

  // ---- list

  tick() {
    const now = performance.now() / 1000;
    for (const { display } of this.entries.values()) if (display?.expire?.(now)) this.viewport.request();
    this.drawList();
  }

  drawList() {
    const { list } = this;
    reconcile(list, this.rows, [...this.entries.values()], ({ key }) => key, (entry) => this.makeRow(entry));
    const hasRobot = this.connection.state.phase !== "lost" && this.connection.state.phase !== "connecting";
    const { names } = this.buffer;
    const isMissing = this.wantedFrame && names.size > 0 && !names.has(this.wantedFrame);
    const noFrames = names.size === 0 && this.connection.channels.size > 0 ? "The robot publishes no transforms on /tf yet." : "";
    setText(this.message, hasRobot ? (isMissing ? `There is no frame ${this.wantedFrame}: ${this.fixed} is the fixed one.` : noFrames) : "");
    this.message.hidden = !this.message.textContent;
  }

  makeRow(entry) {
    const box = h("input", { type: "checkbox", checked: this.isOn(entry), onchange: () => {
      this.chosen[entry.key] = box.checked;
      if (!this.file) store("displays", this.chosen);
      if (this.isShown) this.subscribeAll();
      this.drawList();
    } });
    const swatch = h("span", { class: "swatch" });
    const note = h("div", { class: "note" });
    const options = h("div", { class: "options" });
    const element = h("li", {}, h("label", { title: entry.title }, box, swatch, h("span", { class: "name" }, entry.topic)), note, options);
    return { element, update: (current) => this.updateRow(current, { box, swatch, note, options }) };
  }

  updateRow(entry, { swatch, note, options }) {
    const { display } = entry;
    let problem = entry.fault || display?.problem || entry.misplaced || "";
    let text = display?.count ?? "";
    if (entry.key === "robot") {
      text = this.model.name;
      problem = this.model.problems[0] ?? (this.missing > 0 ? `${this.missing} links have no transform` : "");
      if (!this.description) text = "no robot_description";
    } else if (entry.key === "tf") {
      text = `${this.buffer.names.size} frames`;
      problem = this.tfFault ?? "";
    } else if (entry.type && !this.connection.channelsOf(entry.topic).length) text = "nobody publishes it";
    else if (display && !problem && display.anchors.length === 0) text = "nothing received yet";
    if (entry.qos) text = [text, this.qosProblem(entry)].filter(Boolean).join("; ");
    const isOn = this.isOn(entry);
    setText(note, isOn ? problem || text : "");
    note.classList.toggle("bad", isOn && Boolean(problem));
    note.title = entry.key === "robot" ? this.model.problems.join("\n") : entry.type;
    swatch.hidden = !display || !("material" in display) || Boolean(display.fields);
    if (display && !swatch.hidden) swatch.style.background = `#${display.colour.getHexString()}`;
    if (display?.fields?.length && options.childElementCount === 0) this.addCloudOptions(display, options);
    else if (!display) options.replaceChildren();
  }

  qosProblem({ topic, qos }) {
    const stats = this.connection.stats.topics.find(({ name }) => name === topic);
    return qosProblem(qos, stats?.publishers ?? []);
  }

  addCloudOptions(display, options) {
    const colour = h("select", { "aria-label": "Colour by", onchange: () => (display.settings.colour = colour.value) });
    setOptions(colour, [["", "colour: automatic"], ...display.fields.map((name) => [name, `colour: ${name}`])], display.settings.colour);
    const size = h("select", { "aria-label": "Point size", onchange: () => (display.settings.size = Number(size.value)) });
    setOptions(size, [...new Set([1, 2, 3, 5, 8, display.settings.size])].sort((a, b) => a - b).map((value) => [String(value), `${value} px`]), String(display.settings.size));
    options.append(colour, size);
  }

  show() {
    if (this.isShown) return;
    this.isShown = this.viewport.isShown = true;
    this.subscribeAll();
    this.ticker.start();
    this.viewport.resize();
  }

  hide() {
    if (!this.isShown) return;
    this.isShown = this.viewport.isShown = false;
    this.ticker.stop();
    for (const entry of this.entries.values()) this.stopDisplay(entry);
    for (const end of this.ends) end();
    this.ends = [];
    this.endDescription?.();
    this.describedBy = this.endDescription = undefined;
  }
}
