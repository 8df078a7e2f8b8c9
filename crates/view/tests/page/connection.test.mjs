// The protocol client beside a socket that the test plays.
import assert from "node:assert/strict";
import test from "node:test";

import { Connection, PARAMETERS_MAX } from "../../page/connection.js";
import { encode, parseSchema } from "../../page/cdr.js";

class Socket {
  readyState = 1;
  sent = [];
  send(data) {
    this.sent.push(typeof data === "string" ? JSON.parse(data) : data);
  }
  close() {
    this.readyState = 3;
  }
  text(value) {
    this.onmessage({ data: JSON.stringify(value) });
  }
  ops() {
    return this.sent.map((m) => m.op ?? "binary");
  }
}

const STRING = { encoding: "cdr", schemaName: "std_msgs/msg/String", schema: "string data\n", schemaEncoding: "ros2msg" };
const channel = (id, topic) => ({ id, topic, ...STRING });

function connected(context, capabilities = ["clientPublish", "services", "parameters"]) {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  const sockets = [];
  const connection = new Connection("ws://robot/?token=t", {
    open: () => {
      sockets.push(new Socket());
      return sockets.at(-1);
    },
    probe: async () => "the token is refused",
  });
  connection.connect();
  sockets[0].onopen();
  sockets[0].text({ op: "serverInfo", name: "robot", capabilities });
  return { connection, sockets, socket: sockets[0] };
}

