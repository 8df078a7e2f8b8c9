// CDR codec: decodes messages of a parsed schema (schema.js) to objects, and encodes objects.
//
// Plain CDR (XCDR1) of both byte orders, and plain XCDR2, as `rmw` implementations write it: a header
// of 4 bytes, then fields aligned from byte 4. Sequences of numbers become typed arrays over the
// message's own bytes where alignment allows. Every length is checked against the remaining bytes
// before anything is allocated. Bad data throw CdrError and nothing else.

import { CdrError, parseSchema } from "./schema.js";

export { CdrError, parseSchema };

const LITTLE_ENDIAN_HOST = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
/** Largest number of objects and strings that one message may become. */
const OBJECTS_MAX = 2_000_000;

const NUMBERS = {
  bool: [1, "getUint8", "setUint8", Uint8Array],
  int8: [1, "getInt8", "setInt8", Int8Array],
  uint8: [1, "getUint8", "setUint8", Uint8Array],
  int16: [2, "getInt16", "setInt16", Int16Array],
  uint16: [2, "getUint16", "setUint16", Uint16Array],
  int32: [4, "getInt32", "setInt32", Int32Array],
  uint32: [4, "getUint32", "setUint32", Uint32Array],
  int64: [8, "getBigInt64", "setBigInt64", BigInt64Array],
  uint64: [8, "getBigUint64", "setBigUint64", BigUint64Array],
  float32: [4, "getFloat32", "setFloat32", Float32Array],
  float64: [8, "getFloat64", "setFloat64", Float64Array],
};

const utf8 = new TextDecoder();
const utf8Encoder = new TextEncoder();

// ---- decoding

class Reader {
  constructor(bytes) {
    if (bytes.length < 4) throw new CdrError(`message of ${bytes.length} bytes has no CDR header`);
    const kind = bytes[1];
    if (bytes[0] !== 0 || ![0, 1, 6, 7].includes(kind)) {
      throw new CdrError(`CDR encapsulation ${bytes[0]}.${kind} is not supported`);
    }
    this.little = (kind & 1) === 1;
    this.alignmentMax = kind >= 6 ? 4 : 8;
    this.body = bytes.subarray(4);
    this.view = new DataView(this.body.buffer, this.body.byteOffset, this.body.length);
    this.at = 0;
    this.objects = 0;
  }

  align(size) {
    const alignment = Math.min(size, this.alignmentMax);
    this.at += (alignment - (this.at % alignment)) % alignment;
  }

  need(count, what) {
    if (!(count <= this.body.length - this.at)) {
      const left = Math.max(0, this.body.length - this.at);
      throw new CdrError(`${what} needs ${count} bytes, ${left} are left at byte ${this.at}`);
    }
  }

  countObjects(count) {
    this.objects += count;
    if (this.objects > OBJECTS_MAX) throw new CdrError(`message has over ${OBJECTS_MAX} elements`);
  }

  number(type) {
    const [size, read] = NUMBERS[type];
    this.align(size);
    this.need(size, type);
    const value = this.view[read](this.at, this.little);
    this.at += size;
    if (type === "bool") return value !== 0;
    return typeof value === "bigint" ? numberOf(value) : value;
  }

  numbers(type, count) {
    const [size, read, , Values] = NUMBERS[type];
    if (count === 0) return new Values(0);
    this.align(size);
    this.need(size * count, `${count} values of ${type}`);
    const start = this.body.byteOffset + this.at;
    const at = this.at;
    this.at += size * count;
    if (this.little === LITTLE_ENDIAN_HOST || size === 1) {
      const buffer = this.body.buffer;
      if (start % size === 0) return new Values(buffer, start, count);
      return new Values(buffer.slice(start, start + size * count));
    }
    const values = new Values(count);
    for (let i = 0; i < count; i++) values[i] = this.view[read](at + i * size, this.little);
    return values;
  }

  text() {
    const count = this.number("uint32");
    if (count === 0) return "";
    this.need(count, "string");
    const end = this.body[this.at + count - 1] === 0 ? count - 1 : count;
    const text = utf8.decode(this.body.subarray(this.at, this.at + end));
    this.at += count;
    return text;
  }

  wideText() {
    const count = this.number("uint32");
    this.need(count * 4, "wstring");
    let text = "";
    for (let i = 0; i < count; i++, this.at += 4) {
      text += String.fromCharCode(this.view.getUint32(this.at, this.little) & 0xffff);
    }
    return text;
  }

  single(field) {
    if (field.nested) return this.structure(field.nested);
    if (field.type === "string") return this.text();
    return field.type === "wstring" ? this.wideText() : this.number(field.type);
  }

  field(field) {
    if (!field.array) return this.single(field);
    const count = field.array === "fixed" ? field.length : this.number("uint32");
    if (field.array === "sequence" && field.length !== undefined && count > field.length) {
      throw new CdrError(`${field.name} has ${count} elements, its bound is ${field.length}`);
    }
    if (NUMBERS[field.type]) return this.numbers(field.type, count);
    this.need(count * minimumSize(field), `${count} values of ${field.type}`);
    this.countObjects(count);
    const values = [];
    for (let i = 0; i < count; i++) values.push(this.single(field));
    return values;
  }

  structure(type) {
    const value = {};
    if (type.fields.length === 0) this.at += 1; // one unused byte
    this.countObjects(1);
    for (const field of type.fields) value[field.name] = this.field(field);
    return value;
  }
}

