// Foxglove WebSocket client (subprotocol `foxglove.sdk.v1`): channels, subscriptions, client
// publishing, parameters, services, connection graph, assets, and the operations `pteros.*`.
//
// Reconnects with a growing back-off and renews what its users asked for. One subscription per
// channel serves all listeners and ends with the last. Keeps no message.

import { decode, encode, parseSchema } from "./cdr.js";
import { Channel, Message } from "./channel.js";
import { Socket } from "./socket.js";

const ANSWER_MS_MAX = 15_000;
const STATUS_MAX = 200;
/** Parameters that are kept; others are not shown. */
export const PARAMETERS_MAX = 20_000;

const text = new TextDecoder();
const textEncoder = new TextEncoder();

export class Connection extends Socket {
  constructor(...options) {
    super(...options);
    this.wanted = new Map();
    this.published = new Map();
    this.statuses = [];
    this.nextId = 1;
    this.graphUsers = 0;
    this.forget();
  }

  /** State that one session of the server owns. */
  forget() {
    this.info = { name: "", capabilities: [], metadata: {} };
    this.channels = new Map();
    this.services = new Map();
    this.graph = { publishers: new Map(), subscribers: new Map(), services: new Map() };
    this.parameters = new Map();
    this.simulatedTime = undefined;
    this.clockOffset = 0;
    this.stats = { topics: [], skipped: [], clients: 0 };
    this.subscriptions = new Map();
    for (const { reject } of this.pending?.values() ?? []) reject(new Error("the connection is lost"));
    this.pending = new Map();
    for (const wanted of this.wanted.values()) wanted.subscription = undefined;
    for (const channel of this.published.values()) channel.announced = false;
  }

  has(capability) {
    return this.state.phase === "open" && this.info.capabilities.includes(capability);
  }

  // ---- receiving

  receive(data) {
    this.lastReceived = Date.now();
    try {
      if (typeof data === "string") this.receiveText(JSON.parse(data));
      else this.receiveBinary(data);
    } catch (error) {
      this.addStatus({ level: 2, message: `a message of the server cannot be read: ${error.message}` });
    }
  }

  receiveText(message) {
    const handlers = {
      serverInfo: () => this.receiveInfo(message),
      status: () => this.addStatus(message),
      removeStatus: () => this.removeStatuses(message.statusIds ?? []),
      advertise: () => this.receiveChannels(message.channels),
      unadvertise: () => this.removeChannels(message.channelIds),
      advertiseServices: () => this.receiveServices(message.services),
      unadvertiseServices: () => {
        for (const id of message.serviceIds) this.services.delete(id);
        this.emit("services");
      },
      serviceCallFailure: () => this.settle(`call ${message.callId}`, undefined, message.message),
      parameterValues: () => this.receiveParameters(message),
      connectionGraphUpdate: () => this.receiveGraph(message),
      "pteros.stats": () => this.receiveStats(message),
      "pteros.rviz": () => this.settle(`rviz ${message.id}`, message.file, message.error),
    };
    if (Object.hasOwn(handlers, message?.op)) handlers[message.op]();
  }

  receiveInfo({ name, capabilities, metadata, sessionId }) {
    this.info = {
      name: String(name ?? ""),
      capabilities: Array.isArray(capabilities) ? capabilities : [],
      metadata: metadata ?? {},
      sessionId,
    };
    this.emit("info", this.info);
    if (this.graphUsers > 0) this.send({ op: "subscribeConnectionGraph" });
    for (const channel of this.published.values()) this.announce(channel);
  }

  addStatus({ level, message, id }) {
    this.statuses = this.statuses.filter((status) => id === undefined || status.id !== id);
    this.statuses.push({ level: Number(level) || 0, message: String(message), id, at: Date.now() });
    this.statuses.splice(0, this.statuses.length - STATUS_MAX);
    this.emit("status", this.statuses);
  }

  removeStatuses(ids) {
    this.statuses = this.statuses.filter(({ id }) => !ids.includes(id));
    this.emit("status", this.statuses);
  }

  receiveChannels(channels) {
    for (const channel of channels) this.channels.set(channel.id, new Channel(channel));
    for (const wanted of this.wanted.values()) this.subscribeWanted(wanted);
    this.emit("channels");
  }

  removeChannels(ids) {
    for (const id of ids) {
      this.channels.delete(id);
      for (const wanted of this.wanted.values()) {
        if (wanted.channelId === id && wanted.subscription !== undefined) {
          this.subscriptions.delete(wanted.subscription);
          wanted.subscription = undefined;
        }
      }
    }
    this.emit("channels");
  }

