// Transform buffer: keeps `/tf` and `/tf_static` per child frame and interpolates between them.
//
// As tf2 does: a tree of frames, each with one parent; linear translation and slerp. A look-up
// beyond the newest transform of a moving frame uses the newest one, because a viewer shows what is
// known. No frame has an unlimited history.

/** Seconds of history of a moving frame, and its largest number of transforms. */
const HISTORY_SECONDS = 10;
const HISTORY_MAX = 2000;
const FRAMES_MAX = 5000;
const DEPTH_MAX = 200;

export const IDENTITY = Object.freeze({ t: [0, 0, 0], q: [0, 0, 0, 1] });

function rotate([x, y, z, w], [a, b, c]) {
  const u = 2 * (y * c - z * b);
  const v = 2 * (z * a - x * c);
  const s = 2 * (x * b - y * a);
  return [a + w * u + y * s - z * v, b + w * v + z * u - x * s, c + w * s + x * v - y * u];
}

function product([ax, ay, az, aw], [bx, by, bz, bw]) {
  return [
    aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx,
    aw * bz + ax * by - ay * bx + az * bw,
    aw * bw - ax * bx - ay * by - az * bz,
  ];
}

/** The transform `a` after `b`: points of b's child in a's parent. */
export function compose(a, b) {
  const moved = rotate(a.q, b.t);
  return { t: moved.map((value, i) => value + a.t[i]), q: product(a.q, b.q) };
}

export function inverse({ t, q }) {
  const back = [-q[0], -q[1], -q[2], q[3]];
  return { t: rotate(back, t).map((value) => -value), q: back };
}

export function apply({ t, q }, point) {
  return rotate(q, point).map((value, i) => value + t[i]);
}

/** Roll, pitch, yaw (fixed axes x, y, z) as a quaternion. */
export function fromRpy([roll, pitch, yaw]) {
  const [cr, cp, cy] = [roll, pitch, yaw].map((angle) => Math.cos(angle / 2));
  const [sr, sp, sy] = [roll, pitch, yaw].map((angle) => Math.sin(angle / 2));
  return [
    sr * cp * cy - cr * sp * sy,
    cr * sp * cy + sr * cp * sy,
    cr * cp * sy - sr * sp * cy,
    cr * cp * cy + sr * sp * sy,
  ];
}

export function yawOf([x, y, z, w]) {
  return Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
}

/** A geometry_msgs Pose or Transform as `{t, q}`; a quaternion of zeros is the identity. */
export function fromMessage({ position, translation, orientation, rotation }) {
  const p = position ?? translation;
  const r = orientation ?? rotation;
  const norm = Math.hypot(r.x, r.y, r.z, r.w);
  const q = norm > 1e-9 ? [r.x / norm, r.y / norm, r.z / norm, r.w / norm] : [0, 0, 0, 1];
  return { t: [p.x, p.y, p.z], q };
}

function interpolate(a, b, part) {
  const t = a.t.map((value, i) => value + (b.t[i] - value) * part);
  let dot = a.q.reduce((sum, value, i) => sum + value * b.q[i], 0);
  const sign = dot < 0 ? -1 : 1;
  dot = Math.min(1, Math.abs(dot));
  const angle = Math.acos(dot);
  const near = angle < 1e-4;
  const wa = near ? 1 - part : Math.sin((1 - part) * angle) / Math.sin(angle);
  const wb = sign * (near ? part : Math.sin(part * angle) / Math.sin(angle));
  const q = a.q.map((value, i) => wa * value + wb * b.q[i]);
  const norm = Math.hypot(...q) || 1;
  return { t, q: q.map((value) => value / norm) };
}

const cleanName = (name) => (name.startsWith("/") ? name.slice(1) : name);
const secondsOf = ({ sec, nanosec }) => sec + nanosec / 1e9;

export class TransformBuffer {
  /** child → {parent, isStatic, history: [{time, t, q}]} in order of time. */
  frames = new Map();
  /** Frames that only occur as parents are known too. */
  names = new Set();
  dropped = 0;

  clear() {
    this.frames.clear();
    this.names.clear();
  }

  /** Adds a TFMessage. Returns whether a frame is new or has another parent. */
  add(message, isStatic) {
    let changed = false;
    for (const { header, child_frame_id, transform } of message.transforms) {
      const child = cleanName(child_frame_id);
      const parent = cleanName(header.frame_id);
      const entry = { time: secondsOf(header.stamp), ...fromMessage(transform) };
      const isFinite = [...entry.t, ...entry.q].every(Number.isFinite);
      const isFull = !this.frames.has(child) && this.frames.size >= FRAMES_MAX;
      if (!child || !parent || child === parent || !isFinite || isFull) {
        this.dropped += 1;
        continue;
      }
      changed = this.insert(child, parent, isStatic, entry) || changed;
    }
    return changed;
  }

  insert(child, parent, isStatic, entry) {
    let frame = this.frames.get(child);
    const isNew = !frame || frame.parent !== parent || frame.isStatic !== isStatic;
    if (isNew) {
      frame = { parent, isStatic, history: [] };
      this.frames.set(child, frame);
      this.names.add(child).add(parent);
    }
    const { history } = frame;
    const newest = history[history.length - 1]?.time ?? -Infinity;
    // Simulated time that jumps back, or a bag that is played again.
    if (isStatic || entry.time < newest - HISTORY_SECONDS) history.length = 0;
    let at = history.length;
    while (at > 0 && history[at - 1].time > entry.time) at -= 1;
    if (at > 0 && history[at - 1].time === entry.time) history[at - 1] = entry;
    else history.splice(at, 0, entry);
    const oldest = history[history.length - 1].time - HISTORY_SECONDS;
    let old = Math.max(0, history.length - HISTORY_MAX);
    while (history[old].time < oldest) old += 1;
    if (old > 0) history.splice(0, old);
    return isNew;
  }

  /** The transform of a frame in its parent at a time (seconds; undefined is the newest). */
  inParent(name, time) {
    const frame = this.frames.get(name);
    if (!frame) return undefined;
    const { history } = frame;
    const last = history[history.length - 1];
    if (frame.isStatic || time === undefined || time >= last.time) return last;
    if (time <= history[0].time) return history[0];
    let low = 0;
    let high = history.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (history[middle].time <= time) low = middle;
      else high = middle;
    }
    const [a, b] = [history[low], history[high]];
    return interpolate(a, b, (time - a.time) / (b.time - a.time));
  }

  /** The frame's chain up to its root, itself first. */
  chain(name) {
    const names = [name];
    while (names.length < DEPTH_MAX) {
      const parent = this.frames.get(names[names.length - 1])?.parent;
      if (parent === undefined || names.includes(parent)) break;
      names.push(parent);
    }
    return names;
  }

  root(name) {
    const names = this.chain(name);
    return names[names.length - 1];
  }

  /** The transform that takes points of `source` to `target`, or undefined without a path. */
  lookup(target, source, time) {
    const to = cleanName(target);
    const from = cleanName(source);
    if (to === from) return IDENTITY;
    const up = this.chain(from);
    const down = this.chain(to);
    const common = up.find((name) => down.includes(name));
    if (common === undefined) return undefined;
    const climb = (names) => names.slice(0, names.indexOf(common))
      .reduce((sum, name) => compose(this.inParent(name, time), sum), IDENTITY);
    return compose(inverse(climb(down)), climb(up));
  }

  /** Newest time of a frame, for "how old is it"; undefined if it is static or unknown. */
  newest(name) {
    const frame = this.frames.get(name);
    return !frame || frame.isStatic ? undefined : frame.history[frame.history.length - 1].time;
  }
}
