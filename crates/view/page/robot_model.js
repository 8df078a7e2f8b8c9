// Robot model: the visual shapes of a robot description, each link placed by its frame.
//
// Links without a transform use their joint's origin below the parent. The model lists what is
// missing or not supported.

import { compose, IDENTITY } from "./tf.js";
import { parseUrdf } from "./urdf.js";
import { dispose } from "./displays.js";
import * as THREE from "./vendor/three/three.module.min.js";

function primitive(shape) {
  if (shape.kind === "box") return new THREE.BoxGeometry(...shape.size);
  if (shape.kind === "sphere") return new THREE.SphereGeometry(shape.radius, 28, 16);
  if (shape.kind === "capsule") return new THREE.CapsuleGeometry(shape.radius, shape.length, 8, 24).rotateX(Math.PI / 2);
  return new THREE.CylinderGeometry(shape.radius, shape.radius, shape.length, 32).rotateX(Math.PI / 2);
}

function material(colour, alpha) {
  const [r, g, b, own] = colour ?? [0.68, 0.7, 0.73, 1];
  const a = own * alpha;
  return new THREE.MeshLambertMaterial({ color: new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace), opacity: a, transparent: a < 1 });
}

export class RobotModel {
  constructor(meshes, changed) {
    Object.assign(this, { meshes, changed });
    this.group = new THREE.Group();
    this.links = new Map();
    this.problems = [];
    this.name = "";
    this.setOptions();
  }

  /** What a `.rviz` file says of the model. It holds from the next description on. */
  setOptions({ alpha = 1, prefix = "" } = {}) {
    this.alpha = alpha;
    this.prefix = prefix && `${prefix}/`;
  }

  /** Shows another description. */
  load(text) {
    this.clear();
    try {
      this.robot = parseUrdf(text);
    } catch (error) {
      this.problems = [`robot description: ${error.message}`];
      return;
    }
    this.name = this.robot.name;
    this.problems = [...this.robot.problems];
    this.joints = new Map(this.robot.joints.map((joint) => [joint.child, joint]));
    for (const link of this.robot.links.values()) {
      const holder = new THREE.Group();
      this.links.set(link.name, holder);
      this.group.add(holder);
      for (const visual of link.visuals) this.addVisual(holder, visual);
    }
  }

  addVisual(holder, { origin, shape, colour }) {
    const place = (object) => {
      const at = new THREE.Group();
      at.position.set(...origin.t);
      at.quaternion.set(...origin.q);
      at.add(object);
      holder.add(at);
    };
    if (shape.kind !== "mesh") return place(new THREE.Mesh(primitive(shape), material(colour, this.alpha)));
    const { links } = this;
    this.meshes.load(shape.uri).then((mesh) => {
      if (this.links !== links) return;
      mesh.scale.multiply(new THREE.Vector3(...shape.scale));
      if (colour) mesh.traverse((object) => object.isMesh && (object.material = material(colour, this.alpha)));
      else if (this.alpha < 1) this.fade(mesh);
      place(mesh);
      this.changed();
    }, (error) => {
      this.problems.push(`${shape.uri}: ${error.message}`);
      this.changed();
    });
  }

  /** Makes a mesh with colours of its own translucent. Its materials belong to all copies. */
  fade(mesh) {
    mesh.traverse((object) => {
      if (!object.isMesh) return;
      const faded = [object.material].flat().map((one) => Object.assign(one.clone(), { transparent: true, opacity: one.opacity * this.alpha }));
      object.material = Array.isArray(object.material) ? faded : faded[0];
    });
  }

  clear() {
    for (const holder of this.links.values()) dispose(holder);
    this.links = new Map();
    this.robot = undefined;
    this.problems = [];
    this.name = "";
  }

  /** Places every link. Returns how many have no transform at all. */
  place(lookup) {
    if (!this.robot) return 0;
    let missing = 0;
    const known = new Map();
    const find = (name, depth = 0) => {
      if (known.has(name)) return known.get(name);
      let transform = lookup(this.prefix + name);
      const joint = this.joints.get(name);
      if (!transform && joint && depth < 100) {
        missing += joint.type === "fixed" ? 0 : 1;
        const parent = find(joint.parent, depth + 1);
        transform = parent && compose(parent, joint.origin ?? IDENTITY);
      }
      known.set(name, transform);
      return transform;
    };
    for (const [name, holder] of this.links) {
      const transform = find(name);
      holder.visible = Boolean(transform);
      if (!transform) continue;
      holder.position.set(...transform.t);
      holder.quaternion.set(...transform.q);
    }
    return missing;
  }
}
