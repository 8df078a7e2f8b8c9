// Images panel: camera topics, raw and compressed, several beside each other.

import { empty, formatBytes, formatRate, h, reconcile, setText, store, stored } from "./dom.js";
import { toRgba } from "./pixels.js";

const RAW = "sensor_msgs/msg/Image";
const COMPRESSED = "sensor_msgs/msg/CompressedImage";
const SHOWN_MAX = 9;

export function imagesPanel({ connection }) {
  const chosen = new Set(stored("images", []));
  const chips = new Map();
  const cards = new Map();
  let isShown = false;
  const bar = h("div", { class: "tools chips" });
  const grid = h("div", { class: "images" });
  const hint = empty("The robot publishes no images.");
  const element = h("div", { class: "panel" }, bar, hint, grid);

  const channels = () => [...connection.channels.values()]
    .filter(({ schemaName }) => schemaName === RAW || schemaName === COMPRESSED)
    .sort((a, b) => (a.topic < b.topic ? -1 : 1));

  function sync() {
    const all = channels();
    hint.hidden = all.length > 0;
    if (all.length > 0 && !all.some(({ topic }) => chosen.has(topic))) {
      chosen.add((all.find(({ topic }) => !/depth|mask/.test(topic)) ?? all[0]).topic);
    }
    reconcile(bar, chips, all, ({ id }) => id, ({ topic }) => {
      const chip = h("button", { onclick: () => {
        if (!chosen.delete(topic) && chosen.size < SHOWN_MAX) chosen.add(topic);
        store("images", [...chosen]);
        sync();
      } }, topic);
      return { element: chip, update: () => chip.setAttribute("aria-pressed", String(chosen.has(topic))) };
    });
    const shown = isShown ? all.filter(({ topic }) => chosen.has(topic)) : [];
    reconcile(grid, cards, shown, ({ id }) => id, makeCard);
  }

  function makeCard({ topic, schemaName }) {
    const canvas = h("canvas", { role: "img", "aria-label": `image of ${topic}` });
    const note = h("span", { class: "dim number" });
    const problem = h("p", { class: "problem", hidden: true });
    const card = h("figure", {}, canvas, problem, h("figcaption", {}, h("span", { class: "name" }, topic), note));
    let next;
    let isDrawing = false;
    let arrivals = [];
    const end = connection.subscribe(topic, schemaName, (message) => {
      arrivals.push(performance.now());
      arrivals = arrivals.slice(-20);
      next = message;
      if (!isDrawing) draw();
    });

    /** Draws the newest message. Those that arrive meanwhile replace each other. */
    async function draw() {
      isDrawing = true;
      while (next) {
        const message = next;
        next = undefined;
        try {
          if (message.error) throw new Error(message.error);
          const words = schemaName === RAW ? drawRaw(message.value) : await drawCompressed(message.value);
          const seconds = (arrivals[arrivals.length - 1] - arrivals[0]) / 1000;
          const rate = seconds > 0 ? `${formatRate((arrivals.length - 1) / seconds)} Hz, ` : "";
          setText(note, `${words}, ${rate}${formatBytes(message.bytes.length)}`);
          problem.hidden = true;
        } catch (error) {
          problem.hidden = false;
          setText(problem, error.message);
        }
        await new Promise(requestAnimationFrame);
      }
      isDrawing = false;
    }

    function resize(width, height) {
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
    }

    function drawRaw(image) {
      const { width, height, rgba, note: range } = toRgba(image);
      if (width * height === 0) throw new Error("the image has no pixels");
      resize(width, height);
      canvas.getContext("2d").putImageData(new ImageData(rgba, width, height), 0, 0);
      return `${width} × ${height} ${image.encoding}${range && `, ${range}`}`;
    }

    async function drawCompressed({ format, data }) {
      if (/compressedDepth/.test(format)) throw new Error(`format ${format} is not supported`);
      const bitmap = await createImageBitmap(new Blob([data])).catch(() => {
        throw new Error(`the browser cannot read this image of format "${format}"`);
      });
      resize(bitmap.width, bitmap.height);
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
      bitmap.close();
      return `${canvas.width} × ${canvas.height} ${format}`;
    }

    return { element: card, dispose: end };
  }

  connection.on("channels", sync);
  return {
    id: "images", title: "Images", element,
    show() {
      isShown = true;
      sync();
    },
    hide() {
      isShown = false;
      sync();
    },
  };
}
