//! The integration tests of the crate: one program, a module for each subject.

#![allow(clippy::disallowed_methods, reason = "nodes run beside the tests")]

mod buffer_server;
mod diagnostics;
mod images;
mod joint_states;
mod maps;
mod robot_states;
mod static_transforms;
mod teleop_joystick;
mod tools;
mod urdf;
mod velocities;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pteros::args::Arguments;
use pteros::prelude::*;
use pteros_test_support::spin_thread::SpinThread;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A built-in node that spins, and a node of the test in the same context.
struct Started {
    context: Context,
    test: Node,
    _spinning: SpinThread,
}

/// Starts `PACKAGE EXECUTABLE` as a command line would, in a context of its own.
fn start(package: &str, executable: &str, line: &[&str]) -> Started {
    try_start(package, executable, line).unwrap_or_else(|problem| panic!("{problem}"))
}

fn try_start(package: &str, executable: &str, line: &[&str]) -> Result<Started, String> {
    static DOMAIN: AtomicU32 = AtomicU32::new(150);
    let (arguments, rest) = Arguments::parse(line.iter().copied()).unwrap();
    let options = ContextOptions {
        arguments,
        ..ContextOptions::local(DOMAIN.fetch_add(1, Ordering::Relaxed))
    };
    let context = Context::with_options(options).unwrap();
    let node = pteros_nodes::find(package, executable).expect("a built-in node");
    let running = node
        .start(&context, &rest)
        .map_err(|error| error.to_string())?;
    let test = NodeOptions::new("test").use_global_arguments(false);
    Ok(Started {
        test: context.create_node(test).unwrap(),
        _spinning: SpinThread::of_node(&running.node().clone(), running),
        context,
    })
}
