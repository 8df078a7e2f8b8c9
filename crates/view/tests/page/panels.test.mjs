// What panels compute without a browser: pixels, layout of the graph, paths, values, cloud sizes.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

import { cloudCount, usualRange } from "../../page/clouds.js";
import { encode, parseSchema } from "../../page/cdr.js";
import { layout } from "../../page/graph_layout.js";
import { parseValue } from "../../page/params.js";
import { toRgba } from "../../page/pixels.js";
import { SCHEMAS } from "../../page/schemas.js";
import { valueAt } from "../../page/tree.js";

const image = (encoding, width, height, data, step = data.length / height) => ({ encoding, width, height, step, data: Uint8Array.from(data), is_bigendian: 0 });
const rgba = (...more) => Array.from(toRgba(image(...more)).rgba);

test("raw images become the right pixels", () => {
  assert.deepEqual(rgba("rgb8", 1, 2, [1, 2, 3, 0, 4, 5, 6, 0]), [1, 2, 3, 255, 4, 5, 6, 255]);
  assert.deepEqual(rgba("bgr8", 1, 1, [1, 2, 3]), [3, 2, 1, 255]);
  assert.deepEqual(rgba("bgra8", 1, 1, [1, 2, 3, 4]), [3, 2, 1, 4]);
  assert.deepEqual(rgba("mono8", 2, 1, [7, 9]), [7, 7, 7, 255, 9, 9, 9, 255]);
  assert.deepEqual(rgba("bayer_rggb8", 2, 2, [10, 20, 40, 30]).slice(0, 4), [10, 30, 30, 255]);
  assert.deepEqual(rgba("bayer_bggr8", 2, 2, [10, 20, 40, 30]).slice(0, 4), [30, 30, 10, 255]);
  assert.deepEqual(rgba("uyvy", 2, 1, [128, 50, 128, 60]), [50, 50, 50, 255, 60, 60, 60, 255]);
});

test("depth images are stretched between least and greatest, zero is nothing", () => {
  const words = new Uint8Array(new Uint16Array([0, 1000, 3000]).buffer);
  const { rgba: pixels, note } = toRgba(image("16UC1", 3, 1, words));
  assert.deepEqual([pixels[0], pixels[4], pixels[8], note], [0, 0, 255, "1000 to 3000"]);
  const floats = new Uint8Array(new Float32Array([NaN, 1, 2]).buffer);
  assert.equal(toRgba(image("32FC1", 3, 1, floats)).note, "1 to 2");
});

test("images whose sizes contradict their data are refused before they are read", () => {
  assert.throws(() => toRgba(image("rgb8", 4, 4, [1, 2, 3, 4])), /are not 4 × 4 pixels/);
  assert.throws(() => toRgba({ ...image("rgb8", 1, 1, [1, 2, 3]), width: 2 ** 31, height: 2 ** 31 }), /are more than/);
  assert.throws(() => toRgba(image("bayer_weird", 1, 1, [1])), /encoding bayer_weird is not supported/);
});

test("clouds whose sizes contradict their data are refused", () => {
  const cloud = { width: 2, height: 1, point_step: 16, row_step: 32, data: new Uint8Array(32) };
  assert.equal(cloudCount(cloud), 2);
  assert.throws(() => cloudCount({ ...cloud, width: 3 }), /3 points of 16 bytes are more than the 32 bytes/);
  assert.throws(() => cloudCount({ ...cloud, width: 2 ** 31, point_step: 0 }), /are more than/);
  assert.throws(() => cloudCount({ ...cloud, width: 1, height: 2, row_step: 24, data: new Uint8Array(64) }), /padding/);
  assert.deepEqual(usualRange([NaN, ...Array.from({ length: 101 }, (_, i) => i), 1e9]), [2, 98]);
});

test("the graph's layers follow the flow, also around a cycle", () => {
  const keys = ["a", "b", "c", "d", "alone"];
  const { places, layers, rows } = layout(keys, [["a", "b"], ["b", "c"], ["c", "b"], ["d", "c"]]);
  const layer = (key) => places.get(key).layer;
  assert.ok(layer("a") < layer("b") && layer("b") < layer("c"));
  assert.equal(layer("d"), layer("c") - 1);
  assert.equal(layers, 3);
  assert.ok(rows >= 2);
  const spots = new Set(keys.map((key) => JSON.stringify(places.get(key))));
  assert.equal(spots.size, keys.length, "two vertices at one place");
});

test("paths lead to numbers and never to parts of the language", () => {
  const value = { pose: { position: { x: 1.5 } }, ranges: new Float32Array([1, 2]), list: [{ a: 3 }] };
  assert.equal(valueAt(value, "pose.position.x"), 1.5);
  assert.equal(valueAt(value, "ranges[1]"), 2);
  assert.equal(valueAt(value, "list[0].a"), 3);
  for (const path of ["pose.nope.x", "constructor.name", "ranges[9]", "list[0].a.b"]) assert.equal(valueAt(value, path), undefined, path);
});

test("edited parameters keep their type", () => {
  assert.equal(parseValue("5", "text"), "5");
  assert.equal(parseValue("0.5", 1), 0.5);
  assert.equal(parseValue("true", false), true);
  assert.deepEqual(parseValue("[1, 2]", [0]), [1, 2]);
  for (const [text, before] of [["yes", false], ['"5"', 1], ["5", [1]], ["", 1]]) assert.throws(() => parseValue(text, before));
});

test("the messages that the page publishes have the sizes of their types", () => {
  const size = (name) => encode(parseSchema(name, SCHEMAS[name]), {}).length;
  assert.deepEqual(Object.keys(SCHEMAS).map((name) => [name.split("/")[2], size(name)]), [
    ["Twist", 52], ["TwistStamped", 68], ["JointState", 36], ["PoseStamped", 76], ["PointStamped", 44], ["PoseWithCovarianceStamped", 364],
  ]);
});

test("text of the network enters the document as text only", () => {
  const folder = new URL("../../page/", import.meta.url);
  const files = readdirSync(folder).filter((name) => /\.(js|html)$/.test(name));
  assert.ok(files.length > 20);
  for (const name of files) {
    const text = readFileSync(new URL(name, folder), "utf8");
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|https?:\/\/(?!www\.w3\.org)/, name);
  }
});
