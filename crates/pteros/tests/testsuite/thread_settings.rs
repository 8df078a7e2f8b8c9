//! Thread settings from the command line: priority, CPUs and locked memory, granted
//! and refused.
//!
//! The process of each test is this test binary again. Environment variables pass
//! its command line.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::process::Command;

use pteros::args::Arguments;
use pteros::prelude::*;

const WORDS: &str = "PTEROS_TEST_THREAD_WORDS";

#[test]
fn child() {
    let Ok(words) = std::env::var(WORDS) else {
        return;
    };
    let (arguments, _) = Arguments::parse(words.split_whitespace()).unwrap();
    let options = ContextOptions {
        arguments,
        ..ContextOptions::local(227)
    };
    match Context::with_options(options) {
        Ok(context) if words.contains("thread.") => spin(&context),
        Ok(_context) => scheduling_report(),
        Err(error) => println!("report: {error}"),
    }
}

/// Spins a node whose parameters request refused settings.
fn spin(context: &Context) {
    let node = context.create_node("control").unwrap();
    let executor = pteros::executors::MultiThreadedExecutor::new(context, 2);
    executor.add_node(&node).unwrap();
    println!("report: {}", executor.spin().expect_err("what is refused"));
}

/// Scheduling of this thread and of the background I/O thread in /proc.
fn scheduling_report() {
    let own = std::fs::read_link("/proc/thread-self").unwrap();
    let own = std::path::Path::new("/proc").join(own);
    println!("report: own {}", scheduling(&own));
    println!("report: helper {}", scheduling(&background_io_thread()));
    println!("report: locked {}", field(&own, "VmLck:") != "0");
}

/// The background I/O thread. It sets its name when it first runs, which is not
/// while this thread keeps its CPU.
fn background_io_thread() -> std::path::PathBuf {
    for _ in 0..2_000 {
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            let task = task.unwrap().path();
            if std::fs::read_to_string(task.join("comm")).unwrap().trim() == "pteros-io" {
                return task;
            }
        }
        // Yields the CPU, also under SCHED_FIFO.
        let (_hold, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(std::time::Duration::from_millis(5));
    }
    panic!("no helper thread");
}

fn scheduling(task: &std::path::Path) -> String {
    let stat = std::fs::read_to_string(task.join("stat")).unwrap();
    // proc_pid_stat(5): priority and policy are fields 40 and 41. The name is the
    // second field and may contain blanks.
    let rest = stat.rsplit_once(") ").unwrap().1;
    let mut fields = rest.split_whitespace().skip(37);
    let (priority, policy) = (fields.next().unwrap(), fields.next().unwrap());
    let cpus = field(task, "Cpus_allowed_list:");
    format!("policy {policy} priority {priority} cpus {cpus}")
}

fn field(task: &std::path::Path, name: &str) -> String {
    let status = std::fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().split_whitespace().next().unwrap().into()
}

fn run(mut command: Command, words: &str) -> Vec<String> {
    let output = command
        .args(["thread_settings::child", "--exact", "--nocapture"])
        .env(WORDS, words)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let scheduling_report = text.lines().filter_map(|line| line.split_once("report: "));
    let scheduling_report: Vec<String> = scheduling_report.map(|(_, rest)| rest.into()).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!scheduling_report.is_empty(), "{text}{errors}");
    scheduling_report
}

fn this_test() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// Without the capabilities to exceed resource limits, and with the lowest limits.
fn unprivileged() -> Command {
    let mut command = Command::new("prlimit");
    command.args(["--rtprio=0:0", "--memlock=65536:65536"]);
    if has(CAP_SYS_NICE) || has(CAP_IPC_LOCK) {
        command.args([
            "setpriv",
            "--bounding-set=-sys_nice,-ipc_lock,-sys_resource",
            "--inh-caps=-sys_nice,-ipc_lock,-sys_resource",
        ]);
    }
    command.arg(std::env::current_exe().unwrap());
    command
}

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

fn has(capability: u32) -> bool {
    let effective = field("/proc/self".as_ref(), "CapEff:");
    u64::from_str_radix(&effective, 16).unwrap() >> capability & 1 == 1
}

fn first_cpu() -> String {
    let allowed = pteros::thread::allowed_cpus().unwrap();
    allowed.numbers()[0].to_string()
}

#[test]
fn granted_thread_settings_apply_to_the_thread_and_its_children() {
    let cpu = first_cpu();
    let plain = run(this_test(), "--ros-args --thread-cpus 0-1023");
    assert!(plain[0].starts_with("own policy 0 priority 0"), "{plain:?}");
    assert_eq!(plain[2], "locked false");

    let pinned = run(this_test(), &format!("--ros-args --thread-cpus {cpu}"));
    for (thread, scheduling_report) in ["own", "helper"].iter().zip(&pinned) {
        assert_eq!(
            *scheduling_report,
            format!("{thread} policy 0 priority 0 cpus {cpu}")
        );
    }
    if !has(CAP_SYS_NICE) || !has(CAP_IPC_LOCK) {
        println!("SKIPPED: SCHED_FIFO and mlockall need CAP_SYS_NICE and CAP_IPC_LOCK here");
        return;
    }
    let words = format!("--ros-args --thread-priority 7 --thread-cpus {cpu} --lock-memory");
    let scheduling_report = run(this_test(), &words);
    for (thread, scheduling_report) in ["own", "helper"].iter().zip(&scheduling_report) {
        assert_eq!(
            *scheduling_report,
            format!("{thread} policy 1 priority 7 cpus {cpu}")
        );
    }
    assert_eq!(scheduling_report[2], "locked true");
}

#[test]
fn refused_thread_settings_are_reported_with_the_limit_and_a_hint() {
    let refused = |words: &str| run(unprivileged(), words).concat();
    let scheduling_report = refused("--ros-args --thread-priority 80");
    for wanted in [
        "thread priority 80 (SCHED_FIFO): Operation not permitted",
        "RLIMIT_RTPRIO is 0",
        "CAP_SYS_NICE",
        "LimitRTPRIO=",
    ] {
        assert!(scheduling_report.contains(wanted), "{scheduling_report}");
    }
    let scheduling_report = refused("--ros-args --lock-memory");
    for wanted in ["RLIMIT_MEMLOCK is 65536 bytes", "CAP_IPC_LOCK", "memlock"] {
        assert!(scheduling_report.contains(wanted), "{scheduling_report}");
    }
    let scheduling_report = refused("--ros-args -p control:thread.priority:=80");
    for wanted in ["thread priority 80 (SCHED_FIFO)", "RLIMIT_RTPRIO is 0"] {
        assert!(scheduling_report.contains(wanted), "{scheduling_report}");
    }
    let scheduling_report = refused("--ros-args -p thread.lock_memory:=true");
    assert!(
        scheduling_report.contains("RLIMIT_MEMLOCK is 65536 bytes"),
        "{scheduling_report}"
    );
    let scheduling_report = refused("--ros-args -p thread.cpus:=1023");
    assert!(
        scheduling_report.contains("thread CPUs 1023"),
        "{scheduling_report}"
    );
    let scheduling_report = refused("--ros-args --thread-cpus 1023");
    let allowed = pteros::thread::allowed_cpus().unwrap();
    let wanted = format!(
        "thread CPUs 1023: Invalid argument (os error 22); this thread may run on {allowed}"
    );
    assert!(scheduling_report.contains(&wanted), "{scheduling_report}");
}
