// What the page shows of `.rviz` files: displays, colours, topics, view, and what it cannot.
import assert from "node:assert/strict";
import test from "node:test";

import { colour, qosProblem, readRviz } from "../../page/rviz.js";

const read = (Displays, more = {}) => readRviz({ name: "a.rviz", "Visualization Manager": { Displays, ...more } });
const topic = (name, reliability = "Reliable", durability = "Volatile") => ({ Value: name, "Reliability Policy": reliability, "Durability Policy": durability, Depth: 5 });

test("displays have topic, QoS, colour and opacity", () => {
  const { displays, unsupported } = read([
    { Class: "rviz_default_plugins/Path", Name: "Plan", Enabled: false, Color: "255; 0; 12", Alpha: 0.5, Topic: topic("/plan") },
    { Class: "rviz_default_plugins/Map", Name: "Map", Enabled: true, "Color Scheme": "costmap", Topic: topic("/costmap", "Best Effort", "Transient Local") },
    { Class: "rviz_default_plugins/Odometry", Name: "Odometry", Keep: 7, Shape: { Value: "Arrow", Color: "0; 0; 1" }, Topic: topic("odom") },
  ]);
  const [plan, map, odometry] = displays;
  assert.deepEqual([plan.key, plan.enabled, plan.preset.colour, plan.preset.alpha], ["/plan\nnav_msgs/msg/Path", false, "#ff000c", 0.5]);
  assert.deepEqual([map.enabled, map.preset.scheme, map.qos], [true, "costmap", { reliability: "BEST_EFFORT", durability: "TRANSIENT_LOCAL" }]);
  assert.deepEqual([odometry.topic, odometry.preset.keep, odometry.preset.colour], ["/odom", 7, "#000001"]);
  assert.deepEqual(unsupported, []);
});

test("a display of a group that is off is off", () => {
  const inner = { Class: "rviz_default_plugins/MarkerArray", Name: "M", Enabled: true, Namespaces: { a: false, b: true }, Topic: topic("/m") };
  const { displays } = read([{ Class: "rviz_common/Group", Name: "G", Enabled: false, Displays: [{ Class: "rviz_common/Group", Enabled: true, Displays: [inner] }] }]);
  assert.equal(displays.length, 1);
  assert.equal(displays[0].enabled, false);
  assert.deepEqual([...displays[0].preset.hiddenNamespaces], ["a"]);
});

test("files of ROS 1 are read", () => {
  const { displays, tools } = read([{ Class: "rviz/LaserScan", Name: "Scan", Topic: "/scan", Unreliable: true, Style: "Points", "Size (Pixels)": 5, "Color Transformer": "FlatColor", Color: "1; 2; 3" }],
    { Tools: [{ Class: "rviz/SetGoal", Topic: "/move_base_simple/goal" }] });
  assert.deepEqual([displays[0].topic, displays[0].preset.size, displays[0].preset.colour], ["/scan", 5, "#010203"]);
  assert.deepEqual(tools, { Goal: "/move_base_simple/goal" });
});

test("clouds are coloured by axis, channel or one colour", () => {
  const cloud = (more) => read([{ Class: "rviz_default_plugins/PointCloud2", Name: "c", Color: "1; 2; 3", Topic: topic("/c"), ...more }]).displays[0].preset;
  assert.deepEqual(cloud({ "Color Transformer": "AxisColor", Axis: "Y", "Autocompute Value Bounds": { Value: false, "Min Value": -1, "Max Value": 4 } }).range, [-1, 4]);
  assert.equal(cloud({ "Color Transformer": "AxisColor", Axis: "Y" }).by, "y");
  assert.equal(cloud({ "Color Transformer": "Intensity", "Channel Name": "ring" }).by, "ring");
  const flat = cloud({ "Color Transformer": "FlatColor" });
  assert.deepEqual([flat.by, flat.colour], ["flat", "#010203"]);
});

