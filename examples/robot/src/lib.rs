//! Example robot that drives to a goal.
//!
//! It has six components. [`Base`] simulates a differential drive with its odometry,
//! and [`Laser`] casts rays into a small building. [`MapServer`] publishes the map,
//! and [`SimClock`] publishes simulated time. [`Planner`] and [`Controller`] are
//! managed nodes that plan and follow a path. The components communicate by ROS's usual topics,
//! tf and Nav2's action `navigate_to_pose`, in one process or several.

mod base;
mod controller;
mod diff_drive;
mod floor_map;
mod laser;
mod map_server;
mod navigation_task;
mod path_search;
mod planner;
mod pure_pursuit;
mod sim_clock;

pub use base::Base;
pub use controller::Controller;
pub use laser::Laser;
pub use map_server::MapServer;
pub use planner::Planner;
pub use sim_clock::SimClock;

/// Default start pose in the map: x, y, yaw.
const START: [f64; 3] = [1.0, 5.0, 0.0];

// Links the shared library of Pteros, as the container does.
use pteros_dylib as _;

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));

pteros::register_components!(Base, Laser, MapServer, Planner, Controller, SimClock);
