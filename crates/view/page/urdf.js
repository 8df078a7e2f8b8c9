// URDF reader: links with their visual shapes and colours, and joints.
//
// It draws nothing (robot_model.js does) and fetches nothing. What it does not support it lists.

import { fromRpy, IDENTITY } from "./tf.js";
import { parseXml } from "./xml.js";

export class UrdfError extends Error {}

const one = (element, name) => element.children.find((child) => child.name === name);
const all = (element, name) => element.children.filter((child) => child.name === name);

function numbers(text, count, what) {
  const values = (text ?? "").trim().split(/\s+/).map(Number);
  if (values.length !== count || !values.every(Number.isFinite)) {
    throw new UrdfError(`${what}: "${String(text).slice(0, 40)}" is not ${count} numbers`);
  }
  return values;
}

function origin(element, what) {
  const { xyz = "0 0 0", rpy = "0 0 0" } = one(element, "origin")?.attributes ?? {};
  return { t: numbers(xyz, 3, `${what}, xyz`), q: fromRpy(numbers(rpy, 3, `${what}, rpy`)) };
}

function shape(element, what) {
  const geometry = one(element, "geometry")?.children[0];
  if (!geometry) throw new UrdfError(`${what} has no geometry`);
  const { name, attributes } = geometry;
  if (name === "box") return { kind: "box", size: numbers(attributes.size, 3, `${what}, size`) };
  if (name === "sphere") return { kind: "sphere", radius: numbers(attributes.radius, 1, what)[0] };
  if (name === "cylinder" || name === "capsule") {
    const [radius, length] = numbers(`${attributes.radius} ${attributes.length}`, 2, what);
    return { kind: name, radius, length };
  }
  if (name === "mesh") {
    const scale = attributes.scale ? numbers(attributes.scale, 3, `${what}, scale`) : [1, 1, 1];
    if (!attributes.filename) throw new UrdfError(`${what}: mesh without filename`);
    return { kind: "mesh", uri: attributes.filename, scale };
  }
  throw new UrdfError(`${what}: shape <${name}> is not supported`);
}

function colour(material, named, what) {
  const own = material && one(material, "color");
  if (own) return numbers(own.attributes.rgba, 4, `${what}, rgba`);
  return named.get(material?.attributes.name);
}

/**
 * Reads a robot description: `{name, links, joints, root, problems}`. A link is
 * `{name, visuals: [{origin, shape, colour}]}`. Problems are texts about parts that were left out.
 */
export function parseUrdf(text) {
  const robot = parseXml(text);
  if (robot.name !== "robot") throw new UrdfError(`the root element is <${robot.name}>, not <robot>`);
  const problems = [];
  const attempt = (read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof UrdfError)) throw error;
      problems.push(error.message);
      return undefined;
    }
  };
  const named = new Map();
  for (const material of all(robot, "material")) {
    named.set(material.attributes.name, attempt(() => colour(material, new Map(), "material")));
  }
  const links = new Map();
  for (const link of all(robot, "link")) {
    const { name } = link.attributes;
    const visuals = all(link, "visual").map((visual) => attempt(() => {
      const what = `link ${name}`;
      const material = one(visual, "material");
      if (material && one(material, "texture")) problems.push(`${what}: textures are not supported`);
      return { origin: origin(visual, what), shape: shape(visual, what), colour: colour(material, named, what) };
    }));
    links.set(name, { name, visuals: visuals.filter(Boolean) });
  }
  const joints = all(robot, "joint").map((joint) => attempt(() => readJoint(joint, links))).filter(Boolean);
  const children = new Set(joints.map(({ child }) => child));
  const root = [...links.keys()].find((name) => !children.has(name));
  if (root === undefined) throw new UrdfError("the robot has no link that is no child of a joint");
  return { name: robot.attributes.name ?? "", links, joints, root, problems };
}

function readJoint(joint, links) {
  const { name, type } = joint.attributes;
  const what = `joint ${name}`;
  const parent = one(joint, "parent")?.attributes.link;
  const child = one(joint, "child")?.attributes.link;
  if (!links.has(parent) || !links.has(child)) throw new UrdfError(`${what}: a link of it is missing`);
  const limits = one(joint, "limit")?.attributes;
  const { lower = "0", upper = "0" } = limits ?? {};
  const limit = limits && { lower: numbers(lower, 1, `${what}, lower`)[0], upper: numbers(upper, 1, `${what}, upper`)[0] };
  return { name, type, parent, child, limit, mimic: readMimic(joint, what), origin: one(joint, "origin") ? origin(joint, what) : IDENTITY };
}

function readMimic(joint, what) {
  const mimic = one(joint, "mimic")?.attributes;
  if (!mimic) return undefined;
  const { multiplier = "1", offset = "0" } = mimic;
  return { joint: mimic.joint, multiplier: numbers(multiplier, 1, `${what}, multiplier`)[0], offset: numbers(offset, 1, `${what}, offset`)[0] };
}
