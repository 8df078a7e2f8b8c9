// The page's frame: connection state, tabs, splitter, notices. Panels live in files of their own.
//
// A panel is `{id, title, element, show, hide}`. Its subscriptions begin with `show` and end with
// `hide`, so that a panel that nobody sees costs the robot nothing.

import { actionsPanel } from "./actions.js";
import { componentsPanel } from "./components.js";
import { Connection } from "./connection.js";
import { diagnosticsPanel } from "./diagnostics.js";
import { formatBytes, formatTime, h, setText, store, stored } from "./dom.js";
import { graphPanel } from "./graph.js";
import { imagesPanel } from "./images.js";
import { jointsPanel } from "./joints.js";
import { lifecyclePanel } from "./lifecycle.js";
import { logsPanel } from "./logs.js";
import { paramsPanel } from "./params.js";
import { plotPanel } from "./plot.js";
import { createScene } from "./scene.js";
import { servicesPanel } from "./services.js";
import { teleopPanel } from "./teleop.js";
import { topicsPanel } from "./topics.js";

const NARROW = matchMedia("(max-width: 760px)");
const $ = (id) => document.getElementById(id);

function socketAddress() {
  const { protocol, host, search } = location;
  const token = new URLSearchParams(search).get("token");
  const query = token === null ? "" : `?token=${encodeURIComponent(token)}`;
  return `${protocol === "https:" ? "wss" : "ws"}://${host}/${query}`;
}

/** Why no socket opens: the browser does not tell the page the server's answer. */
async function probe() {
  try {
    const answer = await fetch("app.js", { cache: "no-store" });
    if (!answer.ok) return "";
    return new URLSearchParams(location.search).has("token")
      ? "the robot refuses this address: its token is wrong or old. Open the one that pteros view printed last"
      : "the robot refuses this address: it has no token. Open the one that pteros view printed";
  } catch {
    return "robot lost: nothing answers at this address. Is pteros view running? Trying again…";
  }
}

const connection = new Connection(socketAddress(), { probe });
const app = { connection, openTopic: () => {}, plot: () => {}, open: (id) => open(id) };

const scene = createScene(app);
$("stage").append(scene.element);
const panels = [
  topicsPanel, plotPanel, imagesPanel, graphPanel, logsPanel, paramsPanel, servicesPanel, diagnosticsPanel, teleopPanel,
  actionsPanel, jointsPanel, lifecyclePanel, componentsPanel,
].map((create) => create(app));
$("side").append(...panels.map(({ element }) => element));
const entries = [{ id: "scene", title: "Scene", show: scene.show, hide: scene.hide }, ...panels];
const tabs = new Map();
let current;

for (const [index, { id, title }] of entries.entries()) {
  const tab = h("button", { role: "tab", id: `tab-${id}`, "aria-selected": "false", tabindex: "-1", title: `${title} (${index})`, onclick: () => open(id) }, title);
  tabs.set(id, tab);
  $("tabs").append(tab);
}

/** Shows a panel. On a narrow screen the scene is one of them. */
function open(id) {
  if (!entries.some((entry) => entry.id === id) || (id === "scene" && !NARROW.matches)) id = "topics";
  if (id === current) return;
  const before = current;
  current = id;
  for (const panel of panels) panel.element.hidden = panel.id !== id;
  for (const [key, tab] of tabs) {
    tab.setAttribute("aria-selected", String(key === id));
    tab.tabIndex = key === id ? 0 : -1;
  }
  tabs.get(id).scrollIntoView({ block: "nearest", inline: "nearest" });
  $("side").setAttribute("aria-labelledby", `tab-${id}`);
  document.body.dataset.panel = id;
  panels.find((panel) => panel.id === before)?.hide();
  panels.find((panel) => panel.id === id)?.show();
  showScene();
  if (location.hash.slice(1) !== id) history.replaceState(null, "", `${location.search}#${id}`);
}

function showScene() {
  if (document.hidden || (NARROW.matches && current !== "scene")) scene.hide();
  else scene.show();
}

