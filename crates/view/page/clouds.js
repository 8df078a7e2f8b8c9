// Point clouds: the message's bytes become the GPU's buffer as they are where x, y and z are floats at
// multiples of four bytes, which is so for every lidar driver known. Others are converted.

import * as THREE from "./vendor/three/three.module.min.js";

const POINTS_MAX = 8_000_000;
const READERS = {
  1: ["getInt8", 1], 2: ["getUint8", 1], 3: ["getInt16", 2], 4: ["getUint16", 2],
  5: ["getInt32", 4], 6: ["getUint32", 4], 7: ["getFloat32", 4], 8: ["getFloat64", 8],
};

const VERTEX = `
  uniform float size;
  uniform vec2 range;
  uniform bool hasColour;
  uniform vec3 plain;
  attribute float scalar;
  attribute vec3 rgb;
  varying vec3 colour;
  // A perceptually even scale (turbo, polynomial by A. Mikhailov).
  vec3 turbo(float x) {
    vec4 v4 = vec4(1.0, x, x * x, x * x * x);
    vec2 v2 = v4.zw * v4.z;
    return vec3(
      dot(v4, vec4(0.13572138, 4.61539260, -42.66032258, 132.13108234)) + dot(v2, vec2(-152.94239396, 59.28637943)),
      dot(v4, vec4(0.09140261, 2.19418839, 4.84296658, -14.18503333)) + dot(v2, vec2(4.27729857, 2.82956604)),
      dot(v4, vec4(0.10667330, 12.64194608, -60.58204836, 110.36276771)) + dot(v2, vec2(-89.90310912, 27.34824973)));
  }
  void main() {
    colour = hasColour ? rgb : range.y > range.x ? turbo(clamp((scalar - range.x) / (range.y - range.x), 0.0, 1.0)) : plain;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
    gl_PointSize = size;
  }`;
const FRAGMENT = "uniform float alpha; varying vec3 colour; void main() { gl_FragColor = vec4(colour, alpha); }";

/** The values of one field, as floats. */
function fieldValues(message, field, count) {
  const values = new Float32Array(count);
  const reader = READERS[field.datatype];
  if (!reader || field.offset + reader[1] > message.point_step) throw new Error(`field ${field.name} lies outside the points`);
  const view = new DataView(message.data.buffer, message.data.byteOffset, message.data.length);
  for (let i = 0, at = field.offset; i < count; i++, at += message.point_step) values[i] = view[reader[0]](at, !message.is_bigendian);
  return values;
}

/** Number of points, or an error if the sizes contradict each other. */
export function cloudCount({ width, height, point_step, row_step, data }) {
  const count = width * height;
  if (count > POINTS_MAX) throw new Error(`${count} points are more than ${POINTS_MAX}`);
  if (count * point_step > data.length) throw new Error(`${count} points of ${point_step} bytes are more than the ${data.length} bytes of data`);
  if (height > 1 && row_step !== width * point_step) throw new Error("rows with padding are not supported");
  return count;
}

/** The range that holds most values: the outermost two percent are left out. */
export function usualRange(values) {
  const step = Math.max(1, Math.floor(values.length / 2000));
  const sample = [];
  for (let i = 0; i < values.length; i += step) if (Number.isFinite(values[i])) sample.push(values[i]);
  sample.sort((a, b) => a - b);
  const at = (part) => sample[Math.floor(part * (sample.length - 1))] ?? 0;
  return [at(0.02), at(0.98)];
}

