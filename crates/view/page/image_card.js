// One camera topic, raw or compressed, with size, rate and fault.

import { formatBytes, formatRate, h, setText } from "./dom.js";
import { toRgba } from "./pixels.js";

export const RAW_IMAGE = "sensor_msgs/msg/Image";
export const COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage";

/** Shows a topic until `dispose`. */
export function imageCard(connection, { topic, schemaName }) {
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
        const words = schemaName === RAW_IMAGE ? drawRaw(message.value) : await drawCompressed(message.value);
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
