// Plot panel: numbers of messages over time, with two axes, zoom, pause and export (uPlot).

import { download, empty, formatNumber, h, setOptions, setText, store, stored, Ticker } from "./dom.js";
import { valueAt } from "./tree.js";

const POINTS_MAX = 20_000;
const SERIES_MAX = 12;
const COLOURS = ["#35a99d", "#d9734d", "#5b93d6", "#c9a13b", "#a07bd0", "#62a857", "#cf6a9b", "#8a949e"];
const WINDOWS = [5, 10, 30, 60, 300];
const DARK = matchMedia("(prefers-color-scheme: dark)");

export function plotPanel(app) {
  const { connection } = app;
  let series = [];
  let chart;
  let isPaused = false;
  let isShown = false;

  const windowSelect = h("select", { "aria-label": "Time span", onchange: () => draw() });
  setOptions(windowSelect, WINDOWS.map((value) => [String(value), `${value} s`]), "30");
  const pause = h("button", { "aria-pressed": "false", onclick: () => setPaused(!isPaused) }, "pause");
  const legend = h("ul", { class: "legend" });
  const area = h("div", { class: "chart" });
  const hint = empty("Click a number in the topics panel to plot it here.");
  const element = h("div", { class: "panel plot" },
    h("div", { class: "tools" }, windowSelect, pause,
      h("button", { onclick: () => clear() }, "clear"),
      h("button", { onclick: () => exportCsv() }, "export CSV"),
      h("span", { class: "dim" }, "drag to zoom, double click to go on")),
    hint, area, legend);

  function add({ topic, type, path, axis = "left" }) {
    if (series.some((one) => one.topic === topic && one.path === path)) return;
    if (series.length >= SERIES_MAX) remove(series[0]);
    const used = series.map(({ colour }) => colour);
    const colour = COLOURS.find((one) => !used.includes(one)) ?? COLOURS[0];
    const one = { topic, type, path, axis, colour, times: [], values: [] };
    one.value = h("span", { class: "number value" });
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour;
    const side = h("button", { class: "quiet", title: "axis of this number", onclick: () => {
      one.axis = one.axis === "left" ? "right" : "left";
      setText(side, one.axis);
      rebuild();
    } }, axis);
    one.row = h("li", {}, swatch, h("span", { class: "name" }, `${topic} ${path}`), one.value, side,
      h("button", { class: "quiet", "aria-label": `Remove ${topic} ${path}`, onclick: () => remove(one) }, "remove"));
    legend.append(one.row);
    series.push(one);
    if (isShown) begin(one);
    rebuild();
  }

  function begin(one) {
    one.end ??= connection.subscribe(one.topic, one.type, ({ value, error, seconds }) => {
      const number = Number(valueAt(value, one.path));
      setText(one.value, error ? "unreadable" : Number.isNaN(number) ? "–" : formatNumber(number));
      if (error || Number.isNaN(number)) return;
      // Time that jumped back, as a bag that starts again.
      if (seconds < one.times[one.times.length - 1] - 1) one.times.length = one.values.length = 0;
      one.times.push(seconds);
      one.values.push(number);
      if (one.times.length > POINTS_MAX * 1.1) {
        one.times.splice(0, one.times.length - POINTS_MAX);
        one.values.splice(0, one.values.length - POINTS_MAX);
      }
    });
  }

  function stop(one) {
    one.end?.();
    one.end = undefined;
  }

  function remove(one) {
    stop(one);
    one.row.remove();
    series = series.filter((other) => other !== one);
    rebuild();
  }

  function clear() {
    for (const one of series) one.times.length = one.values.length = 0;
    draw();
  }

  function setPaused(value) {
    isPaused = value;
    pause.setAttribute("aria-pressed", String(value));
    setText(pause, value ? "go on" : "pause");
    draw();
  }

  function options() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui", size: 54 };
    const isClock = series.some(({ times }) => times[0] > 1e8);
    return {
      width: Math.max(200, area.clientWidth),
      height: Math.max(160, area.clientHeight),
      legend: { show: false },
      scales: { x: { time: isClock }, left: {}, right: {} },
      cursor: { drag: { x: true, y: false } },
      hooks: { setSelect: [() => setPaused(true)] },
      axes: [{ ...axis, size: 34 }, { ...axis, scale: "left" }, { ...axis, scale: "right", side: 1, grid: { show: false }, show: series.some((one) => one.axis === "right") }],
      series: [{}, ...series.map(({ topic, path, colour: stroke, axis: scale }) => ({ label: `${topic} ${path}`, stroke, scale, width: 1.5, spanGaps: true, points: { show: false } }))],
    };
  }

  function data() {
    if (series.length === 0) return [[]];
    return window.uPlot.join(series.map(({ times, values }) => [times, values]));
  }

  function rebuild() {
    chart?.destroy();
    chart = undefined;
    hint.hidden = series.length > 0;
    area.hidden = series.length === 0;
    store("plots", series.map(({ topic, type, path, axis }) => ({ topic, type, path, axis })));
    draw();
  }

  function draw() {
    if (!isShown || series.length === 0) return;
    if (!chart) {
      const known = series.some(({ times }) => times.length > 0);
      if (!known) return;
      chart = new window.uPlot(options(), data(), area);
      chart.root.addEventListener("dblclick", () => setPaused(false));
    }
    if (isPaused) return;
    const newest = Math.max(...series.map(({ times }) => times[times.length - 1] ?? -Infinity));
    chart.batch(() => {
      chart.setData(data(), false);
      chart.setScale("x", { min: newest - Number(windowSelect.value), max: newest });
    });
  }

  function exportCsv() {
    const [times, ...columns] = data();
    const quote = (text) => `"${text.replaceAll('"', '""')}"`;
    const lines = [["time", ...series.map(({ topic, path }) => quote(`${topic} ${path}`))].join(",")];
    times.forEach((time, i) => lines.push([time, ...columns.map((column) => column[i] ?? "")].join(",")));
    download("plot.csv", `${lines.join("\n")}\n`);
  }

  new ResizeObserver(() => {
    if (chart && area.clientWidth) chart.setSize({ width: Math.max(200, area.clientWidth), height: Math.max(160, area.clientHeight) });
  }).observe(area);
  DARK.addEventListener("change", rebuild);
  const ticker = new Ticker(100, draw);
  for (const saved of [stored("plots", [])].flat()) {
    if (typeof saved?.topic === "string" && typeof saved.path === "string") add(saved);
  }
  app.plot = (topic, type, path) => {
    add({ topic, type, path });
    app.open("plot");
  };
  return {
    id: "plot", title: "Plot", element,
    show() {
      isShown = true;
      series.forEach(begin);
      ticker.start();
    },
    hide() {
      isShown = false;
      series.forEach(stop);
      ticker.stop();
    },
  };
}
