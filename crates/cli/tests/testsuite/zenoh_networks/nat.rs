//! A robot behind NAT: connections are opened from its side only.

use crate::namespaces::Lab;
use crate::zenoh_networks::host::{Host, connected_to, exchange};
use crate::zenoh_networks::parts::{connects, relay};

#[test]
fn a_robot_behind_nat_and_the_cloud_communicate_both_ways() {
    let Some(lab) = Lab::new() else { return };
    let [robot, gateway, cloud] = [(); 3].map(|()| Host::on_zenoh(&lab, ""));
    lab.attach(&robot.namespace, 'r', 1, 2);
    lab.attach(&gateway.namespace, 'g', 1, 1);
    lab.attach(&cloud.namespace, 'c', 2, 1);
    let _relay = lab.attach_by(
        relay("0 0 1 0 --translate 10.2.0.9"),
        (&gateway.namespace, 'g'),
        2,
        9,
    );
    let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    let forwards = gateway.namespace.command(&["sh", "-c", forward]).status();
    assert!(forwards.expect("sh").success());
    robot.namespace.ip("route add default via 10.1.0.1");
    // The cloud would know a way to the robot.
    cloud.namespace.ip("route add 10.1.0.0/24 via 10.2.0.9");

    let _routers = [cloud.router(""), robot.router(&connected_to("10.2.0.1"))];
    assert!(connects(&robot.namespace, "10.2.0.1:7447"));
    assert!(!connects(&cloud.namespace, "10.1.0.2:7447"));
    exchange(&robot, &cloud);
}
