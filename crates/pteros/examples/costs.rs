//! What a look-up of transforms and a line of a log cost, in ns: the best of several
//! rounds, for a machine has other work too. `cargo run --release -p pteros --example costs`
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::hint::black_box;
use std::time::Instant;

use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::log::LogFileOptions;
use pteros::prelude::*;
use pteros::tf::{LATEST, TransformBuffer, TransformBufferOptions};
use pteros::{debug, info};

const ROUNDS: usize = 20;

/// Nanoseconds of one of `count` calls, in the best round.
fn cost(count: u32, mut work: impl FnMut()) -> f64 {
    let mut round = || {
        let began = Instant::now();
        (0..count).for_each(|_| work());
        began.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// A tree of that many frames, each but the root known at 100 times in 10 s: chains
/// of ten frames below `map`, as arms have them.
fn tree(frames: usize) -> Result<TransformBuffer, Box<dyn std::error::Error>> {
    let buffer = TransformBuffer::new(TransformBufferOptions::default());
    for frame in 1..frames {
        let mut told = TransformStamped {
            child_frame_id: format!("frame_{frame}"),
            ..TransformStamped::default()
        };
        told.header.frame_id = match frame % 10 {
            1 => "map".into(),
            _ => format!("frame_{}", frame - 1),
        };
        told.transform.rotation.w = 1.0;
        for tenth in 0..100 {
            (told.header.stamp.sec, told.header.stamp.nanosec) =
                (1000 + tenth / 10, tenth as u32 % 10 * 100_000_000);
            told.transform.translation.x = f64::from(tenth);
            buffer.set_transform(&told, "costs", false)?;
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
                let _ = black_box(buffer.lookup("map", source, time));
            });
            println!("lookup of {frames} frames, {what}: {ns:.0} ns");
        }
    }
    let folder = std::env::temp_dir().join(format!("pteros-costs-{}", std::process::id()));
    let quiet = "--ros-args --disable-stdout-logs --disable-rosout-logs";
    for (what, words, in_file, count) in [
        ("nowhere", quiet, false, 10_000),
        ("a file", quiet, true, 10_000),
        // All rounds together stay below what /rosout takes in a second.
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
        let node = context.node("costs")?;
        let logger = node.logger();
        let ns = cost(count, || info!(logger, "joint {} at {:.3} rad", 3, 1.25));
        println!("line to {what}: {ns:.0} ns");
        let ns = cost(100_000, || debug!(logger, "joint {} at {:.3} rad", 3, 1.25));
        println!("line below the level: {ns:.1} ns");
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
