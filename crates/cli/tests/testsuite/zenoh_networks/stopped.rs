//! A subscription whose process is stopped while its publisher publishes and ends.

use crate::namespaces::{Lab, Program};
use crate::zenoh_networks::host::{Host, SOON, client_of};

const EVERY_QOS: [&str; 4] = [
    "--qos-reliability reliable --qos-history keep_last --qos-depth 50",
    "--qos-reliability best_effort --qos-history keep_last --qos-depth 50",
    "--qos-reliability reliable --qos-history keep_all --qos-durability transient_local",
    "--qos-reliability best_effort --qos-history keep_all --qos-durability transient_local",
];

/// The subscription receives all that its publisher sent before it ended, by itself or by
/// SIGKILL.
#[track_caller]
fn three_of_three(sender: &Host, receiver: &Host) {
    for qos in EVERY_QOS {
        for is_killed in [false, true] {
            let mut echo = receiver.echo("/t", qos);
            let (times, stay) = if is_killed { (4, 60) } else { (3, 0) };
            let words = format!(
                "topic pub -t {times} -r 20 -w 1 --keep-alive {stay}.3 {qos} /t std_msgs/msg/Int64"
            );
            let mut command = sender.pteros(&words);
            command.arg("{data: 7}");
            let mut publisher = Program::start(command);
            publisher.wait_for_line(SOON, |line| line.starts_with("publishing #1"));
            echo.signal("STOP");
            if is_killed {
                // So the third one has left.
                publisher.wait_for_line(SOON, |line| line.starts_with("publishing #4"));
                publisher.signal("KILL");
            }
            publisher.wait_for_end(SOON);
            echo.signal("CONT");
            let mut left = 3;
            echo.wait_for_line(SOON, |line| {
                left -= usize::from(line == "7");
                left == 0
            });
        }
    }
}

#[test]
fn a_stopped_subscription_gets_through_a_router_what_its_ended_publisher_sent() {
    let Some(lab) = Lab::new() else { return };
    let a = Host::on_zenoh(&lab, "");
    let b = Host::on_zenoh(&lab, &client_of("10.1.0.1"));
    lab.attach(&a.namespace, 'a', 1, 1);
    lab.attach(&b.namespace, 'b', 1, 2);
    let _router = a.router("");
    three_of_three(&a, &b);
    three_of_three(&b, &a);
}

#[test]
fn a_stopped_subscription_gets_of_a_peer_what_its_ended_publisher_sent() {
    let Some(lab) = Lab::new() else { return };
    let a = Host::on_zenoh(&lab, "connect/endpoints=[\"tcp/10.1.0.2:7450\"]");
    let b = Host::on_zenoh(&lab, "listen/endpoints=[\"tcp/10.1.0.2:7450\"]");
    lab.attach(&a.namespace, 'a', 1, 1);
    lab.attach(&b.namespace, 'b', 1, 2);
    three_of_three(&a, &b);
}
