//! A robot that drives to a goal.
//!
//! Six components: [`Base`] simulates a differential drive with its odometry,
//! [`Laser`] casts rays into a small building, [`MapServer`] knows the building,
//! [`Planner`] and [`Controller`] are managed nodes that find a way and follow it,
//! [`SimClock`] lets time go faster. They meet on ROS's usual topics, by tf and by
//! Nav2's action `navigate_to_pose`; none knows in which process the others are.

mod base;
mod controller;
mod drive;
mod floor;
mod follow;
mod journey;
mod laser;
mod map_server;
mod planner;
mod search;
mod sim_clock;

pub use base::Base;
pub use controller::Controller;
pub use laser::Laser;
pub use map_server::MapServer;
pub use planner::Planner;
pub use sim_clock::SimClock;

/// Where the robot is put down, unless told otherwise: x, y, yaw in the map.
const START: [f64; 3] = [1.0, 5.0, 0.0];

// Shares Pteros with the container instead of bringing a copy along.
use pteros_dylib as _;

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));

pteros::register_components!(Base, Laser, MapServer, Planner, Controller, SimClock);