NARROW.addEventListener("change", () => {
  const id = current;
  current = undefined;
  open(id);
});
addEventListener("hashchange", () => open(location.hash.slice(1)));
document.addEventListener("visibilitychange", () => {
  const panel = panels.find(({ id }) => id === current);
  if (document.hidden) panel?.hide();
  else panel?.show();
  showScene();
});

$("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const ids = [...tabs.keys()].filter((id) => id !== "scene" || NARROW.matches);
  const next = ids[(ids.indexOf(current) + step + ids.length) % ids.length];
  open(next);
  tabs.get(next).focus();
  event.preventDefault();
});

// On a wide screen the tabs need one or two rows, with the panel below them.
new ResizeObserver(() => document.body.style.setProperty("--tabs", `${$("tabs").offsetHeight}px`)).observe($("tabs"));

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !/^\d$/.test(event.key)) return;
  const entry = entries[Number(event.key)];
  if (entry?.id === "scene") scene.focus();
  if (entry) open(entry.id);
});

// ---- splitter

function setSplit(fraction) {
  const kept = Math.min(0.8, Math.max(0.15, fraction));
  document.body.style.setProperty("--stage", `${(kept * 100).toFixed(1)}%`);
  $("splitter").setAttribute("aria-valuenow", String(Math.round(kept * 100)));
  store("split", kept);
}
setSplit(stored("split", 0.56));
$("splitter").addEventListener("pointerdown", (event) => {
  $("splitter").setPointerCapture(event.pointerId);
  const move = ({ clientX }) => setSplit(clientX / innerWidth);
  $("splitter").addEventListener("pointermove", move);
  $("splitter").addEventListener("lostpointercapture", () => $("splitter").removeEventListener("pointermove", move), { once: true });
});
$("splitter").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 0.02, ArrowLeft: -0.02 }[event.key];
  if (step) setSplit(stored("split", 0.56) + step);
});

// ---- state and notices

connection.on("state", ({ phase, text }) => {
  $("state").dataset.phase = phase;
  setText($("state"), text);
  document.body.dataset.phase = phase;
});
connection.on("info", ({ name, metadata }) => {
  setText($("robot"), name);
  const allowed = metadata.allow ? `allowed: ${metadata.allow}` : "read-only";
  $("robot").title = [metadata.pteros && `pteros ${metadata.pteros}`, allowed].filter(Boolean).join(", ");
  document.title = name ? `${name} · pteros view` : "pteros view";
});

function skippedTexts() {
  return connection.stats.skipped.map(({ channelId, count }) => {
    const topic = connection.channels.get(channelId)?.topic ?? `channel ${channelId}`;
    return `${topic}: ${count} messages skipped, because this connection is slower than they come`;
  });
}

function showNotices() {
  const words = ["info", "warning", "error"];
  const recent = connection.statuses.slice(-50).reverse();
  const rows = [
    ...skippedTexts().map((text) => h("li", { class: "warning" }, text)),
    ...recent.map(({ level, message, at }) => h("li", { class: words[level] ?? "info" }, h("time", {}, formatTime(at / 1000)), ` ${message}`)),
  ];
  $("notices-button").hidden = rows.length === 0;
  setText($("notices-button"), `${rows.length} ${rows.length === 1 ? "notice" : "notices"}`);
  if (rows.length === 0) $("notices").hidden = true;
  if (!$("notices").hidden) $("notices").replaceChildren(h("ul", {}, rows));
}
$("notices-button").addEventListener("click", () => {
  $("notices").hidden = !$("notices").hidden;
  $("notices-button").setAttribute("aria-expanded", String(!$("notices").hidden));
  showNotices();
});
connection.on("status", showNotices);
connection.on("stats", showNotices);

let bytesBefore = 0;
setInterval(() => {
  let bytes = 0;
  for (const wanted of connection.wanted.values()) bytes += wanted.bytes;
  setText($("load"), `${formatBytes(Math.max(0, bytes - bytesBefore))}/s`);
  bytesBefore = bytes;
}, 1000);

open(location.hash.slice(1) || (NARROW.matches ? "scene" : "topics"));
connection.connect();
