//! Set-up errors: what a context cannot have is named, with value and hint.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use pteros::PublisherOptions;
use pteros::interfaces::std_msgs::msg::{Int8, String as Text};
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::platform::SystemPlatform;
use pteros::prelude::*;
use pteros::{error::PublishError, limits::Limits};
use pteros_runtime::{Core, CoreOptions};

const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn a_participant_without_a_free_domain_port_uses_another_and_is_discovered() {
    const DOMAIN: u16 = 210;
    let port = |index: u16| 7410 + 250 * DOMAIN + 2 * index;
    let taken: Vec<UdpSocket> = (0..120)
        .filter_map(|index| UdpSocket::bind(("127.0.0.1", port(index))).ok())
        .collect();
    let open = || Context::with_options(ContextOptions::local(DOMAIN.into())).expect("a port");
    let (one, other) = (open(), open());
    let heard = one.create_node("one").unwrap();
    let heard = heard
        .create_polled_subscription::<Text>("topic".keep_last(10))
        .unwrap();
    let said = other.create_node("other").unwrap();
    let said = said
        .create_publisher::<Text>("topic".keep_last(10))
        .unwrap();
    assert!(said.wait_for_matched(1, TIMEOUT));
    assert!(heard.wait_for_matched(1, TIMEOUT));
    said.publish(&Text::default()).unwrap();
    assert!(heard.take_timeout(TIMEOUT).is_some());
    drop(taken);
}

#[test]
fn an_exclusive_discovery_port_is_an_error_with_a_hint() {
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
fn an_invalid_limit_is_named_and_a_valid_one_holds() {
    let open = |limits| {
        Context::with_options(ContextOptions {
            limits,
            ..ContextOptions::local(213)
        })
    };
    let said = open(Limits {
        filter_depth: 1_000,
        ..Limits::default()
    });
    let said = said.expect_err("too deep").to_string();
    for word in ["filter_depth", "1000", "128"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let context = open(Limits {
        sample_bytes: 65_536,
        ..Limits::default()
    });
    let context = context.expect("it can be kept");
    let node = context.create_node("small").unwrap();
    let latched = QosProfile::default().transient_local();
    let publisher = node.create_publisher::<Text>("text".qos(latched)).unwrap();
    let text = |bytes| Text {
        data: "x".repeat(bytes),
    };
    publisher.publish(&text(65_000)).expect("it fits");
    let refused = publisher.publish(&text(70_000)).unwrap_err();
    assert!(
        matches!(refused, PublishError::TooLarge { .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("65536"), "{refused}");
}

#[test]
fn a_missing_network_interface_is_named_with_the_existing_ones() {
    let options = CoreOptions {
        domain_id: 211,
        local_only: true,
        interfaces: vec!["wlan7".into()],
        ..CoreOptions::default()
    };
    let error = Core::open(Arc::new(SystemPlatform::new()), options)
        .err()
        .expect("there is no such interface");
    let said = error.to_string();
    for word in ["wlan7", "lo", "PTEROS_INTERFACES"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn an_invalid_domain_and_a_short_lease_are_named() {
    let said = |options| match Context::with_options(options) {
        Err(error) => error.to_string(),
        Ok(context) => panic!("{context:?}"),
    };
    let beyond = said(ContextOptions::local(233));
    assert!(beyond.contains("233") && beyond.contains("0 to 232"));
    let mut hasty = ContextOptions::local(213);
    hasty.participant_lease = Some(Duration::from_millis(3));
    let hasty = said(hasty);
    assert!(hasty.contains("3ms") && hasty.contains("100ms"), "{hasty}");
}

#[test]
fn a_dynamic_message_of_another_type_is_named_with_both_types() {
    let context = Context::with_options(ContextOptions::local(214)).expect("a context");
    let node = context.create_node("mixed").expect("a node");
    let text = DynamicType::new(Text::type_description()).expect("a type");
    let number = DynamicType::new(Int8::type_description()).expect("a type");
    let publisher = node
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(&text, "t".keep_last(1)))
        .expect("it is");
    let error = publisher
        .publish(&DynamicMessage::new(&number))
        .expect_err("another type");
    for word in ["/t", "std_msgs/msg/Int8", "std_msgs/msg/String"] {
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
    publisher
        .publish(&DynamicMessage::new(&text))
        .expect("its own");
}
