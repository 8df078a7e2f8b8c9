// Files of displays: chosen or dropped here, or given by `pteros view --rviz`. The server reads
// their YAML; this shows what of them the page cannot.

import { h, setText } from "./dom.js";
import { readRviz } from "./rviz.js";

/** A viewer that may only look may send messages of 256 KiB. */
const FILE_BYTES_MAX = 200_000;
const LISTED_MAX = 100;

export class RvizFiles {
  /** `apply` gets a file that was read, or undefined for the page's own displays. */
  constructor(connection, apply) {
    Object.assign(this, { connection, apply });
    this.input = h("input", { type: "file", accept: ".rviz,.yaml", hidden: true, "aria-label": "File of rviz2", onchange: () => {
      if (this.input.files[0]) this.open(this.input.files[0]);
      this.input.value = "";
    } });
    this.name = h("span", { class: "name" });
    this.close = h("button", { class: "quiet", title: "Show the page's own displays", hidden: true, onclick: () => this.show(undefined) }, "close");
    this.problem = h("p", { class: "note bad", role: "alert", hidden: true });
    this.summary = h("summary");
    this.list = h("ul");
    this.missing = h("details", { class: "missing", hidden: true }, this.summary, this.list);
    this.element = h("div", { class: "rviz" },
      h("div", { class: "row" }, h("button", { title: "Open a .rviz file, or drop one on the scene", onclick: () => this.input.click() }, "Open .rviz…"), this.name, this.close, this.input),
      this.problem, this.missing);
    connection.on("info", ({ metadata }) => {
      // The first time alone: a reconnection keeps what the user has chosen.
      if (metadata.rviz && !this.isAsked) this.load();
      this.isAsked = true;
    });
  }

  /** Takes files that are dropped on an element. */
  dropOn(element) {
    element.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
    element.addEventListener("drop", (event) => {
      const [file] = event.dataTransfer.files;
      if (!file) return;
      event.preventDefault();
      this.open(file);
    });
  }

  async open(file) {
    if (file.size > FILE_BYTES_MAX) return this.say(`${file.name}: larger than ${FILE_BYTES_MAX / 1000} kB`);
    await this.load(file.name, await file.text());
  }

  async load(name, text) {
    try {
      this.show(readRviz(await this.connection.readRviz(name, text)));
    } catch (error) {
      this.say(`${name ?? "--rviz"}: ${error.message}`);
    }
  }

  say(text) {
    this.problem.hidden = !text;
    setText(this.problem, text);
  }

  show(file) {
    this.say("");
    setText(this.name, file?.name ?? "");
    this.close.hidden = !file;
    const { unsupported = [], remarks = [] } = file ?? {};
    this.missing.hidden = unsupported.length + remarks.length === 0;
    setText(this.summary, `${unsupported.length} not supported${remarks.length ? `, ${remarks.length} shown differently` : ""}`);
    const rows = [...unsupported.map((text) => h("li", { class: "warning" }, text)), ...remarks.map((text) => h("li", {}, text))];
    this.list.replaceChildren(...rows.slice(0, LISTED_MAX));
    if (rows.length > LISTED_MAX) this.list.append(h("li", {}, `and ${rows.length - LISTED_MAX} more`));
    this.apply(file);
  }
}
