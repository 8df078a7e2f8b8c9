// Displays without a topic, as `.rviz` files have them: ground grids and axes at a frame.

import { axesObject } from "./frames.js";
import * as THREE from "./vendor/three/three.module.min.js";

/** A grid of `count` × `count` cells in a plane of its frame. */
export const groundDisplay = (Display) => class Ground extends Display {
  constructor(...names) {
    super(...names);
    const { cell, count, plane, offset, colour, alpha, frame } = this.preset;
    const half = (cell * count) / 2;
    const ends = [];
    for (let i = 0; i <= count; i++) {
      const at = i * cell - half;
      ends.push(at, -half, 0, at, half, 0, -half, at, 0, half, at, 0);
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(ends, 3));
    const lines = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: colour ?? "#a0a0a4", transparent: true, opacity: alpha, depthWrite: false }));
    if (plane === "XZ") lines.rotation.x = Math.PI / 2;
    if (plane === "YZ") lines.rotation.y = Math.PI / 2;
    lines.position.set(...offset);
    // Below what lies on the ground.
    if (plane === "XY") lines.position.z -= 0.005;
    this.group.add(lines);
    this.anchors = [{ object: this.group, frame }];
  }
};

/** The axes of a frame. */
export const axesDisplay = (Display) => class Axes extends Display {
  constructor(...names) {
    super(...names);
    this.group.add(axesObject(this.preset.length));
    this.anchors = [{ object: this.group, frame: this.preset.frame }];
  }
};
