// Steps of the test of the page in Chromium; `panels.rs` runs them one after the other.

const STEP_MS_MAX = 20_000;

/** Resolves once `holds` returns something true; rejects with what was waited for. */
function until(what, holds) {
  const end = performance.now() + STEP_MS_MAX;
  return new Promise((resolve, reject) => {
    const look = () => {
      let found;
      try {
        found = holds();
      } catch (error) {
        return reject(error);
      }
      if (found) resolve(found);
      else if (performance.now() > end) reject(new Error(`${what}: not within ${STEP_MS_MAX / 1000} s; ${document.body.innerText.slice(0, 2000)}`));
      else setTimeout(look, 30);
    };
    look();
  });
}

const visible = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.offsetParent !== null);
const containing = (selector, text) => visible(selector).find((element) => element.textContent.includes(text));
const shows = (selector, text) => until(`${selector} with "${text}"`, () => containing(selector, text));
const labelled = (label) => until(`input ${label}`, () => visible(`[aria-label="${label}"]`)[0]);

async function press(selector, text) {
  const button = await until(`button "${text}"`, () => visible(selector).find((one) => one.textContent.trim() === text && !one.disabled));
  button.click();
}

async function panel(id) {
  location.hash = id;
  await until(`panel ${id}`, () => document.body.dataset.panel === id);
}

async function fill(label, value) {
  const input = await labelled(label);
  input.focus();
  input.value = value;
  input.dispatchEvent(new Event("change"));
  input.blur();
}

