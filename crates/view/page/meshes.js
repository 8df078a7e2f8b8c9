// Meshes by URI: fetched as assets of the robot, parsed as STL, OBJ or COLLADA, kept once each.

import { STLLoader } from "./vendor/three/STLLoader.js";
import * as THREE from "./vendor/three/three.module.min.js";

const MESH_BYTES_MAX = 100_000_000;
const MESHES_MAX = 500;

/** Textures of meshes are not fetched: they get one white pixel. */
const WHITE = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

function checkStl(buffer) {
  const bytes = new Uint8Array(buffer);
  const isText = String.fromCharCode(...bytes.subarray(0, 5)) === "solid";
  if (isText || bytes.length < 84) return;
  const count = new DataView(buffer).getUint32(80, true);
  if (84 + 50 * count > bytes.length) throw new Error(`an STL file of ${bytes.length} bytes cannot hold ${count} triangles`);
}

async function parse(uri, buffer) {
  const ending = /\.(\w+)$/.exec(uri.split(/[?#]/)[0])?.[1].toLowerCase();
  if (ending === "stl") {
    checkStl(buffer);
    const geometry = new STLLoader().parse(buffer);
    geometry.computeVertexNormals();
    return new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ color: "#b9bec4" }));
  }
  const manager = new THREE.LoadingManager();
  manager.setURLModifier(() => WHITE);
  const text = new TextDecoder().decode(buffer);
  if (ending === "obj") {
    const { OBJLoader } = await import("./vendor/three/OBJLoader.js");
    return new OBJLoader(manager).parse(text);
  }
  if (ending === "dae") {
    const { ColladaLoader } = await import("./vendor/three/ColladaLoader.js");
    const scene = new ColladaLoader(manager).parse(text, "").scene;
    // The loader turns files with y up; URDF takes a mesh's axes as they are, as rviz does for z up.
    scene.traverse((object) => object.isLight && object.removeFromParent());
    return scene;
  }
  throw new Error(`meshes of kind .${ending ?? "?"} are not supported`);
}

export class MeshCache {
  constructor(connection) {
    this.connection = connection;
    this.meshes = new Map();
  }

  /** Resolves to an object of its own, to be placed and coloured. */
  async load(uri) {
    if (!this.meshes.has(uri)) {
      if (this.meshes.size >= MESHES_MAX) throw new Error(`more than ${MESHES_MAX} meshes`);
      const loading = this.fetch(uri);
      this.meshes.set(uri, loading);
      loading.catch(() => this.meshes.delete(uri));
    }
    return (await this.meshes.get(uri)).clone();
  }

  async fetch(uri) {
    if (!this.connection.has("assets")) throw new Error("the robot serves no meshes");
    const buffer = await this.connection.fetchAsset(uri);
    if (buffer.byteLength > MESH_BYTES_MAX) throw new Error(`${buffer.byteLength} bytes are too many`);
    return parse(uri, buffer);
  }
}