/** A number where it is exact, otherwise the BigInt. */
function numberOf(value) {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

const sizes = new WeakMap();

/** Least number of bytes of one element, without padding. */
function minimumSize(field) {
  if (!field.nested) return NUMBERS[field.type]?.[0] ?? 4;
  const known = sizes.get(field.nested);
  if (known !== undefined) return known;
  let sum = field.nested.fields.length ? 0 : 1;
  for (const inner of field.nested.fields) {
    const count = inner.array === "fixed" ? inner.length : 1;
    sum += inner.array === "sequence" ? 4 : count * minimumSize(inner);
  }
  sizes.set(field.nested, sum);
  return sum;
}

/** Decodes a message. `bytes` begins with the CDR header. */
export function decode(type, bytes) {
  const reader = new Reader(bytes);
  if (type.fields.length === 0) return {};
  try {
    return reader.structure(type);
  } catch (error) {
    if (error instanceof CdrError) throw new CdrError(`${type.name}: ${error.message}`);
    throw error instanceof RangeError ? new CdrError(`${type.name}: ${error.message}`) : error;
  }
}

// ---- encoding

class Writer {
  constructor() {
    this.bytes = new Uint8Array(256);
    this.view = new DataView(this.bytes.buffer);
    this.bytes[1] = 1; // CDR_LE
    this.end = 4;
  }

  reserve(count) {
    if (this.end + count <= this.bytes.length) return;
    const bytes = new Uint8Array(Math.max(this.bytes.length * 2, this.end + count));
    bytes.set(this.bytes.subarray(0, this.end));
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
  }

  align(size) {
    const padding = (size - ((this.end - 4) % size)) % size;
    this.reserve(padding);
    this.end += padding;
  }

  number(type, value, path) {
    const [size, , write] = NUMBERS[type];
    this.align(size);
    this.reserve(size);
    this.view[write](this.end, checkedNumber(type, value, path), true);
    this.end += size;
  }

  text(value, path) {
    if (typeof value !== "string") throw new CdrError(`${path}: ${show(value)} is not a text`);
    const bytes = utf8Encoder.encode(value);
    this.number("uint32", bytes.length + 1, path);
    this.reserve(bytes.length + 1);
    this.bytes.set(bytes, this.end);
    this.end += bytes.length + 1;
  }

  wideText(value, path) {
    if (typeof value !== "string") throw new CdrError(`${path}: ${show(value)} is not a text`);
    this.number("uint32", value.length, path);
    for (let i = 0; i < value.length; i++) this.number("uint32", value.charCodeAt(i), path);
  }

  single(field, value, path) {
    if (field.nested) return this.structure(field.nested, value ?? {}, path);
    if (field.type === "string") return this.text(value ?? "", path);
    if (field.type === "wstring") return this.wideText(value ?? "", path);
    return this.number(field.type, value ?? 0, path);
  }

  field(field, value, path) {
    if (!field.array) return this.single(field, value, path);
    const values = value ?? (field.array === "fixed" ? new Array(field.length) : []);
    if (!Array.isArray(values) && !ArrayBuffer.isView(values)) {
      throw new CdrError(`${path}: ${show(value)} is not a list`);
    }
    const count = values.length;
    if (field.array === "fixed" ? count !== field.length : count > (field.length ?? Infinity)) {
      throw new CdrError(`${path}: has ${count} elements instead of ${field.length}`);
    }
    if (field.array === "sequence") this.number("uint32", count, path);
    for (let i = 0; i < count; i++) this.single(field, values[i], `${path}[${i}]`);
  }

  structure(type, value, path) {
    if (typeof value !== "object" || Array.isArray(value)) {
      throw new CdrError(`${path || type.name}: ${show(value)} is not an object`);
    }
    const unknown = Object.keys(value).find((key) => !type.fields.some((f) => f.name === key));
    if (unknown) throw new CdrError(`${path || type.name}: ${type.name} has no field "${unknown}"`);
    if (type.fields.length === 0) this.number("uint8", 0, path);
    for (const field of type.fields) {
      this.field(field, value[field.name], path ? `${path}.${field.name}` : field.name);
    }
  }
}

function show(value) {
  return String(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 40);
}

const INTEGER_RANGES = {
  int8: [-128n, 127n], uint8: [0n, 255n], int16: [-32768n, 32767n], uint16: [0n, 65535n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n], uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n], uint64: [0n, 2n ** 64n - 1n],
};

function checkedNumber(type, value, path) {
  if (type === "bool") {
    if (![true, false, 0, 1].includes(value)) throw new CdrError(`${path}: ${show(value)} is no bool`);
    return Number(value);
  }
  const range = INTEGER_RANGES[type];
  if (!range) {
    const number = typeof value === "number" ? value : FLOAT_WORDS[value];
    if (number === undefined) throw new CdrError(`${path}: ${show(value)} is no number`);
    return number;
  }
  const isInteger = typeof value === "bigint" || Number.isInteger(value);
  if (!isInteger || BigInt(value) < range[0] || BigInt(value) > range[1]) {
    throw new CdrError(`${path}: ${show(value)} is not of type ${type}`);
  }
  return type.endsWith("64") ? BigInt(value) : Number(value);
}

// JSON has no words for these.
const FLOAT_WORDS = { nan: NaN, inf: Infinity, "-inf": -Infinity };

/** Encodes an object. Missing fields are zero. Throws CdrError with the field's path. */
export function encode(type, value) {
  const writer = new Writer();
  writer.structure(type, value, "");
  return writer.bytes.slice(0, writer.end);
}

/** An object with every field zero, to be edited. */
export function zeroValue(type) {
  const value = {};
  for (const field of type.fields) {
    if (field.array === "sequence") value[field.name] = [];
    else if (field.array === "fixed") value[field.name] = Array.from({ length: Math.min(field.length, 1024) }, () => zeroOf(field));
    else value[field.name] = zeroOf(field);
  }
  return value;
}

function zeroOf(field) {
  if (field.nested) return zeroValue(field.nested);
  if (field.type === "string" || field.type === "wstring") return "";
  return field.type === "bool" ? false : 0;
}