  receiveServices(services) {
    for (const service of services) {
      const name = service.type ?? "";
      const side = (object, plain, suffix) => ({
        name: object?.schemaName || `${name}${suffix}`,
        schema: object?.schema ?? plain ?? "",
      });
      this.services.set(service.id, {
        id: service.id,
        name: service.name,
        type: name,
        request: side(service.request, service.requestSchema, "_Request"),
        response: side(service.response, service.responseSchema, "_Response"),
      });
    }
    this.emit("services");
  }

  receiveParameters({ parameters, id }) {
    let isFull = false;
    for (const parameter of parameters) {
      // An update without a value: the parameter has gone.
      if (!id && parameter.value === undefined) this.parameters.delete(parameter.name);
      else if (this.parameters.has(parameter.name) || this.parameters.size < PARAMETERS_MAX) this.parameters.set(parameter.name, parameter);
      else isFull = true;
    }
    if (isFull) this.addStatus({ id: "page parameters", level: 1, message: `page: there are more than ${PARAMETERS_MAX} parameters; the others are not shown` });
    this.emit("parameters", parameters);
    if (id) this.settle(`parameters ${id}`, parameters);
  }

  receiveGraph(update) {
    const { publishers, subscribers, services } = this.graph;
    for (const { name, publisherIds } of update.publishedTopics ?? []) publishers.set(name, publisherIds);
    for (const { name, subscriberIds } of update.subscribedTopics ?? []) subscribers.set(name, subscriberIds);
    for (const { name, providerIds } of update.advertisedServices ?? []) services.set(name, providerIds);
    for (const name of update.removedTopics ?? []) {
      publishers.delete(name);
      subscribers.delete(name);
    }
    for (const name of update.removedServices ?? []) services.delete(name);
    this.emit("graph", this.graph);
  }

  receiveStats({ topics, skipped, clients }) {
    this.stats = { topics: topics ?? [], skipped: skipped ?? [], clients: clients ?? 0 };
    this.emit("stats", this.stats);
  }

  receiveBinary(buffer) {
    const view = new DataView(buffer);
    const op = view.getUint8(0);
    if (op === 1) this.receiveMessage(view);
    else if (op === 2) this.simulatedTime = Number(view.getBigUint64(1, true)) / 1e9;
    else if (op === 3) this.receiveResponse(view);
    else if (op === 4) this.receiveAsset(view);
  }

  receiveMessage(view) {
    const wanted = this.subscriptions.get(view.getUint32(1, true));
    if (!wanted) return;
    const channel = this.channels.get(wanted.channelId);
    if (!channel) return;
    const bytes = new Uint8Array(view.buffer, 13);
    wanted.count += 1;
    wanted.bytes += bytes.length;
    const message = new Message(channel, view.getBigUint64(5, true), bytes);
    this.clockOffset = message.seconds - Date.now() / 1000;
    for (const listener of [...wanted.listeners]) {
      try {
        listener(message);
      } catch (error) {
        console.error(error);
        this.addStatus({ id: `page ${wanted.topic}`, level: 2, message: `page: ${wanted.topic}: ${error.message}` });
      }
    }
  }

  receiveResponse(view) {
    const callId = view.getUint32(5, true);
    const encodingLength = view.getUint32(9, true);
    this.settle(`call ${callId}`, new Uint8Array(view.buffer, 13 + encodingLength));
  }

  receiveAsset(view) {
    const failed = view.getUint8(5) !== 0;
    const errorLength = view.getUint32(6, true);
    const error = text.decode(new Uint8Array(view.buffer, 10, errorLength));
    this.settle(`asset ${view.getUint32(1, true)}`, view.buffer.slice(10 + errorLength), failed ? error || "failed" : undefined);
  }

  // ---- requests with an answer

  ask(key, send) {
    return new Promise((resolve, reject) => {
      if (this.socket?.readyState !== 1) return reject(new Error("not connected"));
      const timer = setTimeout(() => this.settle(key, undefined, "no answer within 15 s"), ANSWER_MS_MAX);
      this.pending.set(key, {
        resolve: (value) => (clearTimeout(timer), resolve(value)),
        reject: (error) => (clearTimeout(timer), reject(error)),
      });
      send();
    });
  }

  settle(key, value, error) {
    const waiting = this.pending.get(key);
    this.pending.delete(key);
    if (error !== undefined) waiting?.reject(new Error(error));
    else waiting?.resolve(value);
  }

  fetchAsset(uri) {
    const requestId = this.nextId++;
    return this.ask(`asset ${requestId}`, () => this.send({ op: "fetchAsset", uri, requestId }));
  }

  getParameters(parameterNames = []) {
    const id = `get-${this.nextId++}`;
    return this.ask(`parameters ${id}`, () => this.send({ op: "getParameters", parameterNames, id }));
  }

