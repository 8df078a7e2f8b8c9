// Markers and marker arrays: every type of visualization_msgs/Marker but arrow strips.
//
// Lists of shapes are one instanced mesh. A marker ends with its lifetime, by its action or when the
// display is full.

import { IDENTITY } from "./tf.js";
import * as THREE from "./vendor/three/three.module.min.js";

const MARKERS_MAX = 5000;
const POINTS_MAX = 2_000_000;
const TYPES = ["arrow", "cube", "sphere", "cylinder", "line_strip", "line_list", "cube_list", "sphere_list", "points", "text", "mesh", "triangle_list"];

const SHAPES = {
  cube: () => new THREE.BoxGeometry(1, 1, 1),
  sphere: () => new THREE.SphereGeometry(0.5, 20, 12),
  cylinder: () => new THREE.CylinderGeometry(0.5, 0.5, 1, 24).rotateX(Math.PI / 2),
};

const colourOf = ({ r, g, b }) => new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace);

function look(kind, { color, colors }, more = {}) {
  const isListed = colors.length > 0;
  return new kind({ color: isListed ? "#ffffff" : colourOf(color), opacity: color.a || (isListed ? 1 : 0), transparent: color.a < 1, depthWrite: color.a >= 1, ...more });
}

/** A text that faces the camera. `height` is that of a line, in metres. */
export function textSprite(text, colour, height, pixels = 48) {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const lines = text.slice(0, 500).split("\n").slice(0, 20);
  const font = `500 ${pixels}px system-ui, sans-serif`;
  context.font = font;
  const width = Math.min(4096, Math.ceil(Math.max(1, ...lines.map((line) => context.measureText(line).width))) + 8);
  canvas.width = width;
  canvas.height = Math.ceil(lines.length * pixels * 1.25);
  context.font = font;
  context.fillStyle = colour;
  context.textBaseline = "middle";
  lines.forEach((line, i) => context.fillText(line, 4, (i + 0.5) * pixels * 1.25));
  const map = new THREE.CanvasTexture(canvas);
  map.colorSpace = THREE.SRGBColorSpace;
  const sprite = new THREE.Sprite(new THREE.SpriteMaterial({ map, transparent: true, depthTest: false }));
  const scale = height / pixels;
  sprite.scale.set(width * scale, canvas.height * scale, 1);
  return sprite;
}

function positions(points) {
  const values = new Float32Array(points.length * 3);
  points.forEach(({ x, y, z }, i) => values.set([x, y, z], i * 3));
  return new THREE.BufferAttribute(values, 3);
}

function vertexGeometry({ points, colors }) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", positions(points));
  if (colors.length === points.length && colors.length) {
    const values = new Float32Array(colors.length * 4);
    colors.forEach((colour, i) => values.set([...colourOf(colour).toArray(), colour.a], i * 4));
    geometry.setAttribute("color", new THREE.BufferAttribute(values, 4));
  }
  return geometry;
}

function instances(marker, shape) {
  const { points, colors, scale } = marker;
  const mesh = new THREE.InstancedMesh(SHAPES[shape](), look(THREE.MeshLambertMaterial, marker), points.length);
  const matrix = new THREE.Matrix4().makeScale(scale.x, scale.y, scale.z);
  points.forEach(({ x, y, z }, i) => {
    mesh.setMatrixAt(i, matrix.setPosition(x, y, z));
    if (colors.length === points.length) mesh.setColorAt(i, colourOf(colors[i]));
  });
  return mesh;
}

function arrow(marker) {
  const { points, scale } = marker;
  const material = look(THREE.MeshLambertMaterial, marker);
  const group = new THREE.Group();
  let [length, shaft, head, headLength] = [scale.x, scale.y / 2, scale.y, scale.x * 0.23];
  if (points.length >= 2) {
    const from = new THREE.Vector3().copy(points[0]);
    const along = new THREE.Vector3().copy(points[1]).sub(from);
    length = along.length();
    [shaft, head, headLength] = [scale.x / 2, scale.y / 2, Math.min(length, scale.z || length * 0.23)];
    group.position.copy(from);
    group.quaternion.setFromUnitVectors(new THREE.Vector3(1, 0, 0), along.normalize());
  }
  const body = Math.max(1e-6, length - headLength);
  const turned = (geometry, x) => new THREE.Mesh(geometry.rotateZ(-Math.PI / 2).translate(x, 0, 0), material);
  group.add(turned(new THREE.CylinderGeometry(shaft, shaft, body, 16), body / 2));
  group.add(turned(new THREE.ConeGeometry(head, headLength, 16), body + headLength / 2));
  const holder = new THREE.Group();
  holder.add(group);
  return holder;
}

