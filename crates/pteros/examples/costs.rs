//! Measures the cost in ns of a transform lookup and of a log line. Takes the best
//! of several rounds, since the machine has other work.
//! `cargo run --release -p pteros --example costs`
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::hint::black_box;
use std::time::Instant;

use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::log::LogFileOptions;
use pteros::prelude::*;
use pteros::tf::{LATEST, TransformBuffer, TransformBufferOptions};
use pteros::{debug, info};

const ROUNDS: usize = 20;

/// Nanoseconds per call in the best round of `count` calls.
fn cost(count: u32, mut work: impl FnMut()) -> f64 {
    let mut round = || {
        let began = Instant::now();
        (0..count).for_each(|_| work());
        began.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// A tree of `frames` frames. Each frame but the root has 100 transforms in 10 s.
/// Below `map` are chains of ten frames, as in robot arms.
fn tree(frames: usize) -> Result<TransformBuffer, Box<dyn std::error::Error>> {
    let buffer = TransformBuffer::new(TransformBufferOptions::default());
    for frame in 1..frames {
        let mut transform = TransformStamped {
            child_frame_id: format!("frame_{frame}"),
            ..TransformStamped::default()
        };
        transform.header.frame_id = match frame % 10 {
            1 => "map".into(),
            _ => format!("frame_{}", frame - 1),
        };
        transform.transform.rotation.w = 1.0;
        for tenth in 0..100 {
            (transform.header.stamp.sec, transform.header.stamp.nanosec) =
                (1000 + tenth / 10, tenth as u32 % 10 * 100_000_000);
            transform.transform.translation.x = f64::from(tenth);
            buffer.set_transform(&transform, "costs", false)?;
        }
    }
    Ok(buffer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for frames in [10, 1000] {
        let buffer = tree(frames)?;
        let between = pteros::clock::Time::from_nanos(1_005_050_000_000);
        for (what, source, time) in [
            ("one link, latest", "frame_1", LATEST),
            ("nine links, latest", "frame_9", LATEST),
            ("nine links, interpolated", "frame_9", between),
        ] {
            let ns = cost(10_000, || {
                let _ = black_box(buffer.lookup_transform("map", source, time));
            });
            println!("lookup of {frames} frames, {what}: {ns:.0} ns");
        }
    }
    let folder = std::env::temp_dir().join(format!("pteros-costs-{}", std::process::id()));
    let quiet = "--ros-args --disable-stdout-logs --disable-rosout-logs";
    for (what, words, in_file, count) in [
        ("nowhere", quiet, false, 10_000),
        ("a file", quiet, true, 10_000),
        // All rounds together stay below the rate limit of /rosout.
        ("/rosout", "--ros-args --disable-stdout-logs", false, 40),
    ] {
        let (arguments, _) = pteros::args::Arguments::parse(words.split(' '))?;
        let context = Context::with_options(ContextOptions {
            arguments,
            log_files: LogFileOptions {
                folder: in_file.then(|| folder.clone()),
                ..LogFileOptions::default()
            },
            ..ContextOptions::local(99)
        })?;
        let node = context.create_node("costs")?;
        let logger = node.logger();
        let ns = cost(count, || info!(logger, "joint {} at {:.3} rad", 3, 1.25));
        println!("line to {what}: {ns:.0} ns");
        let ns = cost(100_000, || debug!(logger, "joint {} at {:.3} rad", 3, 1.25));
        println!("line below the level: {ns:.1} ns");
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
