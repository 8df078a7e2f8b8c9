//! A control loop on a thread with real-time priority.

use std::error::Error;

use pteros::prelude::*;
use pteros::thread::ThreadSettings;
use pteros::thread::{CpuList, Priority};

/// Spins a node under SCHED_FIFO on two CPUs. Blocks until Ctrl-C.
pub fn run() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("control")?;
    let settings = ThreadSettings {
        priority: Some(Priority::new(80)?),
        cpus: Some(CpuList::new([2, 3])?),
        lock_memory: true,
    };
    // For the thread that calls it: before the loop begins.
    settings.apply()?;
    node.spin();
    Ok(())
}