function build(marker, kind) {
  const { scale, points } = marker;
  const colours = { vertexColors: marker.colors.length === points.length && points.length > 0 };
  if (points.length > POINTS_MAX) throw new Error(`${points.length} points are more than ${POINTS_MAX}`);
  if (SHAPES[kind]) {
    const mesh = new THREE.Mesh(SHAPES[kind](), look(THREE.MeshLambertMaterial, { ...marker, colors: [] }));
    mesh.scale.set(scale.x || 1e-6, scale.y || 1e-6, scale.z || 1e-6);
    return mesh;
  }
  if (kind === "arrow") return arrow({ ...marker, colors: [] });
  if (kind === "cube_list" || kind === "sphere_list") return instances(marker, kind.split("_")[0]);
  if (kind === "text") {
    const { r, g, b, a } = marker.color;
    const sprite = textSprite(marker.text, `#${new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace).getHexString()}`, scale.z);
    sprite.material.opacity = a;
    return sprite;
  }
  const geometry = vertexGeometry(marker);
  if (kind === "points") return new THREE.Points(geometry, look(THREE.PointsMaterial, marker, { ...colours, size: scale.x || 0.02 }));
  if (kind === "line_strip") return new THREE.Line(geometry, look(THREE.LineBasicMaterial, marker, colours));
  if (kind === "line_list") return new THREE.LineSegments(geometry, look(THREE.LineBasicMaterial, marker, colours));
  geometry.computeVertexNormals();
  const mesh = new THREE.Mesh(geometry, look(THREE.MeshLambertMaterial, marker, { ...colours, side: THREE.DoubleSide }));
  mesh.scale.set(scale.x || 1, scale.y || 1, scale.z || 1);
  return mesh;
}

export const markerDisplay = (Display) => class Markers extends Display {
  markers = new Map();

  update(message, now) {
    for (const marker of message.markers ?? [message]) this.change(marker, now);
    this.count = this.markers.size === 1 ? "1 marker" : `${this.markers.size} markers`;
    this.collect();
  }

  change(marker, now) {
    if (marker.action === 3) return this.clear(marker.ns);
    const key = `${marker.ns}\n${marker.id}`;
    this.remove(key);
    if (marker.action === 2 || this.preset.hiddenNamespaces?.has(marker.ns)) return;
    if (this.markers.size >= MARKERS_MAX) throw new Error(`more than ${MARKERS_MAX} markers`);
    const kind = TYPES[marker.type];
    if (!kind) throw new Error(`marker type ${marker.type} is not supported`);
    const holder = new THREE.Group();
    const inner = new THREE.Group();
    const { position: p, orientation: q } = marker.pose;
    inner.position.set(p.x, p.y, p.z);
    inner.quaternion.set(q.x, q.y, q.z, q.w);
    if (inner.quaternion.lengthSq() < 1e-9) inner.quaternion.set(...IDENTITY.q);
    inner.quaternion.normalize();
    if (kind === "mesh") this.loadMesh(marker, inner);
    else inner.add(build(marker, kind));
    inner.traverse((object) => (object.frustumCulled = false));
    holder.add(inner);
    this.group.add(holder);
    const life = marker.lifetime.sec + marker.lifetime.nanosec / 1e9;
    const time = marker.frame_locked ? undefined : marker.header.stamp.sec + marker.header.stamp.nanosec / 1e9;
    this.markers.set(key, { holder, frame: marker.header.frame_id, time: time || undefined, end: life > 0 ? now + life : Infinity });
  }

  loadMesh(marker, inner) {
    const { scale } = marker;
    this.meshes.load(marker.mesh_resource).then((mesh) => {
      mesh.scale.multiply(new THREE.Vector3(scale.x || 1, scale.y || 1, scale.z || 1));
      if (!marker.mesh_use_embedded_materials) mesh.traverse((object) => object.isMesh && (object.material = look(THREE.MeshLambertMaterial, { ...marker, colors: [] })));
      inner.add(mesh);
      this.changed?.();
    }, (error) => {
      this.problem = `${marker.mesh_resource}: ${error.message}`;
    });
  }

  remove(key) {
    const marker = this.markers.get(key);
    if (!marker) return;
    this.markers.delete(key);
    this.disposeObject(marker.holder);
  }

  clear(namespace) {
    for (const key of [...this.markers.keys()]) if (!namespace || key.startsWith(`${namespace}\n`)) this.remove(key);
  }

  /** Ends the markers whose lifetime is over. Returns whether one did. */
  expire(now) {
    const before = this.markers.size;
    for (const [key, { end }] of this.markers) if (end < now) this.remove(key);
    if (this.markers.size !== before) this.collect();
    return this.markers.size !== before;
  }

  collect() {
    this.anchors = [...this.markers.values()].map(({ holder, frame, time }) => ({ object: holder, frame, time }));
  }
};
