// Frames of the transform tree as axes, with names and lines to their parents.

import { dispose } from "./displays.js";
import { textSprite } from "./markers.js";
import * as THREE from "./vendor/three/three.module.min.js";

const AXIS_METRES = 0.3;
/** Height of a name, as a part of the view at distance 1. */
const LABEL_HEIGHT = 0.014;
/** With more frames, names would hide the robot. */
const NAMES_MAX = 40;

/** Axes of a length: red x, green y, blue z. */
export function axesObject(length) {
  const geometry = new THREE.BufferGeometry();
  const ends = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1].map((value) => value * length);
  const colours = [[0.9, 0.25, 0.25], [0.3, 0.75, 0.3], [0.3, 0.5, 0.95]].flatMap((colour) => [...colour, ...colour]);
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(ends, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colours, 3));
  return new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true }));
}

export class FrameAxes {
  constructor() {
    this.group = new THREE.Group();
    this.frames = new Map();
    this.lines = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: "#888888", transparent: true, opacity: 0.6 }));
    this.lines.frustumCulled = false;
    this.group.add(this.lines);
    this.colour = "#888888";
    this.setOptions();
  }

  /** What a `.rviz` file says of frames. */
  setOptions({ scale = 1, names = true, axes = true, arrows = true, hidden = new Set() } = {}) {
    this.options = { scale, names, axes, arrows, hidden };
    this.clear();
  }

  clear() {
    for (const frame of this.frames.values()) dispose(frame);
    this.frames.clear();
  }

  setColour(colour) {
    this.colour = colour;
    this.lines.material.color.set(colour);
    this.clear();
  }

  make(name) {
    const frame = new THREE.Group();
    if (this.options.axes) frame.add(axesObject(AXIS_METRES * this.options.scale));
    const label = textSprite(name, this.colour, LABEL_HEIGHT, 24);
    label.material.sizeAttenuation = false;
    label.center.set(0, -0.2);
    label.userData.scale = label.scale.clone();
    frame.add(label);
    frame.label = label;
    this.group.add(frame);
    this.frames.set(name, frame);
    return frame;
  }

  /** `labelScale` is 1 where the camera scales names by their distance. */
  place(buffer, fixed, labelScale) {
    const { names, arrows, hidden } = this.options;
    const ends = [];
    for (const [name, frame] of this.frames) {
      if (buffer.names.has(name)) continue;
      dispose(frame);
      this.frames.delete(name);
    }
    for (const name of buffer.names) {
      const transform = buffer.lookup(fixed, name);
      const frame = this.frames.get(name) ?? this.make(name);
      frame.visible = Boolean(transform) && !hidden.has(name);
      if (!frame.visible) continue;
      frame.position.set(...transform.t);
      frame.quaternion.set(...transform.q);
      frame.label.visible = names && buffer.names.size <= NAMES_MAX;
      frame.label.scale.copy(frame.label.userData.scale).multiplyScalar(labelScale);
      const parent = buffer.frames.get(name)?.parent;
      const above = arrows && parent && !hidden.has(parent) && buffer.lookup(fixed, parent);
      if (above) ends.push(...transform.t, ...above.t);
    }
    this.lines.geometry.dispose();
    this.lines.geometry = new THREE.BufferGeometry();
    this.lines.geometry.setAttribute("position", new THREE.Float32BufferAttribute(ends, 3));
  }
}
