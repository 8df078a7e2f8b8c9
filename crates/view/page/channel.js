// A channel of the server with its type, and a message of it.

import { CdrError, decode, parseSchema } from "./cdr.js";

/** A received message. It is decoded on first use, once for all listeners. */
export class Message {
  #read = false;
  #value;
  #error;

  constructor(channel, nanoseconds, bytes) {
    this.channel = channel;
    this.seconds = Number(nanoseconds) / 1e9;
    this.bytes = bytes;
  }

  #decode() {
    if (this.#read) return;
    this.#read = true;
    try {
      this.#value = decode(this.channel.type, this.bytes);
    } catch (error) {
      if (!(error instanceof CdrError)) throw error;
      this.#error = error.message;
    }
  }

  /** The object, or undefined if the bytes cannot be read. */
  get value() {
    this.#decode();
    return this.#value;
  }

  get error() {
    this.#decode();
    return this.#error;
  }
}

/** A channel that the server advertises, with its type read on first use. */
export class Channel {
  #type;
  constructor({ id, topic, encoding, schemaName, schema, schemaEncoding }) {
    Object.assign(this, { id, topic, encoding, schemaName, schema, schemaEncoding });
  }

  get type() {
    if (this.encoding !== "cdr") throw new CdrError(`encoding ${this.encoding} is not supported`);
    if (this.schemaEncoding && this.schemaEncoding !== "ros2msg") {
      throw new CdrError(`definitions of encoding ${this.schemaEncoding} are not supported`);
    }
    if (!this.schema && !this.schemaName?.endsWith("/Empty")) {
      throw new CdrError(`the robot has no definition of ${this.schemaName}`);
    }
    this.#type ??= parseSchema(this.schemaName, this.schema ?? "");
    return this.#type;
  }
}
