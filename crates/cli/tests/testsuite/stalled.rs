//! A stopped subscription of a publisher that replaces its samples, as `topic pub`,
//! `topic info` and `doctor` tell it.

use std::process::{Child, Command, Stdio};

use crate::support::{Domain, Running};

/// A subscription whose output nobody reads. Killed when dropped.
struct Subscriber(Child);

impl Subscriber {
    fn new(domain: &Domain) -> Self {
        let mut command = domain.command(["topic", "echo", "--qos-reliability", "reliable"]);
        command.arg("/stalled");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a program's log up to a line with this part.
fn wait_for_log(program: &mut Running, part: &str) {
    loop {
        let line = program.error_line();
        // The publisher ends by itself, so that the test cannot wait for ever.
        assert!(!line.is_empty(), "the publisher ended without {part:?}");
        if line.contains(part) {
            return;
        }
    }
}

#[test]
fn a_stopped_subscription_of_a_fast_keep_last_publisher_is_named() {
    let domain = Domain::new();
    let words = "topic pub -r 1000 -t 90000 -p 0 --qos-reliability reliable \
                 --qos-history keep_last --qos-depth 10 /stalled std_msgs/msg/Int32";
    let mut command = domain.command(words.split(' ').chain(["{data: 7}"]));
    command.env("RUST_LOG", "info");
    let subscriber = Subscriber::new(&domain);
    let mut publisher = crate::support::start(command);
    // It begins when the subscription is matched.
    let mut line = publisher.line();
    while !line.contains("beginning loop") {
        assert!(
            !line.is_empty(),
            "the publisher ended without a subscription"
        );
        line = publisher.line();
    }
    let text = "has acknowledged nothing of";
    let (mut is_shown, mut is_diagnosed) = (false, false);
    // The lease of the stopped process ends a stall, too, and on a busy machine a
    // command may come after that.
    for _ in 0..3 {
        subscriber.signal("-STOP");
        wait_for_log(&mut publisher, "acknowledges nothing for 2 s");
        if !is_shown {
            let info = domain.run("topic info --details /stalled").ok();
            is_shown = info.contains(text);
        }
        if !is_diagnosed {
            let found = domain.run("doctor --json").json();
            let list = found["findings"].as_array().unwrap();
            let mut texts = list.iter().filter_map(|finding| finding["text"].as_str());
            is_diagnosed = texts.any(|line| line.contains(text));
        }
        subscriber.signal("-CONT");
        wait_for_log(
            &mut publisher,
            "no reliable subscription is behind any more",
        );
        if is_shown && is_diagnosed {
            return;
        }
    }
    panic!("topic info names it: {is_shown}, doctor names it: {is_diagnosed}");
}

/// The first messages go by UDP, before the connection by shared memory is in use. They
/// are read long after it came up, and after the end of their publisher.
#[test]
fn a_stopped_subscription_gets_what_was_sent_before_its_publisher_ended() {
    let message = format!("{{data: {}}}", "x".repeat(100_000));
    for history in ["keep_last --qos-depth 50", "keep_all"] {
        let domain = Domain::new();
        let qos = format!("--qos-reliability reliable --qos-history {history}");
        let echo = format!("topic echo --csv --truncate-length 8 {qos} /t std_msgs/msg/String");
        let mut echo = domain.start(&echo);
        let publish =
            format!("topic pub -t 3 -r 200 -w 1 --keep-alive 0.3 {qos} /t std_msgs/msg/String");
        let mut publisher = domain.start_with(&publish, &message);
        loop {
            let line = publisher.line();
            assert!(!line.is_empty(), "{}", publisher.wait().err);
            if line.starts_with("publishing #1") {
                break;
            }
        }
        echo.signal("STOP");
        publisher.wait().ok();
        echo.signal("CONT");
        for _ in 0..3 {
            assert!(echo.line().starts_with("xxxxxxxx"), "{history}");
        }
    }
}