export const cloudDisplay = (Display) => class Cloud extends Display {
  settings = { colour: "", size: this.preset.size ?? 2 };
  fields = [];

  build() {
    this.material = new THREE.ShaderMaterial({
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      transparent: this.look.transparent,
      uniforms: { alpha: { value: this.look.opacity }, size: { value: 2 }, range: { value: new THREE.Vector2() }, hasColour: { value: false }, plain: { value: this.colour } },
    });
    this.points = new THREE.Points(new THREE.BufferGeometry(), this.material);
    this.points.frustumCulled = false;
    this.group.add(this.points);
  }

  update(message) {
    const count = cloudCount(message);
    const field = (name) => message.fields.find((one) => one.name === name);
    const axes = ["x", "y", "z"].map(field);
    if (axes.includes(undefined)) throw new Error("the cloud has no fields x, y and z");
    if (!this.material) this.build();
    this.points.geometry.dispose();
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", this.positions(message, axes, count));
    this.paint(geometry, message, field, count);
    geometry.setDrawRange(0, count);
    this.points.geometry = geometry;
    this.material.uniforms.size.value = this.settings.size * devicePixelRatio;
    this.count = `${count} points`;
    this.fields = message.fields.map(({ name }) => name);
    this.place(message.header);
  }

  /** The points' bytes at an address that floats may have, in memory that is used again. */
  alignedData(data) {
    if (data.byteOffset % 4 === 0) return data;
    if (this.memory?.length !== data.length) this.memory = new Uint8Array(data.length);
    this.memory.set(data);
    return this.memory;
  }

  positions(message, [x, y, z], count) {
    const { point_step: step } = message;
    const direct = [x, y, z].every(({ datatype }) => datatype === 7) && y.offset === x.offset + 4 && z.offset === x.offset + 8
      && step % 4 === 0 && x.offset % 4 === 0 && !message.is_bigendian && z.offset + 4 <= step;
    if (direct) {
      const data = this.alignedData(message.data);
      const floats = new Float32Array(data.buffer, data.byteOffset, (count * step) / 4);
      this.buffer = new THREE.InterleavedBuffer(floats, step / 4);
      return new THREE.InterleavedBufferAttribute(this.buffer, 3, x.offset / 4);
    }
    this.buffer = undefined;
    const columns = [x, y, z].map((axis) => fieldValues(message, axis, count));
    const values = new Float32Array(count * 3);
    columns.forEach((column, axis) => column.forEach((value, i) => (values[i * 3 + axis] = value)));
    return new THREE.BufferAttribute(values, 3);
  }

  /** Colours by the packed field rgb, or by a number on a scale. */
  paint(geometry, message, field, count) {
    const { uniforms } = this.material;
    const chosen = this.settings.colour || [this.preset.by, "rgb", "rgba", "intensity", "z"].find((name) => name === "flat" || field(name));
    const by = field(chosen) ?? field("z");
    const setRange = (values) => uniforms.range.value.set(...(this.settings.colour ? undefined : this.preset.range) ?? usualRange(values));
    uniforms.hasColour.value = false;
    // An empty range: the shader takes the display's colour.
    if (chosen === "flat") return void uniforms.range.value.set(0, 0);
    uniforms.hasColour.value = by.name === "rgb" || by.name === "rgba";
    if (uniforms.hasColour.value) {
      const bytes = new Uint8Array(count * 3);
      for (let i = 0, at = by.offset; i < count; i++, at += message.point_step) {
        bytes[i * 3] = message.data[at + 2];
        bytes[i * 3 + 1] = message.data[at + 1];
        bytes[i * 3 + 2] = message.data[at];
      }
      geometry.setAttribute("rgb", new THREE.BufferAttribute(bytes, 3, true));
      return;
    }
    if (this.buffer && by.datatype === 7 && by.offset % 4 === 0) {
      geometry.setAttribute("scalar", new THREE.InterleavedBufferAttribute(this.buffer, 1, by.offset / 4));
      const { array, stride } = this.buffer;
      const step = Math.max(1, Math.floor(count / 2000));
      const sample = [];
      for (let i = 0; i < count; i += step) sample.push(array[i * stride + by.offset / 4]);
      setRange(sample);
      return;
    }
    const values = fieldValues(message, by, count);
    geometry.setAttribute("scalar", new THREE.BufferAttribute(values, 1));
    setRange(values);
  }
};
