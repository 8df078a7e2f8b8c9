// Displays of the scene by message type: laser scans, paths, poses, odometry, points and polygons.
//
// A display turns messages into three.js objects. It names the frame and time of each in `anchors`;
// scene.js places them by the transform buffer at every drawing. A fault is a text in `problem`.

import { cloudDisplay } from "./clouds.js";
import { gridDisplay } from "./grid.js";
import { markerDisplay } from "./markers.js";
import { axesDisplay, groundDisplay } from "./reference.js";
import * as THREE from "./vendor/three/three.module.min.js";

export const seconds = ({ sec, nanosec }) => sec + nanosec / 1e9;
const POINTS_MAX = 4_000_000;

/** Colours of displays, in the order in which displays of a kind appear. */
const COLOURS = ["#e5604d", "#4c9be8", "#d9a441", "#9b7fe0", "#5fb865", "#d96ba8"];

/** Frees the GPU memory of an object and all below it. */
export function dispose(object) {
  object.traverse(({ geometry, material }) => {
    geometry?.dispose();
    for (const one of [material].flat()) {
      one?.map?.dispose();
      one?.dispose();
    }
  });
  object.removeFromParent();
}

export class Display {
  /** `preset` has what a `.rviz` file says of the display. */
  constructor(topic, type, index, preset = {}) {
    Object.assign(this, { topic, type, preset });
    this.colour = new THREE.Color(preset.colour ?? COLOURS[index % COLOURS.length]);
    const { alpha = 1 } = preset;
    /** Properties of the display's material. */
    this.look = { color: this.colour, opacity: alpha, transparent: alpha < 1 };
    this.group = new THREE.Group();
    /** What is placed: `{object, frame, time}`. */
    this.anchors = [];
    this.problem = "";
    this.count = "";
    this.settings = {};
  }

  /** One object in the frame of a header. */
  place(header, object = this.group) {
    this.anchors = [{ object, frame: header.frame_id, time: seconds(header.stamp) }];
  }

  update() {}

  dispose() {
    dispose(this.group);
  }
}

/** A geometry whose buffer grows and is written again by each message. */
export class Points3 {
  constructor(kind, material) {
    this.geometry = new THREE.BufferGeometry();
    this.object = new kind(this.geometry, material);
    this.object.frustumCulled = false;
    this.reserve(64);
  }

  reserve(count) {
    if (count > POINTS_MAX) throw new Error(`${count} points are more than ${POINTS_MAX}`);
    if (this.values?.length >= count * 3) return;
    this.geometry.dispose();
    this.values = new Float32Array(Math.ceil(count * 1.5) * 3);
    const attribute = new THREE.BufferAttribute(this.values, 3);
    attribute.setUsage(THREE.DynamicDrawUsage);
    this.geometry.setAttribute("position", attribute);
  }

  /** Shows the first `count` points of `values`. */
  shown(count) {
    const { position } = this.geometry.attributes;
    position.clearUpdateRanges();
    position.addUpdateRange(0, count * 3);
    position.needsUpdate = true;
    this.geometry.setDrawRange(0, count);
  }
}

class LaserScan extends Display {
  constructor(...names) {
    super(...names);
    this.material = new THREE.PointsMaterial({ ...this.look, size: this.preset.size ?? 3, sizeAttenuation: false });
    this.points = new Points3(THREE.Points, this.material);
    this.group.add(this.points.object);
  }

  update({ header, angle_min, angle_increment, range_min, range_max, ranges }) {
    this.points.reserve(ranges.length);
    const { values } = this.points;
    let count = 0;
    for (let i = 0; i < ranges.length; i++) {
      const range = ranges[i];
      if (!(range >= range_min && range <= range_max)) continue;
      const angle = angle_min + i * angle_increment;
      values[count * 3] = range * Math.cos(angle);
      values[count * 3 + 1] = range * Math.sin(angle);
      values[count * 3 + 2] = 0;
      count += 1;
    }
    this.points.shown(count);
    this.count = `${count} points`;
    this.place(header);
  }
}

class Line extends Display {
  constructor(...names) {
    super(...names);
    this.material = new THREE.LineBasicMaterial(this.look);
    this.line = new Points3(THREE.Line, this.material);
    this.group.add(this.line.object);
  }

  show(header, points) {
    this.line.reserve(points.length);
    points.forEach(({ x, y, z }, i) => this.line.values.set([x, y, z + 0.01], i * 3));
    this.line.shown(points.length);
    this.count = `${points.length} points`;
    this.place(header);
  }
}

class Path extends Line {
  update({ header, poses }) {
    this.show(header, poses.map(({ pose }) => pose.position));
  }
}

