//! `pteros service`: a server in this process, the command in others.

#![allow(clippy::disallowed_methods, reason = "the server is a thread")]

use crate::spin_thread::SpinThread;
use crate::support::{Domain, assert_contains};
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use pteros::prelude::*;
use pteros::service::ServiceIntrospectionState;

/// A service server for sums, until dropped.
fn adder(domain: &Domain) -> SpinThread {
    let context = Context::with_options(ContextOptions::local(domain.id()));
    let node = context.unwrap().create_node("adder").unwrap();
    let service = node
        .create_service::<AddTwoInts>("add_two_ints", |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        })
        .unwrap();
    service
        .configure_introspection(QosProfile::default(), ServiceIntrospectionState::Contents)
        .unwrap();
    SpinThread::of_node(&node, service)
}

#[test]
fn services_are_listed_found_and_described() {
    let domain = Domain::new();
    let _adder = adder(&domain);
    let list = domain.run_until("service list -t", |a| !a.out.is_empty());
    let list = list.ok();
    let own = "/add_two_ints [example_interfaces/srv/AddTwoInts]\n";
    assert!(list.starts_with(own), "{list}");
    let parameters = "\n/adder/get_parameters [rcl_interfaces/srv/GetParameters]\n";
    assert!(list.contains(parameters), "{list}");
    assert_eq!(domain.run("service list -c").ok(), "8\n");
    let ty = domain.run("service type /add_two_ints").ok();
    assert_eq!(ty, "example_interfaces/srv/AddTwoInts\n");
    let info = domain.run("service info /add_two_ints").ok();
    assert_eq!(
        info,
        "Type: example_interfaces/srv/AddTwoInts\nClients count: 0\nServices count: 1\n"
    );
    let verbose = domain.run("service info -v /add_two_ints").ok();
    for part in [
        "Type: example_interfaces/srv/AddTwoInts\nClients count: 0\nServices count: 1\nNode name: adder\nNode namespace: /\nService type: example_interfaces/srv/AddTwoInts\n",
        "Service type hash: RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a\n",
        "Endpoint type: SERVER\nEndpoint count: 2\nGIDs:\n - Request Reader : ",
        "\n - Response Writer : ",
        "QoS profiles:\n - Request Reader :\n      Reliability: RELIABLE\n",
    ] {
        assert_contains(&verbose, part);
    }
    let json = domain.run("service info /add_two_ints --json").json();
    assert_eq!(json["servers"][0]["node_name"], "adder");
    assert_eq!(json["clients"], serde_json::json!([]));
    let own = ["example_interfaces/srv/AddTwoInts"];
    for line in [
        "/add_two_ints ",
        "add_two_ints ",
        "-r 2 /add_two_ints example",
    ] {
        let found = domain.candidates(&format!("pteros service call {line}"));
        assert_eq!(found, own, "{line}");
    }
    // Another type that is being written, and a service that is not there.
    for line in ["/add_two_ints std_srvs", "/other std_srvs"] {
        let found = domain.candidates(&format!("pteros service call {line}"));
        assert!(found.len() > 2, "{line}: {found:?}");
    }
    let found = domain
        .run("service find example_interfaces/AddTwoInts")
        .ok();
    assert_eq!(found, "/add_two_ints\n");
    let json = domain.run("service list --json").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["types"][0], "example_interfaces/srv/AddTwoInts");
}

#[test]
fn a_service_is_called_as_in_ros2() {
    let domain = Domain::new();
    let _adder = adder(&domain);
    let call = "service call /add_two_ints example_interfaces/srv/AddTwoInts";
    assert_eq!(
        domain
            .run_with(call, "{a: 40, b: 2}")
            .ok()
            .replace("waiting for service to become available...\n", ""),
        "requester: making request: example_interfaces.srv.AddTwoInts_Request(a=40, b=2)\n\n\
         response:\nexample_interfaces.srv.AddTwoInts_Response(sum=42)\n\n"
    );
    let json = domain.run_with(&format!("{call} --json"), "{a: -1}").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["response"]["sum"], -1);
}

#[test]
fn a_call_without_a_response_reports_the_reason() {
    let domain = Domain::new();
    let none = domain.run("service call /nobody std_srvs/srv/Trigger --timeout 0.1");
    assert_eq!(none.code, Some(1));
    assert_contains(
        &none.err,
        "no server of type std_srvs/srv/Trigger is available",
    );
    let _adder = adder(&domain);
    let other = domain
        .run("service call /add_two_ints std_srvs/srv/Trigger")
        .failed(1);
    assert_contains(
        &other,
        "service '/add_two_ints' has type 'example_interfaces/srv/AddTwoInts', not \
         'std_srvs/srv/Trigger'; use: pteros service call /add_two_ints example_interfaces/srv/AddTwoInts",
    );
    let misspelt = domain
        .run("service call /add_two_int example_interfaces/srv/AddTwoInts")
        .failed(1);
    assert_contains(&misspelt, "did you mean /add_two_ints?");
    let type_misspelt = domain
        .run("service call /add_two_ints example_interfaces/srv/AddTwoInt")
        .failed(1);
    assert_contains(
        &type_misspelt,
        "use: pteros service call /add_two_ints example_interfaces/srv/AddTwoInts",
    );
    let no_type = domain.run("service call /add_two_ints {a:1}").failed(1);
    assert_contains(
        &no_type,
        "has type 'example_interfaces/srv/AddTwoInts', not '{a:1}'",
    );
    let no_service = domain.run("service call /nobody std_msgs/msg/String");
    assert_contains(&no_service.err, "which is not a service");
    let unknown = domain.run("service type /nobody");
    assert_contains(&unknown.err, "unknown service '/nobody'");
    let field = domain.run_with(
        "service call /x example_interfaces/srv/AddTwoInts",
        "{c: 1}",
    );
    assert!(field.err.contains('c'), "{}", field.err);
    assert_eq!(field.code, Some(1));
}

#[test]
fn requests_and_responses_are_printed_from_introspection_events() {
    let domain = Domain::new();
    let _adder = adder(&domain);
    let calls = "service call --rate 20 /add_two_ints example_interfaces/srv/AddTwoInts";
    let _calls = domain.start_with(calls, "{a: 20, b: 3}");
    for ty in ["", " example_interfaces/srv/AddTwoInts"] {
        let words = format!("service echo --once --json --timeout 20 /add_two_ints{ty}");
        let event = domain.run(&words).json();
        let kind = event["info"]["event_type"].as_u64().unwrap();
        match kind {
            1 => assert_eq!(event["request"][0]["a"], 20, "{event:#}"),
            _ => assert_eq!(event["response"][0]["sum"], 23, "{event:#}"),
        }
    }
}
