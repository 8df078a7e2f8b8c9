//! The system clock of one process jumps by one second or ten years, forward and
//! back.
//!
//! No match, message or deadline may be lost. The process is this test binary
//! again, with a preloaded library that shifts its clock.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use pteros_test_support::folder::Folder;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;
use pteros_test_support::own_process;

const PART: &str = "PTEROS_TEST_PART";
const DOMAIN: u32 = 186;
const PERIOD: Duration = Duration::from_millis(20);

/// All time-dependent QoS policies, with margins for a busy machine.
fn qos() -> QosProfile {
    QosProfile::default()
        .deadline(Duration::from_secs(3))
        .lifespan(Duration::from_secs(5))
        .liveliness(LivelinessPolicy::Automatic, Duration::from_secs(4))
}

/// Runs the child process until it gets the stop command.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let mut options = ContextOptions::local(DOMAIN);
    options.participant_lease = Some(Duration::from_secs(4));
    let context = Context::with_options(options).unwrap();
    let node = context.create_node(&part).unwrap();
    let mut events = Vec::new();
    if part == "talker" {
        let publisher = node.create_publisher::<Text>("tick".qos(qos())).unwrap();
        let mut number = 0;
        let timer_publisher = publisher.clone();
        let _timer = node
            .create_timer(PERIOD, move || {
                number += 1;
                let data = number.to_string();
                timer_publisher.publish_owned(Text { data }).unwrap();
                if number % 25 == 0 {
                    println!("tick {number} {}", wall_seconds());
                }
            })
            .unwrap();
        node.spin();
        events.extend(std::iter::from_fn(|| publisher.take_event()).map(|e| format!("{e:?}")));
    } else {
        let mut last = 0;
        let mut skipped = 0;
        let subscription = node
            .create_polled_subscription::<Text>("tick".qos(qos()))
            .unwrap();
        while !context.is_shut_down() {
            let Some(text) = subscription.take_timeout(PERIOD) else {
                continue;
            };
            let number: u64 = text.data.parse().unwrap();
            skipped += if last == 0 { 0 } else { number - last - 1 };
            last = number;
            if number.is_multiple_of(25) {
                println!("tick {number} {}", wall_seconds());
            }
        }
        events.extend((skipped > 0).then(|| format!("{skipped} messages skipped")));
        events.extend(std::iter::from_fn(|| subscription.take_event()).map(|e| format!("{e:?}")));
    }
    println!("events {}", events.join("; "));
}

fn wall_seconds() -> i64 {
    let now = SystemTime::now();
    match now.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs().cast_signed(),
        Err(before) => -before.duration().as_secs().cast_signed(),
    }
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    clock: PathBuf,
}

impl Process {
    fn start(part: &str, folder: &Path) -> Self {
        let clock = folder.join(part);
        std::fs::write(&clock, 0i64.to_ne_bytes()).unwrap();
        let mut child = own_process::command("clock_jumps::child")
            .env(PART, part)
            .env("PTEROS_TEST_CLOCK", &clock)
            // A list with blanks between: the folder's own path may have some.
            .env("LD_PRELOAD", format!("./{LIBRARY}"))
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            clock,
        }
    }

    /// Reads output until 25 more messages were sent or received by the new clock.
    fn expect_progress(&mut self, offset: i64) {
        loop {
            let line = self.line("tick ");
            let (_, wall) = line.split_once(' ').unwrap();
            let wrong_by: i64 = wall.parse::<i64>().unwrap() - wall_seconds();
            if (wrong_by - offset).abs() <= 2 {
                return;
            }
        }
    }

    fn line(&mut self, beginning: &str) -> String {
        loop {
            let line = self.lines.next().expect("it goes on").unwrap();
            // Output of the test runner may precede it.
            if let Some((_, rest)) = line.split_once(beginning) {
                return rest.to_owned();
            }
        }
    }

    /// Written in place: the file stays mapped.
    fn set_clock(&self, offset: i64) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::options().write(true).open(&self.clock);
        file.unwrap()
            .write_all_at(&offset.to_ne_bytes(), 0)
            .unwrap();
    }

    fn stop(&mut self) -> String {
        let asked = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        assert!(asked.unwrap().success());
        let events = self.line("events ");
        assert!(self.child.wait().unwrap().success());
        events
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// File name of the library, in the folder of the test.
const LIBRARY: &str = "clock.so";

fn build_library(folder: &Path) {
    let library = folder.join(LIBRARY);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testsuite/clock_jumps.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-o"])
        .args([&library, &source])
        .status()
        .expect("a C compiler, cc");
    assert!(status.success());
}

#[test]
fn no_match_message_or_deadline_is_lost_when_the_system_clock_jumps() {
    const YEARS: i64 = 10 * 365 * 86_400;
    let folder = Folder::new("clock_jumps");
    build_library(&folder);
    let mut listener = Process::start("listener", &folder);
    let mut talker = Process::start("talker", &folder);
    listener.expect_progress(0);
    for (jumps, other) in [(true, false), (false, true)] {
        for offset in [1, -1, 3_600, -3_600, YEARS, -YEARS, 0] {
            let to = |jumps| if jumps { offset } else { 0 };
            talker.set_clock(to(jumps));
            listener.set_clock(to(other));
            talker.expect_progress(to(jumps));
            listener.expect_progress(to(other));
            // Once more, entirely after the jump.
            listener.expect_progress(to(other));
        }
    }
    // The listener first: the talker may see it leave.
    let listener_output = listener.stop();
    let mut events: Vec<_> = listener_output.split("; ").collect();
    events.sort_unstable();
    assert_eq!(events.len(), 2, "{listener_output}");
    assert!(events[0].starts_with("LivelinessChanged { alive: 1, not_alive: 0"));
    assert!(events[1].starts_with("Matched { total: 1, current: 1"));
    let talker_output = talker.stop();
    assert!(!talker_output.contains("Missed"), "{talker_output}");
    assert!(!talker_output.contains("Lost"), "{talker_output}");
}
