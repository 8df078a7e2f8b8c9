// Robot descriptions: what is read, what is listed as left out, what is refused.
import assert from "node:assert/strict";
import test from "node:test";

import { parseUrdf, UrdfError } from "../../page/urdf.js";
import { XmlError, parseXml } from "../../page/xml.js";

const ROBOT = `<?xml version="1.0"?>
<!-- <link name="no"/> -->
<robot name="r&amp;d">
  <material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="base"><visual><origin xyz="0 0 0.5" rpy="0 0 1.5707963267948966"/>
    <geometry><box size="1 2 3"/></geometry><material name="blue"/></visual>
    <collision><geometry><box size="1 2 3"/></geometry></collision></link>
  <link name='wheel'>
    <visual><geometry><cylinder radius="0.1" length="0.05"/></geometry>
      <material name="own"><color rgba="1 0 0 0.5"/></material></visual>
    <visual><geometry><mesh filename="package://p/w.stl" scale="0.001 0.001 0.001"/></geometry></visual>
    <visual><geometry><torus/></geometry></visual>
    <visual><geometry><sphere radius="x"/></geometry></visual>
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="wheel"/><origin xyz="0 0.3 0"/></joint>
  <joint name="k" type="fixed"><parent link="base"/><child link="gone"/></joint>
  <gazebo reference="base"><mu1>0.2</mu1></gazebo>
</robot>`;

test("links, shapes, colours and joints are read, the rest is listed", () => {
  const robot = parseUrdf(ROBOT);
  assert.equal(robot.name, "r&d");
  assert.equal(robot.root, "base");
  const [box] = robot.links.get("base").visuals;
  assert.deepEqual(box.shape, { kind: "box", size: [1, 2, 3] });
  assert.deepEqual(box.colour, [0, 0, 1, 1]);
  assert.deepEqual(box.origin.t, [0, 0, 0.5]);
  assert.ok(Math.abs(box.origin.q[2] - Math.SQRT1_2) < 1e-9);
  const [cylinder, mesh] = robot.links.get("wheel").visuals;
  assert.deepEqual([cylinder.shape.kind, cylinder.colour], ["cylinder", [1, 0, 0, 0.5]]);
  assert.deepEqual(mesh.shape, { kind: "mesh", uri: "package://p/w.stl", scale: [0.001, 0.001, 0.001] });
  assert.deepEqual(robot.joints.map(({ name, type }) => [name, type]), [["j", "continuous"]]);
  assert.deepEqual(robot.problems, [
    "link wheel: shape <torus> is not supported",
    'link wheel: "x" is not 1 numbers',
    "joint k: a link of it is missing",
  ]);
});

test("what is no description is refused with the reason", () => {
  for (const [text, kind, message] of [
    ["", XmlError, /exactly one root/],
    ["<robot>", XmlError, /<robot> is not closed/],
    ["<robot>\n<link></robot>", XmlError, /line 2: <\/robot> closes <link>/],
    ["<robot>\n< a</robot>", XmlError, /line 2/],
    ["</a>", XmlError, /closes/],
    ["<sdf/>", UrdfError, /root element is <sdf>/],
    ["<robot/>", UrdfError, /no link/],
    [`${"<a>".repeat(100)}${"</a>".repeat(100)}`, XmlError, /too many/],
  ]) {
    assert.throws(() => parseUrdf(text), (error) => error instanceof kind && message.test(error.message), text);
  }
});

test("10 000 damaged descriptions give a robot or an error of the reader", () => {
  let seed = 48;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
  for (let round = 0; round < 10_000; round++) {
    const characters = [...ROBOT];
    for (let i = 0; i < 4; i++) characters[Math.floor(random() * characters.length)] = "<>/\"'= &x#"[Math.floor(random() * 10)];
    try {
      parseUrdf(characters.join(""));
    } catch (error) {
      assert.ok(error instanceof XmlError || error instanceof UrdfError, error.stack);
    }
  }
});

test("attributes named as parts of objects are plain attributes", () => {
  assert.equal(parseXml('<a __proto__="1" constructor="2"/>').attributes.constructor, "2");
});
