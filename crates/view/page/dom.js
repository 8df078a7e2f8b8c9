// Helpers to build elements and texts. Text from the network enters the document only as text.

/**
 * Makes an element. Properties that begin with `on` are listeners, `class` and the rest attributes;
 * `true` sets an attribute, `false` and undefined leave it out. Children are nodes or texts.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== ""));
  return element;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replaces the options of a select and keeps the chosen value. */
export function setOptions(select, values, chosen = select.value) {
  const texts = values.map((value) => (Array.isArray(value) ? value : [value, value]));
  const same = select.options.length === texts.length
    && texts.every(([value, label], i) => select.options[i].value === value && select.options[i].textContent === label);
  if (!same) select.replaceChildren(...texts.map(([value, label]) => h("option", { value }, label)));
  if (texts.some(([value]) => value === chosen)) select.value = chosen;
}

/**
 * Keeps a list of rows in the order of `items` without rebuilding those that stay. `make` builds a
 * row `{element, update}` for a key. `rows` is the caller's map.
 */
export function reconcile(container, rows, items, keyOf, make) {
  const keys = new Set(items.map(keyOf));
  for (const [key, row] of rows) {
    if (keys.has(key)) continue;
    row.element.remove();
    row.dispose?.();
    rows.delete(key);
  }
  let next = container.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let row = rows.get(key);
    if (!row) {
      row = make(item);
      rows.set(key, row);
    }
    row.update?.(item);
    if (row.element === next) next = next.nextElementSibling;
    else container.insertBefore(row.element, next);
  }
}

/** Runs `work` every so often while it is started, and once at the start. */
export class Ticker {
  constructor(milliseconds, work) {
    Object.assign(this, { milliseconds, work });
  }

  start() {
    this.stop();
    this.work();
    this.timer = setInterval(this.work, this.milliseconds);
  }

  stop() {
    clearInterval(this.timer);
  }
}

/** Runs `work` soon after it was asked for, at most once in that many milliseconds. */
export class Throttle {
  constructor(milliseconds, work) {
    Object.assign(this, { milliseconds, work });
  }

  ask() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.work();
    }, this.milliseconds);
  }
}

export function formatBytes(count) {
  if (!(count >= 0)) return "–";
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  let value = count;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function formatRate(rate) {
  if (!(rate >= 0)) return "–";
  return rate >= 100 ? rate.toFixed(0) : rate.toFixed(1);
}

/** A number in at most 7 significant digits. */
export function formatNumber(value) {
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(7)));
}

/** Time of day of seconds since 1970, or the seconds of a simulated clock. */
export function formatTime(seconds) {
  if (seconds < 1e8) return `${seconds.toFixed(3)} s`;
  const date = new Date(seconds * 1000);
  const two = (value, width = 2) => String(value).padStart(width, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

/** A file of the page's own making, offered as a download. */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** A message in place of a panel's contents. */
export function empty(text) {
  return h("p", { class: "empty" }, text);
}

/** A setting that outlasts the page, or `initial`. */
export function stored(key, initial) {
  try {
    return JSON.parse(localStorage.getItem(`pteros.${key}`)) ?? initial;
  } catch {
    return initial;
  }
}

export function store(key, value) {
  try {
    localStorage.setItem(`pteros.${key}`, JSON.stringify(value));
  } catch {
    // Private windows may refuse; the setting lasts as long as the page.
  }
}