class Polygon extends Line {
  update({ header, polygon }) {
    const { points } = polygon;
    this.show(header, points.length ? [...points, points[0]] : []);
  }
}

/** A flat arrow of length 1 along x. */
export function arrowGeometry() {
  const shape = new THREE.Shape();
  for (const [x, y] of [[0, -0.06], [0.6, -0.06], [0.6, -0.2], [1, 0], [0.6, 0.2], [0.6, 0.06], [0, 0.06]]) shape.lineTo(x, y);
  return new THREE.ShapeGeometry(shape);
}

function setPose(object, { position: p, orientation: q }) {
  object.position.set(p.x, p.y, p.z);
  object.quaternion.set(q.x, q.y, q.z, q.w);
  if (object.quaternion.lengthSq() < 1e-9) object.quaternion.identity();
  object.quaternion.normalize();
}

class Poses extends Display {
  constructor(...names) {
    super(...names);
    this.material = new THREE.MeshBasicMaterial({ ...this.look, side: THREE.DoubleSide });
    this.helper = new THREE.Object3D();
  }

  show(header, poses, scale) {
    if (poses.length > 100_000) throw new Error(`${poses.length} poses are more than 100000`);
    if (!this.mesh || this.mesh.instanceMatrix.count < poses.length) {
      this.mesh?.removeFromParent();
      this.mesh?.dispose();
      this.geometry ??= arrowGeometry();
      this.mesh = new THREE.InstancedMesh(this.geometry, this.material, Math.max(1, poses.length * 2));
      this.mesh.frustumCulled = false;
      this.group.add(this.mesh);
    }
    poses.forEach((pose, i) => {
      setPose(this.helper, pose);
      this.helper.position.z += 0.02;
      this.helper.scale.setScalar(scale);
      this.helper.updateMatrix();
      this.mesh.setMatrixAt(i, this.helper.matrix);
    });
    this.mesh.count = poses.length;
    this.mesh.instanceMatrix.needsUpdate = true;
    this.count = poses.length === 1 ? "" : `${poses.length} poses`;
    this.place(header);
  }

  update({ header, pose, poses, particles }) {
    if (particles) this.show(header, particles.map((particle) => particle.pose), 0.15);
    else if (poses) this.show(header, poses, 0.25);
    else this.show(header, [pose.pose ?? pose], 0.6);
  }
}

/** The newest pose, and the way that led there. */
class Odometry extends Poses {
  trail = [];

  update(message) {
    const { pose } = message.pose;
    const last = this.trail[this.trail.length - 1];
    const far = !last || Math.hypot(last.position.x - pose.position.x, last.position.y - pose.position.y) > 0.1;
    if (far) this.trail.push(pose);
    if (this.trail.length > (this.preset.keep ?? 200)) this.trail.shift();
    this.show(message.header, [...this.trail, pose], 0.25);
    this.count = "";
  }
}

class PointStamped extends Display {
  constructor(...names) {
    super(...names);
    this.ball = new THREE.Mesh(new THREE.SphereGeometry(this.preset.radius ?? 0.08), new THREE.MeshLambertMaterial(this.look));
    this.group.add(this.ball);
  }

  update({ header, point }) {
    this.ball.position.set(point.x, point.y, point.z);
    this.place(header);
  }
}

/** Kinds by message type: the class, and whether a display is on from the beginning. */
export const KINDS = {
  "sensor_msgs/msg/LaserScan": { make: LaserScan, on: true },
  "sensor_msgs/msg/PointCloud2": { make: cloudDisplay(Display), on: true },
  "nav_msgs/msg/OccupancyGrid": { make: gridDisplay(Display), on: true },
  "nav_msgs/msg/Path": { make: Path, on: true },
  "nav_msgs/msg/Odometry": { make: Odometry, on: false },
  "geometry_msgs/msg/PoseStamped": { make: Poses, on: true },
  "geometry_msgs/msg/PoseWithCovarianceStamped": { make: Poses, on: true },
  "geometry_msgs/msg/PoseArray": { make: Poses, on: true },
  "nav2_msgs/msg/ParticleCloud": { make: Poses, on: true },
  "geometry_msgs/msg/PointStamped": { make: PointStamped, on: true },
  "geometry_msgs/msg/PolygonStamped": { make: Polygon, on: true },
  "visualization_msgs/msg/Marker": { make: markerDisplay(Display), on: true },
  "visualization_msgs/msg/MarkerArray": { make: markerDisplay(Display), on: true },
};

/** Kinds without a topic, which `.rviz` files have. */
export const REFERENCE_KINDS = { Grid: { make: groundDisplay(Display) }, Axes: { make: axesDisplay(Display) } };
