// The codec beside CDR bytes that rclpy of ROS 2 Jazzy wrote (vectors.json), and hostile bytes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { CdrError, decode, encode, parseSchema, zeroValue } from "../../page/cdr.js";

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url)));
const fromHex = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const aligned = (bytes) => {
  const copy = new Uint8Array(bytes.length + 4);
  copy.set(bytes, 4);
  return copy.subarray(4);
};

/** A decoded value in the form of the vectors. */
function plain(value) {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number" && !Number.isFinite(value)) {
    return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  if (ArrayBuffer.isView(value)) return Array.from(value, (x) => plain(typeof x === "bigint" && Number.isSafeInteger(Number(x)) ? Number(x) : x));
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  }
  return value;
}

/** Elements of a bool sequence are bytes in ours, booleans in rclpy's. */
const numbersForBooleans = (value) =>
  JSON.parse(JSON.stringify(value, (_, inner) => (Array.isArray(inner) ? inner.map((x) => (typeof x === "boolean" ? Number(x) : x)) : inner)));

/** `"…n"` of the vectors as BigInt. */
function bigints(value) {
  if (typeof value === "string" && /^-?\d+n$/.test(value)) return BigInt(value.slice(0, -1));
  if (Array.isArray(value)) return value.map(bigints);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, bigints(inner)]));
  }
  return value;
}

for (const { type, schema, cdr, value } of vectors) {
  test(`${type} is decoded as rclpy wrote it, and encoded to the same bytes`, () => {
    const parsed = parseSchema(type, schema);
    const bytes = fromHex(cdr);
    for (const input of [bytes, aligned(bytes)]) {
      assert.deepEqual(plain(decode(parsed, input)), numbersForBooleans(value));
    }
    const encoded = encode(parsed, bigints(value));
    const padded = new Uint8Array(bytes.length);
    padded.set(encoded.subarray(0, bytes.length));
    assert.ok(bytes.length - encoded.length < 4, "more than padding is missing");
    assert.equal(Buffer.from(padded).toString("hex"), cdr);
    assert.deepEqual(decode(parsed, encode(parsed, decode(parsed, bytes))), decode(parsed, bytes));
    encode(parsed, zeroValue(parsed));
  });
}

test("sequences of numbers are views of an aligned message", () => {
  const { type, schema, cdr } = vectors.find((v) => v.type === "sensor_msgs/msg/LaserScan");
  const bytes = aligned(fromHex(cdr));
  const { ranges } = decode(parseSchema(type, schema), bytes);
  assert.ok(ranges instanceof Float32Array);
  assert.equal(ranges.buffer, bytes.buffer);
});

test("big-endian and XCDR2 messages are read", () => {
  const type = parseSchema("a/B", "uint8 a\nfloat64 b\nuint16[] c\n");
  const big = fromHex("00000000" + "01" + "00".repeat(7) + "3ff8000000000000" + "00000002" + "00010002");
  assert.deepEqual(plain(decode(type, big)), { a: 1, b: 1.5, c: [1, 2] });
  const xcdr2 = fromHex("00070000" + "01" + "00".repeat(3) + "000000000000f83f" + "01000000" + "0500");
  assert.deepEqual(plain(decode(type, xcdr2)), { a: 1, b: 1.5, c: [5] });
  assert.throws(() => decode(type, fromHex("0009000000")), /encapsulation 0.9 is not supported/);
});

test("lengths are checked before anything is allocated", () => {
  const long = fromHex("00010000" + "ffffffff" + "00");
  for (const [schema, message] of [
    ["float64[] a", /4294967295 values of float64 needs/],
    ["string a", /string needs 4294967295 bytes/],
    ["wstring a", /wstring needs/],
    ["string[] a", /4294967295 values of string needs/],
    ["uint8[<=3] a", /its bound is 3/],
    ["uint8[200000000] a", /needs 200000000 bytes/],
    ["E[] a\n================\nMSG: p/E\n", /4294967295 values of p\/E needs/],
  ]) {
    assert.throws(() => decode(parseSchema("p/T", schema), long), message);
  }
  const many = new Uint8Array(3_000_008);
  many.set([0, 1, 0, 0, 0xc0, 0xc6, 0x2d, 0]);
  const empties = parseSchema("p/T", "E[] a\n================\nMSG: p/E\n");
  assert.throws(() => decode(empties, many), /over 2000000 elements/);
});

