//! Workload "recordings": a recorder under link faults, with a small buffer and queue, a
//! disk that is slow and perhaps fails, pauses, splits, snapshots, and publishers that
//! restart.
//!
//! I25, accounting, per topic and publisher: what was published from the first message
//! that arrived to the last equals what was received, arrived in a pause, or was lost on
//! the wire or in the queue. What was received equals what was written, was lost in the
//! buffer or in the writer, or is on its way there. The bag has each written message once
//! and in order, and no other. So has a torn bag, up to where it was cut.

mod accounts;
mod bag;
mod disk;
mod publishers;
mod recorder;
mod setup;

use pteros_test_support::folder::Folder;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use self::publishers::Progress;
use self::setup::{LATE_MAX, STEADY};
use super::world::{NodeWorld, REPAIR_MAX};

pub(super) fn run(world: &NodeWorld) {
    let folder = Folder::new("sim-bag");
    let progress = Arc::new(Progress::default());
    let recorder = recorder::start(world, &folder, &progress);
    let mut publishers: Vec<_> = (0..STEADY)
        .map(|topic| publishers::steady(world, topic, progress.clone()))
        .collect();
    publishers.push(publishers::restarting(world, progress.clone()));
    let until = world.sim.now() + LATE_MAX + REPAIR_MAX;
    while progress.heard.load(Ordering::Relaxed) < STEADY && world.sim.now() < until {
        world.sim.advance(Duration::from_millis(50));
    }
    world.run_fault_phase();
    drop(publishers);
    drop(recorder);
}
