// Layout of the node graph: layers by the longest way from a source, rows by the neighbours' mean
// (Sugiyama's method without dummy vertices).

const SWEEPS = 6;

/**
 * Places vertices. `edges` are pairs of keys. Returns a map from key to `{layer, row}`, and the
 * number of layers and rows.
 */
export function layout(keys, edges) {
  const out = new Map(keys.map((key) => [key, []]));
  const into = new Map(keys.map((key) => [key, []]));
  for (const [from, to] of forwardEdges(keys, edges)) {
    out.get(from).push(to);
    into.get(to).push(from);
  }
  const layers = new Map();
  const layerOf = (key) => {
    if (!layers.has(key)) layers.set(key, Math.max(-1, ...into.get(key).map(layerOf)) + 1);
    return layers.get(key);
  };
  keys.forEach(layerOf);
  // A source moves to the layer before its first target.
  for (const key of keys) {
    const targets = out.get(key);
    if (into.get(key).length === 0 && targets.length > 0) layers.set(key, Math.min(...targets.map((to) => layers.get(to))) - 1);
  }
  const columns = [];
  for (const key of keys) (columns[layers.get(key)] ??= []).push(key);
  for (let i = 0; i < columns.length; i++) columns[i] ??= [];
  const place = new Map();
  const settle = (column) => column.forEach((key, row) => place.set(key, row - column.length / 2));
  columns.forEach(settle);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const order = sweep % 2 === 0 ? columns : [...columns].reverse();
    for (const column of order) {
      const mean = new Map(column.map((key) => {
        const near = [...into.get(key), ...out.get(key)];
        return [key, near.length ? near.reduce((sum, other) => sum + place.get(other), 0) / near.length : place.get(key)];
      }));
      column.sort((a, b) => mean.get(a) - mean.get(b) || (a < b ? -1 : 1));
      settle(column);
    }
  }
  const rows = Math.max(1, ...columns.map((column) => column.length));
  const places = new Map(keys.map((key) => [key, { layer: layers.get(key), row: place.get(key) + rows / 2 }]));
  return { places, layers: columns.length, rows };
}

/** The edges without those that close a cycle. */
function forwardEdges(keys, edges) {
  const out = new Map(keys.map((key) => [key, []]));
  for (const [from, to] of edges) if (out.has(from) && out.has(to)) out.get(from).push(to);
  const state = new Map();
  const kept = [];
  for (const start of keys) {
    if (state.has(start)) continue;
    const stack = [[start, 0]];
    state.set(start, "open");
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      const next = out.get(top[0])[top[1]++];
      if (next === undefined) {
        state.set(top[0], "done");
        stack.pop();
      } else if (state.get(next) !== "open") {
        kept.push([top[0], next]);
        if (!state.has(next)) {
          state.set(next, "open");
          stack.push([next, 0]);
        }
      }
    }
  }
  return kept;
}
