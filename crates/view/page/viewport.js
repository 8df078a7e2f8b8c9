// Viewport of the scene: renderer, camera with its controls, ground grid, lights, theme.
//
// It draws only after `request()`, at most once per screen frame.

import { OrbitControls } from "./vendor/three/OrbitControls.js";
import * as THREE from "./vendor/three/three.module.min.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const FIELD_OF_VIEW = 50;
/** Height of the camera of a view from above, whose distance changes nothing. */
const ABOVE_METRES = 200;

export class Viewport {
  /** `prepare` places objects before each drawing. */
  constructor(prepare) {
    this.prepare = prepare;
    this.scene = new THREE.Scene();
    this.perspective = new THREE.PerspectiveCamera(FIELD_OF_VIEW, 1, 0.05, 2000);
    // Its zoom is the number of pixels of a metre.
    this.orthographic = new THREE.OrthographicCamera(-1, 1, 1, -1, 0.1, 1000);
    for (const camera of [this.perspective, this.orthographic]) camera.up.set(0, 0, 1);
    this.camera = this.perspective;
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
    this.perspective.fov = FIELD_OF_VIEW;
    this.useCamera(this.perspective);
    this.controls.target.set(x, y, z);
    const [dx, dy, dz] = fromAbove ? [-0.001, 0, 1] : [-0.55, -0.45, 0.7];
    this.camera.position.set(x + dx * distance, y + dy * distance, z + dz * distance);
    this.controls.update();
    this.request();
  }

  /** Takes the view of a `.rviz` file, as rviz.js reads it. */
  setView(view) {
    const { controls } = this;
    if (view.kind === "above") {
      this.useCamera(this.orthographic);
      controls.target.set(view.x, view.y, 0);
      this.camera.position.set(view.x + 0.001 * Math.sin(view.angle), view.y - 0.001 * Math.cos(view.angle), ABOVE_METRES);
      this.camera.zoom = view.scale;
    } else {
      const [x, y, z] = view.focal;
      // Straight above, the camera has no side that is up.
      const pitch = Math.min(1.569, Math.max(-1.569, view.pitch));
      const flat = view.distance * Math.cos(pitch);
      this.perspective.fov = Math.min(120, Math.max(5, (view.fieldOfView * 180) / Math.PI));
      this.useCamera(this.perspective);
      controls.target.set(x, y, z);
      this.camera.position.set(x + flat * Math.cos(view.yaw), y + flat * Math.sin(view.yaw), z + view.distance * Math.sin(pitch));
    }
    this.camera.updateProjectionMatrix();
    controls.update();
    this.request();
  }

  /** The view from above has no perspective; a drag moves it in place of turning it. */
  useCamera(camera) {
    const isAbove = camera === this.orthographic;
    const { controls } = this;
    this.camera = controls.object = camera;
    controls.enableRotate = !isAbove;
    controls.mouseButtons.LEFT = isAbove ? THREE.MOUSE.PAN : THREE.MOUSE.ROTATE;
    controls.touches.ONE = isAbove ? THREE.TOUCH.PAN : THREE.TOUCH.ROTATE;
    camera.updateProjectionMatrix();
  }

  get isAbove() {
    return this.camera === this.orthographic;
  }

  /** A background, and no ground of the page's own, or both as the theme has them. */
  setBackground(colour) {
    this.ownBackground = colour;
    this.applyTheme();
  }

  /** Moves the camera with what it follows. */
  shift(delta) {
    this.controls.target.add(delta);
    this.camera.position.add(delta);
    this.controls.update();
  }

  /** Distance of the camera, or the one from which a view from above would look alike. */
  get distance() {
    if (this.isAbove) return (this.canvas.clientHeight / this.camera.zoom) * 1.07;
    return this.camera.position.distanceTo(this.controls.target);
  }

  onTheme(listener) {
    this.themeListeners.push(listener);
  }

  applyTheme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.scene.background = new THREE.Color(this.ownBackground ?? colour("--scene"));
    this.ground?.dispose();
    this.ground?.removeFromParent();
    this.ground = new THREE.GridHelper(40, 40, colour("--scene-axis"), colour("--scene-grid"));
    this.ground.rotation.x = Math.PI / 2;
    this.ground.position.z = -0.005;
    this.ground.visible = !this.ownBackground;
    this.scene.add(this.ground);
    // On a background of its own, texts must differ from that one.
    const isDark = this.scene.background.getHSL({}, THREE.SRGBColorSpace).l < 0.5;
    const words = this.ownBackground ? (isDark ? "#c3ccd3" : "#3f4a53") : colour("--scene-text");
    const theme = { free: colour("--map-free"), occupied: colour("--map-occupied"), unknown: colour("--map-unknown"), text: words };
    for (const listener of this.themeListeners) listener(theme);
    this.request();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    this.renderer.setPixelRatio(Math.min(2, devicePixelRatio));
    this.renderer.setSize(width, height, false);
    this.perspective.aspect = width / height;
    Object.assign(this.orthographic, { left: -width / 2, right: width / 2, top: height / 2, bottom: -height / 2 });
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
      if (event.shiftKey || this.isAbove) {
        const step = this.distance * 0.05;
        const yaw = Math.atan2(-offset.y, -offset.x);
        this.shift(new THREE.Vector3(dy * Math.cos(yaw) + dx * Math.sin(yaw), dy * Math.sin(yaw) - dx * Math.cos(yaw), 0).multiplyScalar(step));
      } else {
        const polar = new THREE.Spherical().setFromVector3(new THREE.Vector3(offset.x, offset.z, -offset.y));
        polar.theta += dx * 0.08;
        polar.phi = Math.min(Math.PI * 0.495, Math.max(0.01, polar.phi - dy * 0.06));
        const turned = new THREE.Vector3().setFromSpherical(polar);
        camera.position.copy(controls.target).add(new THREE.Vector3(turned.x, -turned.z, turned.y));
      }
    } else if ("+=-".includes(event.key) && this.isAbove) {
      camera.zoom *= event.key === "-" ? 1 / 1.12 : 1.12;
      camera.updateProjectionMatrix();
    } else if ("+=-".includes(event.key)) {
      camera.position.copy(controls.target).addScaledVector(offset, event.key === "-" ? 1.12 : 1 / 1.12);
    } else return;
    controls.update();
    event.preventDefault();
  }
}