  setParameters(parameters) {
    const id = `set-${this.nextId++}`;
    return this.ask(`parameters ${id}`, () => this.send({ op: "setParameters", parameters, id }));
  }

  /** The JSON of a `.rviz` file: of a text, or of the file that `pteros view` was given. */
  readRviz(name, text) {
    const id = this.nextId++;
    return this.ask(`rviz ${id}`, () => this.send({ op: "pteros.rviz", id, name, text }));
  }

  /** Calls a service with an object and resolves to the response as an object. */
  async callService(service, value) {
    const request = parseSchema(service.request.name, service.request.schema);
    const response = parseSchema(service.response.name, service.response.schema);
    const callId = this.nextId++;
    const encoding = textEncoder.encode("cdr");
    const bytes = await this.ask(`call ${callId}`, () =>
      this.sendBinary(2, [service.id, callId, encoding.length], encoding, encode(request, value)));
    return decode(response, bytes);
  }

  // ---- subscriptions

  /** Channels of a topic, one for each type. */
  channelsOf(topic) {
    return [...this.channels.values()].filter((channel) => channel.topic === topic);
  }

  /**
   * Calls `listener` for each message of a topic, also after a reconnection. `type` chooses
   * among several types. Returns the function that ends it.
   */
  subscribe(topic, type, listener) {
    const key = `${topic}\n${type}`;
    let wanted = this.wanted.get(key);
    if (!wanted) {
      wanted = { topic, type, listeners: new Set(), count: 0, bytes: 0 };
      this.wanted.set(key, wanted);
    }
    const own = (message) => listener(message);
    wanted.listeners.add(own);
    this.subscribeWanted(wanted);
    return () => {
      wanted.listeners.delete(own);
      if (wanted.listeners.size > 0 || this.wanted.get(key) !== wanted) return;
      this.wanted.delete(key);
      if (wanted.subscription === undefined) return;
      this.subscriptions.delete(wanted.subscription);
      this.send({ op: "unsubscribe", subscriptionIds: [wanted.subscription] });
    };
  }

  subscribeWanted(wanted) {
    if (wanted.subscription !== undefined) return;
    const channel = this.channelsOf(wanted.topic).find(({ schemaName }) => !wanted.type || schemaName === wanted.type);
    if (!channel) return;
    wanted.channelId = channel.id;
    wanted.subscription = this.nextId++;
    this.subscriptions.set(wanted.subscription, wanted);
    this.send({ op: "subscribe", subscriptions: [{ id: wanted.subscription, channelId: channel.id }] });
  }

  /** Begins connection graph updates. Returns the function that ends them. */
  watchGraph() {
    if (this.graphUsers++ === 0) this.send({ op: "subscribeConnectionGraph" });
    return () => {
      if (--this.graphUsers === 0) this.send({ op: "unsubscribeConnectionGraph" });
    };
  }

  /** Begins updates of all parameters. Returns the function that ends them. */
  watchParameters() {
    this.send({ op: "subscribeParameterUpdates", parameterNames: [] });
    return () => this.send({ op: "unsubscribeParameterUpdates", parameterNames: [] });
  }

  // ---- publishing

  /** The robot's time in seconds: simulated, or this host's corrected by the last message. */
  now() {
    return this.simulatedTime ?? Date.now() / 1000 + this.clockOffset;
  }

  /** `now` as a builtin_interfaces/Time. */
  stamp() {
    const now = this.now();
    return { sec: Math.floor(now), nanosec: Math.floor((now % 1) * 1e9) };
  }

  /** Why this page may not publish, or an empty text. */
  get publishRefusal() {
    if (this.state.phase !== "open") return "not connected";
    if (!this.info.capabilities.includes("clientPublish")) {
      return "the robot is read-only: start pteros view with --allow publish";
    }
    return "";
  }

  announce(channel) {
    if (channel.announced || this.publishRefusal) return;
    channel.announced = true;
    const { id, topic, schemaName, schema } = channel;
    this.send({ op: "advertise", channels: [{ id, topic, encoding: "cdr", schemaName, schema, schemaEncoding: "ros2msg" }] });
  }

  /** Publishes an object. `schema` is the definition's text. Throws with the reason if refused. */
  publish(topic, schemaName, schema, value) {
    if (this.publishRefusal) throw new Error(this.publishRefusal);
    const key = `${topic}\n${schemaName}`;
    let channel = this.published.get(key);
    if (!channel) {
      channel = { id: this.nextId++, topic, schemaName, schema, type: parseSchema(schemaName, schema) };
      this.published.set(key, channel);
    }
    const bytes = encode(channel.type, value);
    this.announce(channel);
    this.sendBinary(1, [channel.id], bytes);
  }
}
