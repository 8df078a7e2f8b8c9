// Form of a request or goal, made from its type: a field for each number, text and truth value, and
// JSON for lists. A switch shows the whole value as JSON.

import { zeroValue } from "./cdr.js";
import { h, setText } from "./dom.js";

const FIELDS_MAX = 300;
const INTEGER = /^u?int(8|16|32|64)$/;
const FLOAT_WORDS = ["nan", "inf", "-inf"];

export const asJson = (value) => JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner), 2);

/** The value that a text of a field stands for. Throws with what it should be. */
export function parseField(type, text) {
  const trimmed = text.trim();
  if (type === "string" || type === "wstring") return text;
  if (INTEGER.test(type)) {
    if (!/^[+-]?\d+$/.test(trimmed)) throw new Error(`"${trimmed.slice(0, 40)}" is no integer`);
    return type.endsWith("64") ? BigInt(trimmed) : Number(trimmed);
  }
  if (FLOAT_WORDS.includes(trimmed)) return trimmed;
  if (!trimmed || !Number.isFinite(Number(trimmed))) throw new Error(`"${trimmed.slice(0, 40)}" is no number`);
  return Number(trimmed);
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`no JSON: ${error.message}`);
  }
}

/** Names of the constants that an integer field may have, as its tooltip. */
const constantsText = (type, field) => type.constants
  .filter((constant) => constant.type === field.type && INTEGER.test(field.type))
  .slice(0, 40).map(({ name, value }) => `${name} = ${value}`).join("\n");

function leaf(owner, field, value, path) {
  if (field.array) {
    const input = h("textarea", { rows: "1", spellcheck: "false", "aria-label": path, value: asJson(value).replace(/\s+/g, " ") });
    return { input, read: () => parseJson(input.value) };
  }
  if (field.type === "bool") {
    const input = h("input", { type: "checkbox", "aria-label": path, checked: Boolean(value) });
    return { input, read: () => input.checked };
  }
  const isText = field.type.endsWith("string");
  const input = h("input", { spellcheck: "false", class: isText ? "" : "number", "aria-label": path, title: constantsText(owner, field) || field.type, value: String(value) });
  return { input, read: () => parseField(field.type, input.value) };
}

export class RequestForm {
  constructor() {
    this.json = h("textarea", { class: "json", "aria-label": "Value as JSON", spellcheck: "false", rows: "8", hidden: true });
    this.fields = h("div", { class: "fields" });
    this.toggle = h("button", { class: "quiet", "aria-pressed": "false", onclick: () => this.switch() }, "JSON");
    this.element = h("div", { class: "form" }, this.fields, this.json);
  }

  /** Shows a type with every field zero. */
  setType(type) {
    this.type = type;
    this.isJson = false;
    this.show(type ? zeroValue(type) : {});
  }

  show(value) {
    this.count = 0;
    this.read = undefined;
    this.fields.replaceChildren();
    if (this.type && !this.isJson) this.read = this.build(this.fields, this.type, value, "");
    // Too large for fields.
    if (this.count > FIELDS_MAX) this.isJson = true;
    this.json.value = asJson(value);
    this.json.hidden = !this.isJson;
    this.fields.hidden = this.isJson;
    this.toggle.setAttribute("aria-pressed", String(Boolean(this.isJson)));
    if (this.type?.fields.length === 0) this.fields.append(h("p", { class: "dim" }, "no fields"));
  }

  /** Adds the fields of a type. Returns the function that reads their value. */
  build(container, type, value, path) {
    const readers = type.fields.map((field) => {
      const name = path ? `${path}.${field.name}` : field.name;
      if (++this.count > FIELDS_MAX) return () => undefined;
      if (field.nested && !field.array) {
        const inner = h("div", { class: "fields" });
        container.append(h("details", { open: field.name !== "header" }, h("summary", {}, field.name), inner));
        return this.build(inner, field.nested, value[field.name], name);
      }
      const { input, read } = leaf(type, field, value[field.name], name);
      const kind = `${field.type}${field.array ? "[]" : ""}`;
      container.append(h("label", { class: "field" }, h("span", { class: "key", title: kind }, field.name), input));
      return () => {
        try {
          const result = read();
          input.removeAttribute("aria-invalid");
          return result;
        } catch (error) {
          input.setAttribute("aria-invalid", "true");
          throw new Error(`${name}: ${error.message}`);
        }
      };
    });
    return () => Object.fromEntries(type.fields.map(({ name }, i) => [name, readers[i]()]));
  }

  /** The value of the fields, or of the JSON. Throws with the field that is wrong. */
  value() {
    return this.isJson ? parseJson(this.json.value || "{}") : this.read?.() ?? {};
  }

  switch() {
    let value;
    try {
      value = this.value();
    } catch {
      // A wrong field is not lost: the other form begins with zeros.
      value = zeroValue(this.type);
    }
    this.isJson = !this.isJson;
    try {
      this.show(this.isJson ? value : { ...zeroValue(this.type), ...value });
    } catch {
      this.isJson = true;
      this.show(value);
    }
  }
}

/** A line for a fault, hidden while there is none. */
export function problemLine() {
  const element = h("p", { class: "problem", role: "alert", hidden: true });
  const say = (text) => {
    element.hidden = !text;
    setText(element, text);
  };
  return { element, say };
}
