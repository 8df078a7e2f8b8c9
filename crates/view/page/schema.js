// Schema parser: message definitions of encoding `ros2msg`, in the form MCAP defines: the text of
// the type, then each nested type after a separator line of `=` and a line `MSG: package/Name`.
// Reads no bytes of messages (cdr.js does).

/** Error of a definition or of a message's bytes. The decoder throws no other. */
export class CdrError extends Error {}

const PRIMITIVES = new Set([
  "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
  "float32", "float64", "string", "wstring",
]);
const ALIASES = { byte: "uint8", char: "uint8" };
// Types of ROS 1 texts, and those that some servers leave out of the nested types.
const BUILT_IN = {
  "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
  "builtin_interfaces/Duration": "int32 sec\nuint32 nanosec",
};
const SHORT_NAMES = {
  time: "builtin_interfaces/Time",
  duration: "builtin_interfaces/Duration",
  Header: "std_msgs/Header",
};
const DEPTH_MAX = 32;
const TEXT_LENGTH_MAX = 1 << 20;
const FIXED_LENGTH_MAX = 1 << 28;

/** `pkg/msg/Name` without its middle part, as nested types name each other. */
export function shortName(name) {
  const parts = name.split("/");
  return parts.length > 2 ? `${parts[0]}/${parts[parts.length - 1]}` : name;
}

/**
 * Parses a definition. Returns the root type: `{name, fields, constants}`. A field is
 * `{name, type, nested, array, length, bound}`: `array` is "", "fixed" or "sequence", and `nested`
 * the type of a structure.
 */
export function parseSchema(name, text) {
  if (typeof text !== "string" || text.length > TEXT_LENGTH_MAX) {
    throw new CdrError(`definition of ${name}: not a text of at most ${TEXT_LENGTH_MAX} characters`);
  }
  const rootName = shortName(String(name));
  const texts = new Map(Object.entries(BUILT_IN));
  const sections = text.split(/^={10,}[ \t\r]*$/m);
  let root = sections.shift();
  for (const section of sections) {
    const heading = /^\s*(MSG|IDL|SRV):\s*(\S+)[^\n]*\n?/.exec(section);
    if (!heading || heading[1] !== "MSG") {
      throw new CdrError(`definition of ${name}: a section has no heading "MSG: package/Name"`);
    }
    const body = section.slice(heading[0].length);
    if (shortName(heading[2]) === rootName && !root.trim()) root = body;
    texts.set(shortName(heading[2]), body);
  }
  return resolve(rootName, root, texts, new Map(), []);
}

function resolve(name, text, texts, done, open) {
  if (done.has(name)) return done.get(name);
  if (open.includes(name)) throw new CdrError(`type ${name} contains itself`);
  if (open.length >= DEPTH_MAX) throw new CdrError(`types are nested more than ${DEPTH_MAX} deep`);
  const type = { name, fields: [], constants: [] };
  for (const line of text.split("\n")) {
    const field = parseLine(name, line);
    if (!field) continue;
    if ("value" in field) {
      type.constants.push(field);
      continue;
    }
    if (type.fields.some((other) => other.name === field.name)) {
      throw new CdrError(`type ${name} has two fields "${field.name}"`);
    }
    if (!PRIMITIVES.has(field.type)) {
      const full = nestedName(field.type, name, texts);
      field.type = full;
      field.nested = resolve(full, texts.get(full), texts, done, [...open, name]);
    }
    type.fields.push(field);
  }
  done.set(name, type);
  return type;
}

function nestedName(written, outer, texts) {
  const name = shortName(written);
  const candidates = name.includes("/")
    ? [name]
    : [`${outer.split("/")[0]}/${name}`, SHORT_NAMES[name] ?? name];
  const found = candidates.find((candidate) => texts.has(candidate));
  if (!found) throw new CdrError(`type ${outer} uses ${written}, which the definition lacks`);
  return found;
}

/** A field, a constant (with `value`), or undefined for an empty line. */
function parseLine(owner, line) {
  const text = line.trim();
  if (!text || text.startsWith("#")) return undefined;
  const constant = /^(\w+)(?:<=\d+)?\s+([A-Za-z]\w*)\s*=\s*(.*)$/.exec(text);
  if (constant) {
    const [, written, name, rest] = constant;
    return { name, type: ALIASES[written] ?? written, value: constantValue(written, rest) };
  }
  const bare = text.split("#")[0].trim();
  const field = /^([A-Za-z][\w/]*)(<=\d+)?(?:\[(<=)?(\d*)\])?\s+([A-Za-z_]\w*)(?:\s.*)?$/.exec(bare);
  if (!field) throw new CdrError(`type ${owner}: cannot read "${bare.slice(0, 80)}"`);
  const [, written, bound, upTo, count, name] = field;
  const isArray = /^[^\s]*\]/.test(bare);
  const length = count ? Number(count) : undefined;
  if (length > FIXED_LENGTH_MAX) throw new CdrError(`type ${owner}: ${name} is too long`);
  return {
    name,
    type: ALIASES[written] ?? written,
    nested: undefined,
    array: !isArray ? "" : length !== undefined && !upTo ? "fixed" : "sequence",
    length,
    bound: bound ? Number(bound.slice(2)) : undefined,
  };
}

function constantValue(type, rest) {
  if (type === "string" || type === "wstring") {
    const quoted = /^(["'])(.*?)\1\s*(?:#.*)?$/.exec(rest);
    return quoted ? quoted[2] : rest.trim();
  }
  const text = rest.split("#")[0].trim();
  if (type === "bool") return /^(true|1)$/i.test(text);
  return Number(text);
}
