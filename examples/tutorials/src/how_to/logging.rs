//! Loggers of a node.

use std::error::Error;
use std::time::Duration;

use pteros::log::Severity;
use pteros::prelude::*;

/// Logs some lines.
pub fn run() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("arm")?;
    let logger = node.logger();
    pteros::info!(logger, "{} joints", 6);
    pteros::warn_throttle!(logger, Duration::from_secs(1), "{} degrees", 81);
    pteros::debug_once!(logger, "logged once, if at all");
    logger.child("gripper").set_level(Some(Severity::Debug));
    Ok(())
}
