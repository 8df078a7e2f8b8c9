//! Timers and rates in ROS time.

use std::error::Error;
use std::time::Duration;

use pteros::TimerOptions;
use pteros::clock::Rate;
use pteros::prelude::*;

/// Spins ten times a second of ROS time until Ctrl-C.
pub fn run() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("planner")?;
    println!("it is {}", node.now());
    let every_second = TimerOptions::new(Duration::from_secs(1)).on_ros_time();
    let _timer = node.create_timer(every_second, || println!("a second of ROS time"))?;
    let mut rate = Rate::new(&node.clock(), 10.0);
    while rate.sleep() {
        node.spin_once(Duration::ZERO);
    }
    Ok(())
}