function dataFrame(subscription, bytes) {
  const frame = new Uint8Array(13 + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint8(0, 1);
  view.setUint32(1, subscription, true);
  view.setBigUint64(5, 1_500_000_000n, true);
  frame.set(bytes, 13);
  return frame.buffer;
}

const hello = encode(parseSchema("std_msgs/msg/String", STRING.schema), { data: "hello" });

test("one subscription serves all listeners and ends with the last", (context) => {
  const { connection, socket } = connected(context);
  socket.text({ op: "advertise", channels: [channel(7, "/chatter")] });
  const heard = [];
  const ends = [1, 2].map((n) => connection.subscribe("/chatter", "", (m) => heard.push([n, m.value.data, m.seconds])));
  const subscriptions = socket.sent.filter(({ op }) => op === "subscribe");
  assert.equal(subscriptions.length, 1);
  const { id, channelId } = subscriptions[0].subscriptions[0];
  assert.equal(channelId, 7);
  socket.onmessage({ data: dataFrame(id, hello) });
  assert.deepEqual(heard, [[1, "hello", 1.5], [2, "hello", 1.5]]);
  ends[0]();
  assert.ok(!socket.ops().includes("unsubscribe"));
  ends[1]();
  ends[1]();
  assert.deepEqual(socket.sent.filter(({ op }) => op === "unsubscribe"), [{ op: "unsubscribe", subscriptionIds: [id] }]);
});

test("a lost robot is said, tried again with back-off, and subscribed anew", (context) => {
  const { connection, sockets, socket } = connected(context);
  const heard = [];
  connection.subscribe("/chatter", STRING.schemaName, (m) => heard.push(m.value.data));
  socket.text({ op: "advertise", channels: [channel(7, "/chatter")] });
  socket.onclose({ code: 1006 });
  assert.equal(connection.state.text, "robot lost: trying again…");
  assert.equal(connection.channels.size, 0);
  context.mock.timers.tick(499);
  assert.equal(sockets.length, 1);
  context.mock.timers.tick(1);
  assert.equal(sockets.length, 2);
  sockets[1].onclose({ code: 1006 });
  context.mock.timers.tick(999);
  assert.equal(sockets.length, 2);
  context.mock.timers.tick(1);
  sockets[2].onopen();
  sockets[2].text({ op: "advertise", channels: [channel(3, "/chatter")] });
  const { id, channelId } = sockets[2].sent.find(({ op }) => op === "subscribe").subscriptions[0];
  assert.equal(channelId, 3);
  sockets[2].onmessage({ data: dataFrame(id, hello) });
  assert.deepEqual(heard, ["hello"]);
});

test("a refused socket gets the probe's reason", async (context) => {
  const { connection, sockets, socket } = connected(context);
  socket.onclose({ code: 1006 });
  context.mock.timers.tick(500);
  await sockets[1].onclose({ code: 1006 });
  assert.equal(connection.state.text, "the token is refused");
});

test("a silent robot is said until it speaks again", (context) => {
  const { connection, socket } = connected(context);
  context.mock.timers.tick(6000);
  assert.match(connection.state.text, /nothing received for \d s/);
  socket.text({ op: "pteros.stats", topics: [] });
  context.mock.timers.tick(1000);
  assert.equal(connection.state.phase, "open");
});

test("bytes that cannot be read give the message's error and stop nothing", (context) => {
  const { connection, socket } = connected(context);
  socket.text({ op: "advertise", channels: [channel(7, "/chatter"), { ...channel(8, "/odd"), schema: "", schemaName: "a/msg/B" }] });
  const errors = [];
  connection.subscribe("/chatter", "", (m) => errors.push(m.error));
  connection.subscribe("/odd", "", (m) => errors.push(m.error));
  const ids = socket.sent.filter(({ op }) => op === "subscribe").map((m) => m.subscriptions[0].id);
  socket.onmessage({ data: dataFrame(ids[0], hello.subarray(0, 7)) });
  socket.onmessage({ data: dataFrame(ids[1], hello) });
  assert.match(errors[0], /uint32 needs 4 bytes, 3 are left/);
  assert.match(errors[1], /no definition of a\/msg\/B/);
});

test("broken frames become a status, unknown operations nothing", (context) => {
  const { connection, socket } = connected(context);
  for (const data of ["{", "null", '{"op":"advertise"}', new ArrayBuffer(0), new Uint8Array([1, 2]).buffer, new Uint8Array([4, 1, 0, 0, 0, 0, 255, 255, 255, 255]).buffer]) {
    socket.onmessage({ data });
  }
  socket.text({ op: "constructor" });
  socket.text({ op: "tomorrow" });
  assert.equal(connection.statuses.length, 5);
  assert.equal(connection.state.phase, "open");
});

test("publishing announces once and is refused by a read-only robot", (context) => {
  const { connection, socket } = connected(context);
  connection.publish("/goal", STRING.schemaName, STRING.schema, { data: "hello" });
  connection.publish("/goal", STRING.schemaName, STRING.schema, { data: "hello" });
  assert.deepEqual(socket.ops().filter((op) => op !== "pteros.hello"), ["advertise", "binary", "binary"]);
  assert.deepEqual(socket.sent.at(-1).slice(5), hello);
  socket.text({ op: "serverInfo", name: "robot", capabilities: [] });
  assert.throws(() => connection.publish("/goal", STRING.schemaName, STRING.schema, {}), /read-only: start pteros view with --allow publish/);
});

test("a service's answer, its failure and its absence are told apart", async (context) => {
  const { connection, socket } = connected(context);
  const side = { schemaName: "", schema: "int64 a\n", encoding: "cdr" };
  socket.text({ op: "advertiseServices", services: [{ id: 5, name: "/add", type: "p/srv/Add", request: side, response: { ...side, schema: "int64 sum\n" } }] });
  const service = connection.services.get(5);
  const answer = connection.callService(service, { a: 3 });
  const sent = socket.sent.at(-1);
  const call = new DataView(sent.buffer).getUint32(5, true);
  const body = encode(parseSchema("p/R", "int64 sum\n"), { sum: 9 });
  const frame = new Uint8Array(16 + body.length);
  frame.set(sent.subarray(0, 16));
  frame[0] = 3;
  frame.set(body, 16);
  socket.onmessage({ data: frame.buffer });
  assert.deepEqual(await answer, { sum: 9 });
  const failed = connection.callService(service, {});
  socket.text({ op: "serviceCallFailure", serviceId: 5, callId: call + 1, message: "no server" });
  await assert.rejects(failed, /no server/);
  const silent = connection.callService(service, {});
  context.mock.timers.tick(15_000);
  await assert.rejects(silent, /no answer within 15 s/);
  await assert.rejects(connection.callService(service, { b: 1 }), /no field "b"/);
  const cut = connection.getParameters();
  socket.onclose({});
  await assert.rejects(cut, /connection is lost/);
});

test("the graph is the whole update and the differences after it", (context) => {
  const { connection, socket } = connected(context);
  socket.text({ op: "connectionGraphUpdate", publishedTopics: [{ name: "/a", publisherIds: ["/n"] }], subscribedTopics: [{ name: "/a", subscriberIds: ["/m"] }], advertisedServices: [{ name: "/s", providerIds: ["/n"] }], removedTopics: [], removedServices: [] });
  socket.text({ op: "connectionGraphUpdate", publishedTopics: [{ name: "/b", publisherIds: ["/n"] }], removedTopics: ["/a"], removedServices: ["/s"] });
  assert.deepEqual([...connection.graph.publishers], [["/b", ["/n"]]]);
  assert.equal(connection.graph.subscribers.size + connection.graph.services.size, 0);
});

test("parameter updates change values, and one without a value removes it", async (context) => {
  const { connection, socket } = connected(context);
  const end = connection.watchParameters();
  const asked = connection.getParameters();
  const { id } = socket.sent.find(({ op }) => op === "getParameters");
  socket.text({ op: "parameterValues", id, parameters: [{ name: "/a.x", value: 1 }, { name: "/a.unset" }] });
  assert.equal((await asked).length, 2);
  socket.text({ op: "parameterValues", parameters: [{ name: "/a.x", value: 2 }] });
  assert.deepEqual([...connection.parameters.values()], [{ name: "/a.x", value: 2 }, { name: "/a.unset" }]);
  socket.text({ op: "parameterValues", parameters: [{ name: "/a.x" }] });
  assert.deepEqual([...connection.parameters.keys()], ["/a.unset"]);
  end();
  assert.deepEqual(socket.ops().slice(-1), ["unsubscribeParameterUpdates"]);
});

test("a .rviz file is read by the server, and its fault is told", async (context) => {
  const { connection, socket } = connected(context);
  const read = connection.readRviz("a.rviz", "text");
  const { id, name, text } = socket.sent.at(-1);
  assert.deepEqual([name, text], ["a.rviz", "text"]);
  socket.text({ op: "pteros.rviz", id, file: { name } });
  assert.deepEqual(await read, { name: "a.rviz" });
  const wrong = connection.readRviz("b", "");
  socket.text({ op: "pteros.rviz", id: socket.sent.at(-1).id, error: "no .rviz file" });
  await assert.rejects(wrong, /no \.rviz file/);
});

test("the parameters that are kept are bounded, and those that are known stay up to date", (context) => {
  const { connection, socket } = connected(context);
  const update = (name, value) => ({ name: `/a.${name}`, value });
  socket.text({ op: "parameterValues", parameters: Array.from({ length: PARAMETERS_MAX + 5 }, (_, i) => update(i, 1)) });
  assert.equal(connection.parameters.size, PARAMETERS_MAX);
  assert.equal(connection.statuses.filter(({ message }) => message.includes("parameters")).length, 1);
  socket.text({ op: "parameterValues", parameters: [update(0, 2)] });
  assert.equal(connection.parameters.get("/a.0").value, 2);
});
