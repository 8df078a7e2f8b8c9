// XML reader for robot descriptions: elements and attributes, no text and no DTD.
//
// Not the browser's DOMParser, because tests of urdf.js run without a browser, and because its
// errors name no line.

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const DEPTH_MAX = 64;
const ELEMENTS_MAX = 100_000;

export class XmlError extends Error {}

function decodeEntities(text) {
  return text.replace(/&(#x?[0-9a-fA-F]+|\w+);/g, (whole, name) => {
    if (!name.startsWith("#")) return ENTITIES[name] ?? whole;
    const code = name[1] === "x" ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** Returns the root element: `{name, attributes, children}`. */
export function parseXml(text) {
  const token = /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!\[CDATA\[[\s\S]*?\]\]>|<!DOCTYPE[^>[]*>|<\/([\w:.-]+)\s*>|<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|</g;
  const document = { name: "", attributes: {}, children: [] };
  const open = [document];
  const line = (at) => text.slice(0, at).split("\n").length;
  let count = 0;
  for (const match of text.matchAll(token)) {
    const [whole, closed, name, attributes, isEmpty] = match;
    if (whole === "<") throw new XmlError(`line ${line(match.index)}: cannot read this element`);
    if (closed !== undefined) {
      const element = open.pop();
      if (open.length === 0 || element.name !== closed) {
        throw new XmlError(`line ${line(match.index)}: </${closed}> closes <${element.name}>`);
      }
    } else if (name !== undefined) {
      if (open.length > DEPTH_MAX || ++count > ELEMENTS_MAX) throw new XmlError("too many elements");
      const element = { name, attributes: Object.create(null), children: [] };
      for (const [, key, double, single] of attributes.matchAll(/([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
        element.attributes[key] = decodeEntities(double ?? single);
      }
      open[open.length - 1].children.push(element);
      if (!isEmpty) open.push(element);
    }
  }
  if (open.length > 1) throw new XmlError(`<${open[open.length - 1].name}> is not closed`);
  if (document.children.length !== 1) throw new XmlError("there is not exactly one root element");
  return document.children[0];
}