test("robot model, frames, grid, fixed frame and background", () => {
  const file = read([
    { Class: "rviz_default_plugins/RobotModel", Name: "R", Enabled: true, Alpha: 0.3, "Description Topic": topic("/a/robot_description"), "TF Prefix": "a" },
    { Class: "rviz_default_plugins/TF", Enabled: true, "Marker Scale": 0.5, "Show Names": false, Frames: { "All Enabled": false, base: { Value: true }, wheel: { Value: false }, nan: null } },
    { Class: "rviz_default_plugins/Grid", Enabled: true, "Cell Size": 0.5, "Plane Cell Count": 20, Color: "160; 160; 164", "Reference Frame": "<Fixed Frame>" },
    { Class: "rviz_default_plugins/Axes", Name: "Axes", Length: 2, "Reference Frame": "odom" },
  ], { "Global Options": { "Fixed Frame": "map", "Background Color": "48; 48; 48" } });
  assert.deepEqual(file.robot, { enabled: true, topic: "/a/robot_description", alpha: 0.3, prefix: "a" });
  assert.deepEqual([file.frames.scale, file.frames.names, [...file.frames.hidden]], [0.5, false, ["wheel"]]);
  const [grid, axes] = file.displays;
  assert.deepEqual([grid.preset.frame, grid.preset.cell, grid.preset.count, axes.preset.frame, axes.preset.length], [undefined, 0.5, 20, "odom", 2]);
  assert.deepEqual([file.fixedFrame, file.background], ["map", "#303030"]);
});

test("views are read, and others named", () => {
  const view = (Current) => read([], { Views: { Current } });
  assert.deepEqual(view({ Class: "rviz_default_plugins/TopDownOrtho", X: 1, Y: 2, Scale: 54, Angle: 0.5, "Target Frame": "base" }).view,
    { kind: "above", target: "base", x: 1, y: 2, scale: 54, angle: 0.5 });
  const { kind, focal, target } = view({ Class: "rviz_default_plugins/Orbit", Distance: 4, "Focal Point": { X: 1, Y: 0, Z: 2 }, "Target Frame": "<Fixed Frame>" }).view;
  assert.deepEqual([kind, focal, target], ["orbit", [1, 0, 2], undefined]);
  const other = view({ Class: "rviz_default_plugins/FPS" });
  assert.deepEqual([other.view, other.unsupported], [undefined, ["view FPS"]]);
});

test("what is not supported is named", () => {
  const file = readRviz({
    Panels: [{ Class: "rviz_common/Displays" }, { Class: "nav2_rviz_plugins/Navigation 2" }],
    "Visualization Manager": {
      Displays: [
        { Class: "moveit_rviz_plugin/MotionPlanning", Name: "MotionPlanning" },
        { Class: "other_plugins/LaserScan", Name: "Scan", Topic: topic("/scan") },
        { Class: "rviz_default_plugins/Map", Name: "M", Topic: topic("/<ns>/map") },
        { Class: "rviz_default_plugins/Path", Name: "P", Topic: topic("") },
        { Class: "rviz_default_plugins/constructor", Name: "c" },
        "no display",
      ],
      Tools: [{ Class: "rviz_default_plugins/Measure" }, { Class: "rviz_default_plugins/Select" }],
    },
  });
  assert.deepEqual(file.displays, []);
  assert.deepEqual(file.unsupported, [
    "panel nav2_rviz_plugins/Navigation 2",
    'display moveit_rviz_plugin/MotionPlanning "MotionPlanning"',
    'display other_plugins/LaserScan "Scan"',
    'Map "M": /<ns>/map is a placeholder, which a launch file replaces',
    'Path "P": it has no topic',
    'display constructor "c"',
    "tool rviz_default_plugins/Measure",
  ]);
});

test("two displays of a topic have keys of their own, and a flood is cut", () => {
  const scan = { Class: "rviz_default_plugins/LaserScan", Name: "s", Topic: topic("/scan") };
  const { displays } = read([scan, scan]);
  assert.equal(new Set(displays.map(({ key }) => key)).size, 2);
  const many = read(Array.from({ length: 1000 }, () => scan));
  assert.equal(many.displays.length, 200);
  assert.deepEqual(many.unsupported, ["more than 200 displays"]);
});

test("a mismatch that rviz2 would have is explained", () => {
  const publishers = [{ node: "/lidar", reliability: "BEST_EFFORT", durability: "VOLATILE" }];
  assert.match(qosProblem({ reliability: "RELIABLE", durability: "VOLATILE" }, publishers), /\/lidar is best effort/);
  assert.match(qosProblem({ reliability: "BEST_EFFORT", durability: "TRANSIENT_LOCAL" }, publishers), /volatile/);
  assert.equal(qosProblem({ reliability: "BEST_EFFORT", durability: "VOLATILE" }, publishers), "");
});

test("wrong colours are none", () => {
  for (const wrong of ["", "1; 2", "1; 2; 300", "a; b; c", 5, undefined, {}]) assert.equal(colour(wrong), undefined);
});
