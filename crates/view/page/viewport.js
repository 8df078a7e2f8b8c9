// Viewport of the scene: renderer, camera with its controls, ground grid, lights, theme.
//
// It draws only after `request()`, at most once per screen frame.

import { OrbitControls } from "./vendor/three/OrbitControls.js";
import * as THREE from "./vendor/three/three.module.min.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");

export class Viewport {
  /** `prepare` places objects before each drawing. */
  constructor(prepare) {
    this.prepare = prepare;
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(50, 1, 0.05, 2000);
    this.camera.up.set(0, 0, 1);
    this.renderer = new THREE.WebGLRenderer({ antialias: true });
    this.canvas = this.renderer.domElement;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-label", "3D scene: arrow keys turn, Shift with arrow keys moves, plus and minus zoom");
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.maxPolarAngle = Math.PI * 0.495;
    this.controls.addEventListener("change", () => this.request());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("webglcontextrestored", () => this.request());
    const sun = new THREE.DirectionalLight("#ffffff", 1.9);
    sun.position.set(2, -3, 6);
    this.scene.add(new THREE.HemisphereLight("#ffffff", "#8f959c", 1.7), sun);
    this.themeListeners = [];
    DARK.addEventListener("change", () => this.applyTheme());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.look([0, 0, 0], 9);
  }

  /** Looks at a point from behind and above, or from straight above. */
  look([x, y, z], distance, fromAbove = false) {
    this.controls.target.set(x, y, z);
    const [dx, dy, dz] = fromAbove ? [-0.001, 0, 1] : [-0.55, -0.45, 0.7];
    this.camera.position.set(x + dx * distance, y + dy * distance, z + dz * distance);
    this.controls.update();
    this.request();
  }

  /** Moves the camera with what it follows. */
  shift(delta) {
    this.controls.target.add(delta);
    this.camera.position.add(delta);
    this.controls.update();
  }

  get distance() {
    return this.camera.position.distanceTo(this.controls.target);
  }

  onTheme(listener) {
    this.themeListeners.push(listener);
  }

  applyTheme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.scene.background = new THREE.Color(colour("--scene"));
    this.ground?.dispose();
    this.ground?.removeFromParent();
    this.ground = new THREE.GridHelper(40, 40, colour("--scene-axis"), colour("--scene-grid"));
    this.ground.rotation.x = Math.PI / 2;
    this.ground.position.z = -0.005;
    this.scene.add(this.ground);
    const theme = { free: colour("--map-free"), occupied: colour("--map-occupied"), unknown: colour("--map-unknown"), text: colour("--scene-text") };
    for (const listener of this.themeListeners) listener(theme);
    this.request();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    this.renderer.setPixelRatio(Math.min(2, devicePixelRatio));
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.request();
  }

  request() {
    if (this.pending || !this.isShown) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = undefined;
      this.prepare();
      this.renderer.render(this.scene, this.camera);
    });
  }

  /** The point of the ground below a pointer event, or undefined above the horizon. */
  groundPoint({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const at = new THREE.Vector2(((clientX - left) / width) * 2 - 1, 1 - ((clientY - top) / height) * 2);
    const ray = new THREE.Raycaster();
    ray.setFromCamera(at, this.camera);
    return ray.ray.intersectPlane(new THREE.Plane(new THREE.Vector3(0, 0, 1), 0), new THREE.Vector3()) ?? undefined;
  }

  key(event) {
    const { controls, camera } = this;
    const offset = camera.position.clone().sub(controls.target);
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (event.defaultPrevented) return;
    if (dx || dy) {
      if (event.shiftKey) {
        const step = offset.length() * 0.05;
        const yaw = Math.atan2(-offset.y, -offset.x);
        this.shift(new THREE.Vector3(dy * Math.cos(yaw) + dx * Math.sin(yaw), dy * Math.sin(yaw) - dx * Math.cos(yaw), 0).multiplyScalar(step));
      } else {
        const polar = new THREE.Spherical().setFromVector3(new THREE.Vector3(offset.x, offset.z, -offset.y));
        polar.theta += dx * 0.08;
        polar.phi = Math.min(Math.PI * 0.495, Math.max(0.01, polar.phi - dy * 0.06));
        const turned = new THREE.Vector3().setFromSpherical(polar);
        camera.position.copy(controls.target).add(new THREE.Vector3(turned.x, -turned.z, turned.y));
      }
    } else if ("+=-".includes(event.key)) {
      camera.position.copy(controls.target).addScaledVector(offset, event.key === "-" ? 1.12 : 1 / 1.12);
    } else return;
    controls.update();
    event.preventDefault();
  }
}
