// The transform buffer: interpolation, chains, history.
import assert from "node:assert/strict";
import test from "node:test";

import { TransformBuffer, apply, compose, fromRpy, inverse, yawOf } from "../../page/tf.js";

const near = (actual, expected) => {
  assert.equal(actual.length, expected.length);
  actual.forEach((value, i) => assert.ok(Math.abs(value - expected[i]) < 1e-9, `${actual} is not ${expected}`));
};

function transform(parent, child, time, [x, y, z], yaw = 0) {
  const [qx, qy, qz, qw] = fromRpy([0, 0, yaw]);
  return {
    header: { frame_id: parent, stamp: { sec: Math.floor(time), nanosec: Math.round((time % 1) * 1e9) } },
    child_frame_id: child,
    transform: { translation: { x, y, z }, rotation: { x: qx, y: qy, z: qz, w: qw } },
  };
}

function buffer(moving, fixed = []) {
  const tf = new TransformBuffer();
  tf.add({ transforms: moving }, false);
  tf.add({ transforms: fixed }, true);
  return tf;
}

test("a look-up between two transforms is linear in place and spherical in rotation", () => {
  const tf = buffer([transform("odom", "base", 1, [0, 0, 0], 3), transform("odom", "base", 2, [4, 2, 0], -3)]);
  const { t, q } = tf.lookup("odom", "base", 1.25);
  near(t, [1, 0.5, 0]);
  // The short way leads over pi.
  near([yawOf(q)], [3 + (2 * Math.PI - 6) * 0.25]);
  near(tf.lookup("odom", "base", 0).t, [0, 0, 0]);
  near(tf.lookup("odom", "base", 99).t, [4, 2, 0]);
  near(tf.lookup("odom", "base").t, [4, 2, 0]);
});

test("chains go up and down over the common parent", () => {
  const tf = buffer(
    [transform("map", "odom", 1, [10, 0, 0]), transform("odom", "base", 1, [0, 5, 0], Math.PI / 2)],
    [transform("base", "laser", 0, [1, 0, 0]), transform("/base", "/camera", 0, [0, 0, 2])],
  );
  near(apply(tf.lookup("map", "laser", 1), [1, 0, 0]), [10, 7, 0]);
  near(apply(tf.lookup("laser", "map", 1), [10, 7, 0]), [1, 0, 0]);
  near(tf.lookup("camera", "laser").t, [1, 0, -2]);
  assert.equal(tf.lookup("map", "nowhere"), undefined);
  assert.equal(tf.root("laser"), "map");
  const there = tf.lookup("map", "laser");
  near(compose(there, inverse(there)).t, [0, 0, 0]);
});

test("history is in order, bounded, and starts anew when time jumps back", () => {
  const tf = new TransformBuffer();
  for (const time of [5, 4, 4.5]) tf.add({ transforms: [transform("a", "b", time, [time, 0, 0])] }, false);
  near(tf.lookup("a", "b", 4.25).t, [4.25, 0, 0]);
  for (let i = 0; i < 3000; i++) tf.add({ transforms: [transform("a", "b", 100 + i / 1000, [i, 0, 0])] }, false);
  assert.ok(tf.frames.get("b").history.length <= 2000);
  tf.add({ transforms: [transform("a", "b", 1, [7, 0, 0])] }, false);
  assert.equal(tf.frames.get("b").history.length, 1);
  near(tf.lookup("a", "b").t, [7, 0, 0]);
});

test("cycles, frames in themselves and numbers that are none do no harm", () => {
  const tf = buffer([transform("a", "b", 1, [0, 0, 0]), transform("b", "a", 1, [0, 0, 0]), transform("c", "c", 1, [0, 0, 0]), transform("a", "d", 1, [NaN, 0, 0])]);
  assert.equal(tf.dropped, 2);
  assert.equal(tf.lookup("x", "a"), undefined);
  assert.ok(tf.lookup("a", "b"));
});

test("rolls, pitches and yaws are about fixed axes", () => {
  near(apply({ t: [0, 0, 0], q: fromRpy([Math.PI / 2, 0, Math.PI / 2]) }, [0, 1, 0]), [0, 0, 1]);
  near(apply({ t: [0, 0, 0], q: fromRpy([Math.PI / 2, 0, Math.PI / 2]) }, [1, 0, 0]), [0, 1, 0]);
});