/** Pixels of a screenshot, by place in the world: the view is from above, `scale` pixels a metre. */
async function reader(picture, scale) {
  const image = new Image();
  image.src = `data:image/png;base64,${picture}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { left, top, width, height } = document.querySelector(".scene canvas").getBoundingClientRect();
  return (x, y) => Array.from(context.getImageData(Math.round(left + width / 2 + x * scale), Math.round(top + height / 2 - y * scale), 1, 1).data.slice(0, 3));
}

const steps = {
  async connect() {
    await until("connection", () => document.body.dataset.phase === "open");
    await shows(".rviz .name", "robot.rviz");
  },

  /** Displays of the file are on, those that it lacks off, and what is not supported is listed. */
  async displays() {
    for (const text of ["/scan", "/cloud", "/map", "/plan"]) await shows(".displays li", text);
    await until("scan", () => /36 points/.test(containing(".displays li", "/scan").textContent));
    await until("cloud", () => /441 points/.test(containing(".displays li", "/cloud").textContent));
    await until("map", () => /20 × 20/.test(containing(".displays li", "/map").textContent));
    await until("plan", () => /2 points/.test(containing(".displays li", "/plan").textContent));
    await until("markers", () => /1 marker/.test(containing(".displays li", "/markers").textContent));
    await until("robot", () => /box/.test(containing(".displays li", "Robot model").textContent));
    const isOn = (name) => containing(".displays li", name).querySelector("input").checked;
    if (isOn("Frames") || isOn("/other_scan")) throw new Error("a display is on that the file turns off");
    await shows(".displays li", "rviz2 would not get it");
    const missing = document.querySelector(".rviz .missing");
    missing.open = true;
    await shows(".rviz li", "other_plugins/Radar");
    const corner = await until("image in the corner", () => document.querySelector(".corner canvas")?.width === 2 && document.querySelector(".corner canvas"));
    return Array.from(corner.getContext("2d").getImageData(0, 0, 2, 2).data);
  },

  /** Reads the drawn scene back. */
  async pixels(picture) {
    const at = await reader(picture, 60);
    const near = (one, two) => one.every((value, i) => Math.abs(value - two[i]) <= 6);
    const some = (places, fits) => places.some(([x, y]) => fits(at(x, y)));
    const around = (x, y) => [-3, -2, -1, 0, 1, 2, 3].flatMap((i) => [-3, -2, -1, 0, 1, 2, 3].map((j) => [x + i / 60, y + j / 60]));
    return {
      background: near(at(4.5, -4.5), [0, 0, 0]),
      map: near(at(-1, -2), [43, 50, 56]),
      scan: some(around(2, 0), (pixel) => near(pixel, [255, 0, 0])),
      cloud: near(at(-1.5, 1.5), [0, 255, 0]),
      plan: some(around(1.5, -3.5), ([r, g, b]) => r < 10 && g < 10 && b > 90),
      marker: some(around(3, 2), ([r, g, b]) => r > 120 && b > 120 && g < 60),
      robot: some(around(1, 0), ([r, g, b]) => r > 120 && g > 90 && b < 60),
    };
  },

  async topics() {
    await panel("topics");
    (await shows(".topics button.name", "/camera/image_raw")).click();
    await shows(".tree .row", "rgb8");
    await until("rate", () => visible(".topics tr").some((row) => row.textContent.includes("/scan") && /\d\.\d/.test(row.textContent)));
  },

  async images() {
    await panel("images");
    const canvas = await until("image", () => visible(".images canvas").find(({ width }) => width === 2));
    return Array.from(canvas.getContext("2d").getImageData(0, 0, 2, 2).data);
  },

  async plot() {
    await panel("topics");
    (await shows(".topics button.name", "/number")).click();
    (await shows(".tree .row.plots", "data")).click();
    await until("plot", () => document.body.dataset.panel === "plot" && visible(".uplot canvas")[0] && containing(".panel", "/number"));
  },

  async graph() {
    await panel("graph");
    await shows("svg text", "/scan");
  },

  async logs() {
    await panel("logs");
    await shows(".log li", "Reached the dock");
  },

  async diagnostics() {
    await panel("diagnostics");
    await shows(".diagnostics", "battery low");
  },

  async parameters() {
    await panel("params");
    const input = await labelled("/robot.speed");
    await until("value", () => input.value === "1");
    await fill("/robot.speed", "2.5");
  },

  /** The robot has changed a parameter by itself. */
  async update() {
    const input = await labelled("/robot.speed");
    await until("pushed value", () => input.value === "3.5");
  },

  async services() {
    await panel("services");
    (await shows("button.name", "/add")).click();
    await fill("a", "2");
    await fill("b", "40");
    await press("button.primary", "Call");
    await shows(".tree .row", "42");
  },

  async action() {
    await panel("actions");
    (await shows("button.name", "/dance")).click();
    await fill("order", "5");
    await press("button.primary", "Send goal");
  },

  async feedback() {
    await until("feedback", () => containing("h3", "Feedback") && containing(".tree .row", "[1]  2"));
  },

  async result() {
    await until("result", () => containing("h3", "Result") && containing(".tree .row", "[1]  5"));
    await shows(".good", "succeeded");
  },

  async send() {
    await press("button.primary", "Send goal");
    await shows("[role=status]", "executing");
  },

  async cancel() {
    await press("button", "Cancel goal");
  },

  async canceled() {
    await shows(".bad", "canceled");
  },

  async joints() {
    await panel("joints");
    await fill("elbow, value", "0.5");
    await press("button", "Publish");
    await shows(".facts", "/joint_states: 2 joints");
  },

  async lifecycle() {
    await panel("lifecycle");
    await shows(".states tr", "/arm");
    await press(".states button", "configure");
    await shows(".state", "inactive");
    await press(".states button", "activate");
    await until("active", () => visible(".state").some((state) => state.textContent === "active"));
  },

  async components() {
    await panel("components");
    await shows(".components li", "/talker");
    await press(".components button", "Unload");
    await shows(".problem", "it is needed");
  },

  async teleop() {
    await panel("teleop");
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "w", bubbles: true }));
    await shows(".facts", "linear 0.30");
    document.body.dispatchEvent(new KeyboardEvent("keyup", { key: "w", bubbles: true }));
    await shows(".facts", "linear 0.00");
  },

  async goal() {
    await press(".pose-tools button", "Goal");
    const canvas = document.querySelector(".scene canvas");
    for (const key of ["ArrowRight", "Enter"]) canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await shows(".hint", "/goal: 0.10, 0.00 in map published");
  },

  /** Without the file, the page shows its own displays. */
  async close() {
    await press(".rviz button", "close");
    await until("own displays", () => containing(".displays li", "/other_scan").querySelector("input").checked);
  },
};
