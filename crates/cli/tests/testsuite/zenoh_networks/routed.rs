//! Networks that only routers join: no multicast and no packet passes between them.

use crate::namespaces::Lab;
use crate::zenoh_networks::host::{Host, client_of, connected_to, exchange, go_on};
use crate::zenoh_networks::parts::connects;

#[test]
fn a_router_joins_two_networks() {
    let Some(lab) = Lab::new() else { return };
    let middle = Host::on_zenoh(&lab, "");
    let a = Host::on_zenoh(&lab, &client_of("10.1.0.9"));
    let b = Host::on_zenoh(&lab, &client_of("10.2.0.9"));
    lab.attach(&middle.namespace, 'm', 1, 9);
    lab.attach(&middle.namespace, 'm', 2, 9);
    lab.attach(&a.namespace, 'a', 1, 1);
    lab.attach(&b.namespace, 'b', 2, 1);
    let _router = middle.router("");
    exchange(&a, &b);
}

#[test]
fn the_ends_of_a_chain_of_three_routers_communicate() {
    let Some(lab) = Lab::new() else { return };
    let [a, b, c] = [(); 3].map(|()| Host::on_zenoh(&lab, ""));
    lab.attach(&a.namespace, 'a', 1, 1);
    lab.attach(&b.namespace, 'b', 1, 2);
    lab.attach(&b.namespace, 'b', 2, 2);
    lab.attach(&c.namespace, 'c', 2, 3);
    let _routers = [
        b.router(""),
        a.router(&connected_to("10.1.0.2")),
        c.router(&connected_to("10.2.0.2")),
    ];
    assert!(connects(&a.namespace, "10.1.0.2:7447"));
    assert!(!connects(&a.namespace, "10.2.0.3:7447"));
    exchange(&a, &c);
}

#[test]
fn an_echo_that_starts_before_its_publisher_hears_it() {
    let Some(lab) = Lab::new() else { return };
    let [a, b] = [(); 2].map(|()| Host::on_zenoh(&lab, ""));
    lab.attach(&a.namespace, 'a', 1, 1);
    lab.attach(&b.namespace, 'b', 1, 2);
    let _routers = [a.router(""), b.router(&connected_to("10.1.0.1"))];
    let mut echo = b.echo("/late", "--qos-reliability reliable");
    a.wait_for_info("/late", "Subscription count: 1");
    let _publisher = a.start_part("volatile /late");
    go_on(&mut echo);
}
