//! What a context cannot have, it names, with the value and the way out.

use std::net::UdpSocket;
use std::sync::Arc;

use pteros::env::SystemEnv;
use pteros::prelude::*;
use pteros::{ContextError, OpenError};
use pteros_rmw::{Core, CoreOptions};

#[test]
fn a_domain_without_free_ports_is_named_with_the_ports_tried() {
    const DOMAIN: u16 = 210;
    let port = |index: u16| 7410 + 250 * DOMAIN + 2 * index;
    let taken: Vec<UdpSocket> = (0..120)
        .filter_map(|index| UdpSocket::bind(("127.0.0.1", port(index))).ok())
        .collect();
    let open = || Context::with_options(ContextOptions::local(DOMAIN.into()));
    let error = open().expect_err("every port is taken");
    assert!(
        matches!(
            error,
            ContextError::Open(OpenError::NoFreePort { domain_id: 210, .. })
        ),
        "{error:?}"
    );
    let said = error.to_string();
    for word in ["210", "59910", "60148", "ROS_DOMAIN_ID"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    drop(taken);
    open().expect("ports are free again");
}

#[test]
fn a_discovery_port_that_is_not_shared_is_named_with_the_way_out() {
    let taken = UdpSocket::bind(("239.255.0.1", 7400 + 250 * 212)).expect("nobody else");
    let open = || Context::with_options(ContextOptions::local(212));
    let said = match open() {
        Err(error) => error.to_string(),
        // Loopback has no multicast here, so no discovery port is needed.
        Ok(_) => return,
    };
    for word in ["212", "60400", "ss -ulpn", "ROS_DOMAIN_ID"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    drop(taken);
    open().expect("the port is free again");
}

#[test]
fn a_missing_interface_is_named_with_those_there_are() {
    let options = CoreOptions {
        domain_id: 211,
        local_only: true,
        interfaces: vec!["wlan7".into()],
        ..CoreOptions::default()
    };
    let error = Core::open(Arc::new(SystemEnv::new()), options)
        .err()
        .expect("there is no such interface");
    let said = error.to_string();
    for word in ["wlan7", "lo", "PTEROS_INTERFACES"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