test("definitions that cannot be read are refused with the line or the type", () => {
  for (const [schema, message] of [
    ["uint8", /cannot read "uint8"/],
    ["uint8[ a", /cannot read/],
    ["innerHTML[x] a", /cannot read/],
    ["Point p", /uses Point, which the definition lacks/],
    ["uint8 a\nuint8 a", /two fields "a"/],
    ["uint8[99999999999] a", /too long/],
    ["A a\n================\nMSG: p/A\nB b\n================\nMSG: p/B\nA a\n", /contains itself/],
    ["A a\n================\nuint8 b\n", /no heading/],
    ["T a", /lacks/],
  ]) {
    assert.throws(() => parseSchema("p/msg/T", schema), (error) => {
      assert.ok(error instanceof CdrError);
      assert.match(error.message, message);
      return true;
    });
  }
});

test("constants, defaults, comments and bounds are read", () => {
  const type = parseSchema("p/T", 'uint8 DEBUG=10 # low\nstring NAME="a#b"\nint32 x 5 # five\nstring<=4 s "hi"\nstring<=4[<=2] t\nint8[<=3] u [1, 2]\nbool Y=True\n');
  assert.deepEqual(type.constants.map((c) => [c.name, c.value]), [["DEBUG", 10], ["NAME", "a#b"], ["Y", true]]);
  assert.deepEqual(type.fields.map((f) => [f.name, f.type, f.array, f.length, f.bound]), [
    ["x", "int32", "", undefined, undefined],
    ["s", "string", "", undefined, 4],
    ["t", "string", "sequence", 2, 4],
    ["u", "int8", "sequence", 3, undefined],
  ]);
});

test("values that do not fit are refused with their path", () => {
  const type = parseSchema("p/T", "uint8 a\nN[] n\nstring s\nfloat32 f\n================\nMSG: p/N\nint8[2] b\n");
  for (const [value, message] of [
    [{ a: 256 }, /a: 256 is not of type uint8/],
    [{ a: 1.5 }, /a: 1.5 is not/],
    [{ n: [{ b: [1] }] }, /n\[0\].b: has 1 elements instead of 2/],
    [{ n: [{ b: [1, "x"] }] }, /n\[0\].b\[1\]: x is not/],
    [{ s: 5 }, /s: 5 is not a text/],
    [{ f: "5" }, /f: 5 is no number/],
    [{ nope: 1 }, /no field "nope"/],
    [{ n: 3 }, /n: 3 is not a list/],
    [[], /is not an object/],
  ]) {
    assert.throws(() => encode(type, value), (error) => error instanceof CdrError && message.test(error.message));
  }
});

/** Reproducible random numbers (mulberry32). */
function randomNumbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

test("20 000 damaged messages give a value or the decoder's own error", () => {
  const random = randomNumbers(48);
  const types = vectors.map(({ type, schema, cdr }) => ({ type: parseSchema(type, schema), bytes: fromHex(cdr) }));
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const { type, bytes } = types[Math.floor(random() * types.length)];
    let damaged = bytes.slice(0, random() < 0.3 ? Math.floor(random() * bytes.length) : bytes.length);
    if (random() < 0.3) damaged = Uint8Array.from({ length: Math.floor(random() * 200) }, () => random() * 256);
    if (random() < 0.8) damaged.set([0, random() < 0.8 ? 1 : 0].slice(0, damaged.length));
    for (let i = Math.floor(random() * 6); i > 0 && damaged.length; i--) {
      damaged[Math.floor(random() * damaged.length)] = random() < 0.5 ? 255 : random() * 256;
    }
    try {
      decode(type, damaged);
    } catch (error) {
      assert.ok(error instanceof CdrError, `${type.name} round ${round}: ${error.stack}`);
      refused += 1;
    }
  }
  assert.ok(refused > 2_000 && refused < 19_000, `${refused} refused`);
});

test("5 000 damaged definitions give a type or the parser's own error", () => {
  const random = randomNumbers(49);
  for (let round = 0; round < 5_000; round++) {
    const { type, schema } = vectors[Math.floor(random() * vectors.length)];
    const characters = [...schema];
    for (let i = 0; i < 5; i++) {
      characters[Math.floor(random() * characters.length)] = "[]<=#/\n 9aZ"[Math.floor(random() * 11)];
    }
    try {
      parseSchema(type, characters.join(""));
    } catch (error) {
      assert.ok(error instanceof CdrError, error.stack);
    }
  }
});
