//! Unloading a component frees its endpoints, threads, descriptors and memory. The test
//! has a process of its own, since it counts the resources of the whole process.

#![allow(clippy::disallowed_methods, reason = "waits for real threads")]

use std::time::Instant;

use crate::support::{DEMO_PACKAGE, MISBEHAVING_PACKAGE, Running, TIMEOUT};
use pteros_container::{ContainerOptions, ExecutorKind};
use pteros_test_support::own_process;

const CYCLES: usize = 200;

/// A leak makes every window of [`CYCLES`] cycles grow. The heap of glibc grows too,
/// by a megabyte or two, but in one window only: it keeps what two large components
/// needed at the same time.
const WINDOWS_MAX: usize = 3;

/// Growth of a window that counts as a leak, KiB: 2 KiB a cycle.
const LEAK_KIB: usize = 400;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Open descriptors, without files of /proc. Those are open while the process reads
/// them, as the list of sockets before each announcement.
fn descriptors() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    // A descriptor that was closed meanwhile has no target.
    open.filter_map(|one| std::fs::read_link(one.unwrap().path()).ok())
        .filter(|target| !target.starts_with("/proc"))
        .count()
}

/// Resident memory in KiB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

fn cycle(container: &Running) {
    for (package, class) in [(MISBEHAVING_PACKAGE, "Heavy"), (DEMO_PACKAGE, "Listener")] {
        let loaded = container.load(package, class);
        assert!(loaded.success, "{loaded:?}");
        let gone = container.unload(loaded.unique_id);
        assert!(gone.success, "{gone:?}");
    }
}

fn run_cycles(executor: ExecutorKind) {
    let container = Running::new(ContainerOptions {
        executor,
        index: crate::support::index(),
        ..ContainerOptions::default()
    });
    (0..20).for_each(|_| cycle(&container));
    let graph = container.context.graph();
    let counts = || {
        (
            graph.topics().len(),
            graph.services().len(),
            graph.nodes().len(),
        )
    };
    let before_threads = threads();
    let before = (counts(), descriptors());
    let mut grown = Vec::new();
    while grown.len() < WINDOWS_MAX && grown.last().is_none_or(|grown| *grown >= LEAK_KIB) {
        let resident_before = resident();
        (0..CYCLES).for_each(|_| cycle(&container));
        // The thread of the last response may still be ending.
        let until = Instant::now() + TIMEOUT;
        while threads() > before_threads && Instant::now() < until {
            std::thread::yield_now();
        }
        grown.push(resident().saturating_sub(resident_before));
    }
    assert_eq!((counts(), descriptors()), before);
    assert!(threads() <= before_threads, "{} threads", threads());
    assert!(
        grown.last().is_some_and(|grown| *grown < LEAK_KIB),
        "{executor:?}: {grown:?} KiB more after {CYCLES} cycles each"
    );
}

/// With several arenas glibc keeps memory per thread, which varies by megabytes.
/// With one arena a leak is visible.
const ARENAS: &str = "MALLOC_ARENA_MAX";

#[test]
fn two_hundred_load_unload_cycles_leave_no_resources() {
    if std::env::var_os(ARENAS).is_none() {
        let test = "cycles::two_hundred_load_unload_cycles_leave_no_resources";
        let mut again = own_process::command(test);
        let output = again.env(ARENAS, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = output.status.success() && text.contains("test result: ok. 1 passed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(passed, "{}\n{text}{errors}", output.status);
        return;
    }
    run_cycles(ExecutorKind::Single);
    run_cycles(ExecutorKind::Isolated);
}
