//! `pteros bridge` as a process between hosts on RTPS and hosts on Zenoh.

use crate::namespaces::{Lab, Program};
use crate::zenoh_networks::host::{Host, SOON, client_of, exchange, go_on};

/// A host on RTPS, one with the bridge, and one on Zenoh with the router.
fn three_hosts(lab: &Lab) -> ([Host; 3], Program) {
    let stock = Host::on_rtps(lab);
    let between = Host::on_zenoh(lab, &client_of("10.2.0.1"));
    let cloud = Host::on_zenoh(lab, "");
    lab.attach(&stock.namespace, 's', 1, 1);
    lab.attach(&between.namespace, 'b', 1, 2);
    lab.attach(&between.namespace, 'b', 2, 2);
    lab.attach(&cloud.namespace, 'c', 2, 1);
    let router = cloud.router("");
    ([stock, between, cloud], router)
}

#[track_caller]
fn start_bridge(host: &Host) -> Program {
    let mut command = host.pteros("bridge");
    // It has both.
    command.env_remove("RMW_IMPLEMENTATION");
    let mut bridge = Program::start(command);
    bridge.wait_for_line(SOON, |line| line.starts_with("Bridge "));
    bridge
}

#[test]
fn a_bridge_carries_topics_services_and_actions_both_ways() {
    let Some(lab) = Lab::new() else { return };
    let ([stock, between, cloud], _router) = three_hosts(&lab);
    let _bridge = start_bridge(&between);
    exchange(&stock, &cloud);
}

#[test]
fn flows_come_back_when_a_killed_bridge_is_started_again() {
    let Some(lab) = Lab::new() else { return };
    let ([stock, between, cloud], _router) = three_hosts(&lab);
    let _running = [
        stock.start_part("volatile /from_a"),
        cloud.start_part("volatile /from_b"),
        stock.start_part("server /a"),
        cloud.start_part("server /b"),
    ];
    let mut echoes = [
        stock.echo("/from_b", "--qos-reliability reliable"),
        cloud.echo("/from_a", "--qos-reliability reliable"),
    ];
    let mut bridge = start_bridge(&between);
    let mut heard = [Vec::new(), Vec::new()];
    for kill in 0..3 {
        if kill > 0 {
            // SIGKILL: it says goodbye to nobody.
            drop(bridge);
            bridge = start_bridge(&between);
        }
        for (echo, heard) in echoes.iter_mut().zip(&mut heard) {
            let mut left = 30;
            echo.wait_for_line(SOON, |line| {
                if let Ok(number) = line.parse::<i64>() {
                    heard.push(number);
                    left -= 1;
                }
                left == 0
            });
        }
        stock.calls("/b/add");
        cloud.calls("/a/add");
    }
    for heard in heard {
        let is_once = heard.is_sorted_by(|one, next| one < next);
        assert!(is_once, "each at most once and in order: {heard:?}");
    }
    for echo in &mut echoes {
        go_on(echo);
    }
}
