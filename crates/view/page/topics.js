// Topics panel: every topic with rate, bandwidth and loss, and the live tree of one.

import { empty, formatBytes, formatRate, formatTime, h, reconcile, setText, Ticker } from "./dom.js";
import { MessageTree } from "./tree.js";

/** Topics that every node has; they are shown on request. */
const HOUSEKEEPING = /^\/(parameter_events|rosout)$|\/_/;

export function topicsPanel(app) {
  const { connection } = app;
  const rows = new Map();
  let selected;
  let end;
  let latest;
  let shown;
  const own = new Map(); // channel id → [count, bytes] one tick ago

  const filter = h("input", { type: "search", placeholder: "Filter topics", "aria-label": "Filter topics", oninput: () => list() });
  const all = h("input", { type: "checkbox", onchange: () => list() });
  const count = h("span", { class: "dim" });
  const body = h("tbody");
  const table = h("table", { class: "topics" },
    h("thead", {}, h("tr", {}, h("th", {}, "topic"), h("th", { class: "number" }, "Hz"), h("th", { class: "number" }, "bandwidth"), h("th", { class: "number" }, "lost"))),
    body);
  const title = h("h2");
  const facts = h("div", { class: "facts" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const tree = new MessageTree((path) => app.plot(selected.topic, selected.schemaName, path));
  const detail = h("section", { class: "detail", hidden: true },
    h("header", {}, title, h("button", { class: "quiet", onclick: () => select(undefined), "aria-label": "Close the message" }, "close")),
    facts, problem, tree.element);
  const element = h("div", { class: "panel split" },
    h("section", { class: "list" },
      h("div", { class: "tools" }, filter, h("label", {}, all, " all"), count),
      h("div", { class: "scroll" }, table)),
    detail);

  function list() {
    const words = filter.value.toLowerCase();
    const channels = [...connection.channels.values()]
      .filter(({ topic, schemaName }) => `${topic} ${schemaName}`.toLowerCase().includes(words))
      .filter(({ topic }) => all.checked || words || !HOUSEKEEPING.test(topic))
      .sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.id - b.id));
    setText(count, `${channels.length} of ${connection.channels.size}`);
    reconcile(body, rows, channels, ({ id }) => id, makeRow);
    if (selected && !connection.channels.has(selected.id)) {
      const again = connection.channelsOf(selected.topic).find(({ schemaName }) => schemaName === selected.schemaName);
      if (again) selected = again;
    }
    refresh();
  }

  function makeRow(channel) {
    const cells = [h("td", { class: "number" }), h("td", { class: "number" }), h("td", { class: "number" })];
    const name = h("button", { class: "name", onclick: () => select(channel) }, channel.topic);
    const row = h("tr", { onclick: (event) => event.target === name || select(channel) },
      h("td", {}, name, h("div", { class: "type" }, channel.schemaName)), cells);
    return { element: row, channel, cells };
  }

  /** Rates measured here, for servers without `pteros.stats`. */
  function measured() {
    const rates = new Map();
    for (const wanted of connection.wanted.values()) {
      if (wanted.subscription === undefined) continue;
      const [count, bytes] = own.get(wanted.channelId) ?? [wanted.count, wanted.bytes];
      rates.set(wanted.channelId, { rate: wanted.count - count, bytesPerSecond: wanted.bytes - bytes });
      own.set(wanted.channelId, [wanted.count, wanted.bytes]);
    }
    return rates;
  }

  function refresh() {
    const stats = new Map(connection.stats.topics.map((topic) => [topic.name, topic]));
    for (const { channel, cells, element: row } of rows.values()) {
      const topic = stats.get(channel.topic);
      const { rate, bytesPerSecond } = topic?.rate != null ? topic : rates.get(channel.id) ?? {};
      setText(cells[0], formatRate(rate));
      setText(cells[1], bytesPerSecond >= 0 ? `${formatBytes(bytesPerSecond)}/s` : "–");
      setText(cells[2], topic?.lost == null ? "–" : String(topic.lost));
      cells[2].classList.toggle("bad", topic?.lost > 0);
      row.classList.toggle("mismatch", topic?.mismatches?.length > 0);
      row.setAttribute("aria-selected", String(channel.id === selected?.id));
    }
    if (selected) showFacts(stats.get(selected.topic));
  }

  let rates = new Map();

  function showFacts(topic) {
    const parts = [h("span", {}, selected.schemaName)];
    if (topic) {
      parts.push(h("span", {}, `from ${topic.publishers.map(({ node }) => node).join(", ") || "nobody"}`));
      parts.push(h("span", {}, `to ${topic.subscribers.map(({ node }) => node).join(", ") || "nobody else"}`));
      if (topic.paths?.length) parts.push(h("span", {}, `by ${topic.paths.join(", ")}`));
      for (const mismatch of topic.mismatches ?? []) parts.push(h("span", { class: "bad" }, mismatchText(mismatch)));
    }
    if (latest) parts.push(h("span", { class: "number" }, `${formatBytes(latest.bytes.length)} at ${formatTime(latest.seconds)}`));
    facts.replaceChildren(...parts);
  }

  function select(channel) {
    end?.();
    end = undefined;
    selected = channel;
    latest = shown = undefined;
    detail.hidden = !channel;
    element.classList.toggle("has-detail", Boolean(channel));
    if (channel) {
      setText(title, channel.topic);
      problem.hidden = true;
      tree.clear(empty("waiting for a message…"));
      begin();
    }
    refresh();
  }

  function begin() {
    end = connection.subscribe(selected.topic, selected.schemaName, (message) => {
      latest = message;
    });
  }

  function draw() {
    if (!latest || latest === shown) return;
    if (!shown) tree.clear();
    shown = latest;
    problem.hidden = !latest.error;
    setText(problem, latest.error ? `This message cannot be read. ${latest.error}` : "");
    if (latest.value) tree.update(latest.value);
  }

  const drawTicker = new Ticker(100, draw);
  const rateTicker = new Ticker(1000, () => {
    rates = measured();
    refresh();
  });
  connection.on("channels", list);
  connection.on("stats", refresh);
  app.openTopic = (topic) => {
    app.open("topics");
    const [channel] = connection.channelsOf(topic);
    if (channel) select(channel);
  };
  return {
    id: "topics", title: "Topics", element,
    show() {
      if (selected && !end) begin();
      drawTicker.start();
      rateTicker.start();
      list();
    },
    hide() {
      end?.();
      end = undefined;
      drawTicker.stop();
      rateTicker.stop();
    },
  };
}

/** Words for a pair of endpoints that do not match. */
export function mismatchText({ publisher, subscriber, policy, offered, requested, fix }) {
  const values = offered == null ? "" : `: offered ${offered}, requested ${requested}`;
  return `${publisher} → ${subscriber}: ${policy}${values}. ${fix}`;
}
