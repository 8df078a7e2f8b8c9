// Occupancy grids and costmaps: one texture per grid, changed in place by updates of a part
// (`map_msgs/OccupancyGridUpdate` on `<topic>_updates`).

import * as THREE from "./vendor/three/three.module.min.js";

const CELLS_MAX = 64_000_000;
const UPDATES_TYPE = "map_msgs/msg/OccupancyGridUpdate";

const VERTEX = `
  varying vec2 at;
  void main() {
    at = uv;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
  }`;

// Values are the bytes of int8: 255 is unknown (-1), 0 to 100 the occupancy.
const FRAGMENT = `
  uniform sampler2D cells;
  uniform bool isCostmap;
  uniform float alpha;
  uniform vec3 unknown;
  uniform vec3 free;
  uniform vec3 occupied;
  varying vec2 at;
  void main() {
    float value = floor(texture2D(cells, at).r * 255.0 + 0.5);
    vec4 colour = vec4(mix(free, occupied, clamp(value / 100.0, 0.0, 1.0)), 1.0);
    if (value > 100.5) colour = vec4(unknown, 1.0);
    if (isCostmap) {
      float cost = clamp(value / 100.0, 0.0, 1.0);
      colour = vec4(mix(vec3(0.20, 0.45, 0.95), vec3(0.95, 0.22, 0.25), cost), value < 0.5 || value > 100.5 ? 0.0 : 0.18 + 0.42 * cost);
      if (value > 99.5 && value < 100.5) colour = vec4(0.75, 0.25, 0.85, 0.65);
      if (value > 98.5 && value < 99.5) colour = vec4(0.15, 0.75, 0.85, 0.60);
    }
    gl_FragColor = vec4(colour.rgb, colour.a * alpha);
    #include <colorspace_fragment>
  }`;

export const gridDisplay = (Display) => class Grid extends Display {
  updatesTopic = [`${this.topic}_updates`, UPDATES_TYPE];

  update(message) {
    const { header, info, data } = message;
    const { width, height, resolution, origin } = info;
    if (width * height > CELLS_MAX) throw new Error(`${width} × ${height} cells are more than ${CELLS_MAX}`);
    if (data.length !== width * height) throw new Error(`${data.length} cells instead of ${width} × ${height}`);
    if (!(resolution > 0) || data.length === 0) throw new Error("the grid has no cells");
    if (!this.texture || this.width !== width || this.height !== height) this.build(width, height);
    this.cells.set(new Uint8Array(data.buffer, data.byteOffset, data.length));
    this.texture.needsUpdate = true;
    this.mesh.scale.set(width * resolution, height * resolution, 1);
    const { position: p, orientation: q } = origin;
    this.holder.position.set(p.x, p.y, p.z);
    this.holder.quaternion.set(q.x, q.y, q.z, q.w);
    if (this.holder.quaternion.lengthSq() < 1e-9) this.holder.quaternion.identity();
    this.holder.quaternion.normalize();
    this.count = `${width} × ${height}, ${Number(resolution.toFixed(4))} m`;
    this.place(header);
    this.extent = Math.max(width, height) * resolution;
  }

  /** A part of the grid, as a message of the updates topic. */
  updatePart({ x, y, width, height, data }) {
    if (!this.texture) return;
    const outside = x < 0 || y < 0 || x + width > this.width || y + height > this.height;
    if (outside || data.length !== width * height) throw new Error("an update lies outside the grid");
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.length);
    for (let row = 0; row < height; row++) {
      this.cells.set(bytes.subarray(row * width, (row + 1) * width), (y + row) * this.width + x);
    }
    this.texture.needsUpdate = true;
  }

  build(width, height) {
    if (this.holder) this.release();
    Object.assign(this, { width, height, cells: new Uint8Array(width * height) });
    this.texture = new THREE.DataTexture(this.cells, width, height, THREE.RedFormat);
    this.texture.unpackAlignment = 1;
    this.texture.magFilter = THREE.NearestFilter;
    const isCostmap = this.preset.scheme ? this.preset.scheme === "costmap" : /costmap/.test(this.topic);
    // The colours of costmaps have an opacity of their own.
    const alpha = isCostmap ? 1 : this.look.opacity;
    const colour = (value) => ({ value: new THREE.Color(value) });
    const material = new THREE.ShaderMaterial({
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: { cells: { value: this.texture }, isCostmap: { value: isCostmap }, alpha: { value: alpha }, unknown: colour(), free: colour(), occupied: colour() },
      transparent: isCostmap || alpha < 1,
      depthWrite: false,
      side: THREE.DoubleSide,
    });
    this.mesh = new THREE.Mesh(new THREE.PlaneGeometry(1, 1).translate(0.5, 0.5, 0), material);
    this.mesh.renderOrder = isCostmap ? -1 : -2;
    this.holder = new THREE.Group();
    this.holder.add(this.mesh);
    this.group.add(this.holder);
    this.setTheme(this.theme);
  }

  setTheme(theme) {
    this.theme = theme;
    const uniforms = this.mesh?.material.uniforms;
    for (const name of ["unknown", "free", "occupied"]) uniforms?.[name].value.set(theme[name]);
  }

  release() {
    this.texture?.dispose();
    this.mesh?.geometry.dispose();
    this.mesh?.material.dispose();
    this.holder?.removeFromParent();
  }

  dispose() {
    this.release();
    super.dispose();
  }
};
