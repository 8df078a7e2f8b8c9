// Reader of `.rviz` files: from the file's JSON, as the server answers it, to what the scene shows.
//
// It draws nothing. What this page cannot show is a text in `unsupported`, and what it shows in
// another way is one in `remarks`.

const DISPLAYS_MAX = 200;
const TEXT_LENGTH_MAX = 200;
const IMAGE = "image";

/** Message types by class of display, without the package of the class. */
const TYPES = {
  LaserScan: "sensor_msgs/msg/LaserScan",
  PointCloud2: "sensor_msgs/msg/PointCloud2",
  Map: "nav_msgs/msg/OccupancyGrid",
  Path: "nav_msgs/msg/Path",
  Odometry: "nav_msgs/msg/Odometry",
  Pose: "geometry_msgs/msg/PoseStamped",
  PoseWithCovariance: "geometry_msgs/msg/PoseWithCovarianceStamped",
  PoseArray: "geometry_msgs/msg/PoseArray",
  ParticleCloud: "nav2_msgs/msg/ParticleCloud",
  PointStamped: "geometry_msgs/msg/PointStamped",
  Polygon: "geometry_msgs/msg/PolygonStamped",
  Marker: "visualization_msgs/msg/Marker",
  MarkerArray: "visualization_msgs/msg/MarkerArray",
  Image: IMAGE,
  Camera: IMAGE,
};
const PACKAGES = /^(rviz|rviz_common|rviz_default_plugins)\//;
const OWN_PLUGINS = new Set(["nav2_rviz_plugins/ParticleCloud"]);
/** Panels and tools whose work the page does, in its own way. */
const PANELS = /^rviz(_common)?\/(Displays|Selection|Tool Properties|Views|Time)$/;
const TOOLS = /^rviz(_default_plugins)?\/(Interact|MoveCamera|Select|FocusCamera)$/;
/** Topics by tool, as pose_tools.js names its tools. */
const POSE_TOOLS = { SetGoal: "Goal", SetInitialPose: "Initial pose", PublishPoint: "Point" };

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const list = (value) => (Array.isArray(value) ? value.filter(isObject) : []);
const text = (value) => (typeof value === "string" || typeof value === "number" ? String(value).slice(0, TEXT_LENGTH_MAX) : "");
const number = (value, initial) => (typeof value === "number" && Number.isFinite(value) ? value : initial);
const vector = (value) => ["X", "Y", "Z"].map((axis) => number(value?.[axis], 0));

