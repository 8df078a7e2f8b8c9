// Pixels of raw images (sensor_msgs/Image) as RGBA, for the encodings of image_encodings.hpp that
// cameras publish. Numbers that are no colours are stretched between their least and greatest.

const PIXELS_MAX = 64_000_000;

/** Channels in the message's order: where red, green, blue and alpha are, and bytes per pixel. */
const COLOURS = {
  rgb8: [0, 1, 2, undefined, 3], bgr8: [2, 1, 0, undefined, 3], "8uc3": [2, 1, 0, undefined, 3],
  rgba8: [0, 1, 2, 3, 4], bgra8: [2, 1, 0, 3, 4], "8uc4": [2, 1, 0, 3, 4],
  mono8: [0, 0, 0, undefined, 1], "8uc1": [0, 0, 0, undefined, 1],
};
const DEPTHS = { mono16: [2, "getUint16"], "16uc1": [2, "getUint16"], "16sc1": [2, "getInt16"], "32fc1": [4, "getFloat32"] };
/** Place of red and blue in a block of 2 × 2 pixels: [red x, red y]. Blue is opposite. */
const BAYER = { bayer_rggb8: [0, 0], bayer_bggr8: [1, 1], bayer_gbrg8: [0, 1], bayer_grbg8: [1, 0] };
/** Place of y, u and v in a block of two pixels. */
const YUV = { uyvy: [1, 0, 2], yuv422: [1, 0, 2], yuyv: [0, 1, 3], yuv422_yuy2: [0, 1, 3] };

/** Returns `{width, height, rgba, note}`. Throws with the reason if it cannot. */
export function toRgba({ width, height, encoding, step, data, is_bigendian }) {
  const name = encoding.toLowerCase();
  if (!(width * height <= PIXELS_MAX)) throw new Error(`${width} × ${height} pixels are more than ${PIXELS_MAX}`);
  const bytes = COLOURS[name]?.[4] ?? DEPTHS[name]?.[0] ?? (BAYER[name] ? 1 : YUV[name] ? 2 : undefined);
  if (bytes === undefined) throw new Error(`encoding ${encoding} is not supported`);
  if (step < width * bytes || step * height > data.length) throw new Error(`${data.length} bytes are not ${width} × ${height} pixels of ${encoding}`);
  const image = { width, height, step, data, rgba: new Uint8ClampedArray(width * height * 4), note: "" };
  if (COLOURS[name]) colours(image, COLOURS[name]);
  else if (DEPTHS[name]) depths(image, DEPTHS[name], !is_bigendian);
  else if (BAYER[name]) bayer(image, BAYER[name]);
  else yuv(image, YUV[name]);
  return { width, height, rgba: image.rgba, note: image.note };
}

function colours({ width, height, step, data, rgba }, [red, green, blue, alpha, bytes]) {
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0, from = y * step; x < width; x++, from += bytes, to += 4) {
      rgba[to] = data[from + red];
      rgba[to + 1] = data[from + green];
      rgba[to + 2] = data[from + blue];
      rgba[to + 3] = alpha === undefined ? 255 : data[from + alpha];
    }
  }
}

function depths(image, [bytes, read], little) {
  const { width, height, step, data, rgba } = image;
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let [least, greatest] = [Infinity, -Infinity];
  const values = new Float32Array(width * height);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at++) {
      const value = view[read](y * step + x * bytes, little);
      values[at] = value;
      // Zero is "nothing measured" in depth images of integers.
      if (!Number.isFinite(value) || (value === 0 && bytes === 2)) continue;
      if (value < least) least = value;
      if (value > greatest) greatest = value;
    }
  }
  const scale = greatest > least ? 255 / (greatest - least) : 0;
  for (let i = 0; i < values.length; i++) {
    const grey = Number.isFinite(values[i]) ? (values[i] - least) * scale : 0;
    rgba[i * 4] = rgba[i * 4 + 1] = rgba[i * 4 + 2] = grey;
    rgba[i * 4 + 3] = 255;
  }
  if (greatest >= least) image.note = `${Number(least.toPrecision(4))} to ${Number(greatest.toPrecision(4))}`;
}

/** Each pixel takes the colours of its block of 2 × 2. */
function bayer({ width, height, step, data, rgba }, [redX, redY]) {
  for (let y = 0, to = 0; y < height; y++) {
    const top = Math.max(0, Math.min(y & ~1, height - 2));
    for (let x = 0; x < width; x++, to += 4) {
      const left = Math.max(0, Math.min(x & ~1, width - 2));
      const at = (dx, dy) => data[(top + dy) * step + left + dx];
      rgba[to] = at(redX, redY);
      rgba[to + 1] = (at(1 - redX, redY) + at(redX, 1 - redY)) >> 1;
      rgba[to + 2] = at(1 - redX, 1 - redY);
      rgba[to + 3] = 255;
    }
  }
}

function yuv({ width, height, step, data, rgba }, [yAt, uAt, vAt]) {
  for (let row = 0, to = 0; row < height; row++) {
    for (let x = 0; x < width; x++, to += 4) {
      const block = row * step + (x & ~1) * 2;
      const y = data[block + yAt + (x & 1) * 2];
      const u = data[block + uAt] - 128;
      const v = data[block + vAt] - 128;
      rgba[to] = y + 1.402 * v;
      rgba[to + 1] = y - 0.344 * u - 0.714 * v;
      rgba[to + 2] = y + 1.772 * u;
      rgba[to + 3] = 255;
    }
  }
}