/** `160; 160; 164` as `#a0a0a4`, or undefined. */
export function colour(value) {
  const parts = text(value).split(";").map(Number);
  if (parts.length !== 3 || !parts.every((part) => part >= 0 && part <= 255)) return undefined;
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/** A frame, or undefined for the fixed one. */
const frame = (value) => (/^(<.*>)?$/.test(text(value)) ? undefined : text(value).replace(/^\//, ""));

/** The topic of a display with its QoS; files of ROS 1 have a text in place of both. */
function topicOf(display, key) {
  const value = display[key] ?? display["Topic"] ?? display["Marker Topic"] ?? display["Image Topic"];
  const name = text(isObject(value) ? value.Value : value);
  const qos = isObject(value) ? { reliability: qosWord(value["Reliability Policy"]), durability: qosWord(value["Durability Policy"]) } : {};
  return { topic: name && !name.startsWith("/") ? `/${name}` : name, qos };
}

const qosWord = (value) => text(value).toUpperCase().replace(/ /g, "_");

/**
 * Why a subscription with the file's QoS would get nothing of a publisher, or an empty text.
 * The page subscribes with a QoS that matches all publishers, so it shows the messages all the same.
 */
export function qosProblem(wanted, publishers) {
  for (const { node, reliability, durability } of publishers) {
    if (wanted.reliability === "RELIABLE" && reliability === "BEST_EFFORT") return `rviz2 would not get it: ${node} is best effort, the file asks for reliable`;
    if (wanted.durability === "TRANSIENT_LOCAL" && durability === "VOLATILE") return `rviz2 would not get it: ${node} is volatile, the file asks for transient local`;
  }
  return "";
}

function cloudLook(display) {
  const transformer = text(display["Color Transformer"]);
  const by = { AxisColor: text(display.Axis).toLowerCase(), Intensity: text(display["Channel Name"]), RGB8: "rgb", RGBF32: "rgb", FlatColor: "flat" }[transformer];
  const bounds = transformer === "AxisColor" ? display["Autocompute Value Bounds"] : undefined;
  let range;
  if (isObject(bounds) && bounds.Value === false) range = [number(bounds["Min Value"], 0), number(bounds["Max Value"], 1)];
  if (transformer === "Intensity" && display["Autocompute Intensity Bounds"] === false) range = [number(display["Min Intensity"], 0), number(display["Max Intensity"], 1)];
  return { by, range };
}

/** Settings of a display, as displays.js reads them. */
function look(name, display) {
  const isPoints = text(display.Style) === "Points";
  const settings = {
    colour: colour(display.Color ?? display.Shape?.Color),
    alpha: Math.min(1, Math.max(0, number(display.Alpha ?? display.Shape?.Alpha, 1))),
    size: isPoints ? Math.min(20, Math.max(1, number(display["Size (Pixels)"], 3))) : undefined,
  };
  if (name === "PointCloud2") Object.assign(settings, cloudLook(display));
  // The file has a colour for them that a scale replaces.
  if ((name === "PointCloud2" || name === "LaserScan") && text(display["Color Transformer"]) !== "FlatColor") settings.colour = undefined;
  if (name === "Map") settings.scheme = text(display["Color Scheme"]) === "costmap" ? "costmap" : "map";
  if (name === "Odometry") settings.keep = Math.min(1000, Math.max(0, number(display.Keep, 100)));
  if (name === "PointStamped") settings.radius = Math.max(0.001, number(display.Radius, 0.08));
  if (isObject(display.Namespaces)) {
    settings.hiddenNamespaces = new Set(Object.entries(display.Namespaces).filter(([, shown]) => shown === false).map(([key]) => key));
  }
  return settings;
}

/** What a display shows in another way than rviz does. */
function remarksOn(name, display) {
  const remarks = [];
  if (name === "Camera") remarks.push("the image is shown without the scene on top of it");
  if (name === "LaserScan" && ["Intensity", "AxisColor"].includes(text(display["Color Transformer"]))) remarks.push("drawn in one colour");
  if (number(display["Decay Time"], 0) > 0) remarks.push("only the newest message is drawn, without decay time");
  if (text(display.Shape?.Value ?? display.Shape) === "Axes") remarks.push("arrows in place of axes");
  if (display.Covariance?.Value === true) remarks.push("no covariance");
  if (name === "Path" && !["", "None"].includes(text(display["Pose Style"]))) remarks.push("the line alone, without its poses");
  if (name === "Path" && number(display["Buffer Length"], 1) > 1) remarks.push("only the newest path");
  return remarks;
}

function groundGrid(display) {
  return {
    frame: frame(display["Reference Frame"]),
    cell: Math.max(0.001, number(display["Cell Size"], 1)),
    count: Math.min(500, Math.max(1, Math.round(number(display["Plane Cell Count"], 10)))),
    plane: text(display.Plane) || "XY",
    offset: vector(display.Offset),
    colour: colour(display.Color),
    alpha: number(display.Alpha, 0.5),
  };
}

class Reader {
  constructor() {
    this.displays = [];
    this.unsupported = [];
    this.remarks = [];
    this.robot = this.frames = undefined;
  }

  read(displays, isEnabled, depth) {
    for (const display of displays) {
      if (this.displays.length >= DISPLAYS_MAX || depth > 16) {
        this.unsupported.push(`more than ${DISPLAYS_MAX} displays`);
        return;
      }
      this.display(display, isEnabled && display.Enabled !== false, depth);
    }
  }

  display(display, enabled, depth) {
    const full = text(display.Class);
    const name = PACKAGES.test(full) ? full.replace(PACKAGES, "") : OWN_PLUGINS.has(full) ? full.split("/")[1] : "";
    const title = text(display.Name) || name || full;
    const what = title === name ? name : `${name || full} "${title}"`;
    if (name === "Group") return this.read(list(display.Displays), enabled, depth + 1);
    if (name === "Grid" || name === "Axes") {
      const preset = name === "Grid" ? groundGrid(display) : { frame: frame(display["Reference Frame"]), length: Math.max(0.001, number(display.Length, 1)) };
      return void this.displays.push({ name, title, enabled, preset });
    }
    if (name === "TF") return this.readFrames(display, enabled, what);
    if (name === "RobotModel") return this.readRobot(display, enabled, what);
    const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
    if (!type) return void this.unsupported.push(`display ${what}`);
    const { topic, qos } = topicOf(display);
    if (!topic) return void this.unsupported.push(`${what}: it has no topic`);
    if (this.isPlaceholder(topic, what)) return;
    for (const remark of remarksOn(name, display)) this.remarks.push(`${what}: ${remark}`);
    this.displays.push({ name, title, enabled, topic, type, qos, preset: look(name, display) });
  }

  isPlaceholder(topic, what) {
    const isOne = /[<>]/.test(topic);
    if (isOne) this.unsupported.push(`${what}: ${topic} is a placeholder, which a launch file replaces`);
    return isOne;
  }

  readFrames(display, enabled, what) {
    if (this.frames) return void this.unsupported.push(`display ${what}: a second one`);
    const hidden = Object.entries(isObject(display.Frames) ? display.Frames : {})
      .filter(([, value]) => value?.Value === false).map(([name]) => name);
    this.frames = {
      enabled, hidden: new Set(hidden),
      scale: Math.min(100, Math.max(0.01, number(display["Marker Scale"], 1))),
      names: display["Show Names"] !== false, axes: display["Show Axes"] !== false, arrows: display["Show Arrows"] !== false,
    };
  }

  readRobot(display, enabled, what) {
    if (this.robot) return void this.unsupported.push(`display ${what}: a second robot model`);
    if (text(display["Description Source"]) === "File") {
      return void this.unsupported.push(`${what}: a description from a file; publish it with robot_state_publisher`);
    }
    if (display["Collision Enabled"] === true) this.remarks.push(`${what}: collision shapes are not drawn`);
    const { topic } = topicOf(display, "Description Topic");
    if (this.isPlaceholder(topic, what)) return;
    this.robot = {
      enabled: enabled && display["Visual Enabled"] !== false, topic: topic || "/robot_description",
      alpha: Math.min(1, Math.max(0, number(display.Alpha, 1))), prefix: text(display["TF Prefix"]),
    };
  }

  readTools(tools) {
    const topics = {};
    for (const tool of tools) {
      const name = text(tool.Class);
      const short = name.replace(PACKAGES, "");
      const own = short !== name && Object.hasOwn(POSE_TOOLS, short) ? POSE_TOOLS[short] : undefined;
      const { topic } = topicOf(tool);
      if (own) {
        if (topic && !this.isPlaceholder(topic, `tool ${own}`)) topics[own] = topic;
      } else if (!TOOLS.test(name)) this.unsupported.push(`tool ${name}`);
    }
    return topics;
  }

  readView(view) {
    const name = text(view?.Class).replace(PACKAGES, "");
    if (!name) return undefined;
    const target = frame(view["Target Frame"]);
    if (name === "TopDownOrtho") {
      return { kind: "above", target, x: number(view.X, 0), y: number(view.Y, 0), scale: Math.max(0.01, number(view.Scale, 10)), angle: number(view.Angle, 0) };
    }
    if (!["Orbit", "XYOrbit", "ThirdPersonFollower"].includes(name)) {
      this.unsupported.push(`view ${name}`);
      return undefined;
    }
    if (name === "ThirdPersonFollower") this.remarks.push("view ThirdPersonFollower: it follows the place and does not turn with the robot");
    return {
      kind: "orbit", target, focal: vector(view["Focal Point"]), distance: Math.max(0.1, number(view.Distance, 10)),
      yaw: number(view.Yaw, 0.785), pitch: number(view.Pitch, 0.785), fieldOfView: number(view["Field of View"], 0.785),
    };
  }
}

/** What the scene shows of a file. Each display has a key of its own. */
export function readRviz(file) {
  const manager = file?.["Visualization Manager"];
  if (!isObject(manager)) throw new Error("the file has no displays");
  const reader = new Reader();
  for (const panel of list(file.Panels)) if (!PANELS.test(text(panel.Class))) reader.unsupported.push(`panel ${text(panel.Class)}`);
  reader.read(list(manager.Displays), true, 0);
  const global = isObject(manager["Global Options"]) ? manager["Global Options"] : {};
  const tools = reader.readTools(list(manager.Tools));
  const view = reader.readView(manager.Views?.Current);
  const seen = new Map();
  for (const display of reader.displays) {
    const base = display.topic ? `${display.topic}\n${display.type}` : `${display.name}\n`;
    const before = seen.get(base) ?? 0;
    seen.set(base, before + 1);
    display.key = before === 0 ? base : `${base}\n${before}`;
  }
  const { displays, robot, frames, unsupported, remarks } = reader;
  return { name: text(file.name), fixedFrame: frame(global["Fixed Frame"]) ?? "", background: colour(global["Background Color"]), displays, robot, frames, view, tools, unsupported, remarks };
}
