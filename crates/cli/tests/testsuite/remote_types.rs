//! Types without a local definition, requested from the nodes that use them.
#![allow(clippy::disallowed_methods, reason = "the node is a thread")]

use std::time::Duration;

use crate::spin_thread::SpinThread;
use crate::support::{Domain, assert_contains};
use pteros::PublisherOptions;
use pteros::ServiceOptions;
use pteros::action::{ActionServerOptions, ServerGoalHandle};
use pteros::msg::dynamic::DynamicAction;
use pteros::msg::dynamic::DynamicService;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::schema::InterfaceKind;
use pteros::prelude::*;

/// A node with custom types, and the first node of its context, until dropped.
fn own_node(domain: &Domain) -> [SpinThread; 2] {
    let mut library = pteros::interfaces::library().clone();
    for (kind, name, text) in [
        // 8-bit integers are not announced in the XTypes format.
        (InterfaceKind::Message, "Small", "uint8[3] bytes\n"),
        (
            InterfaceKind::Service,
            "Half",
            "uint8 number\n---\nuint8 half\n",
        ),
        (
            InterfaceKind::Action,
            "Count",
            "uint8 to\n---\nuint8 last\n---\nuint8 at\n",
        ),
    ] {
        library.insert_text("own", kind, name, text, "own");
    }
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    // The first node of the context answers for all.
    let first = context.create_node("first").unwrap();
    let node = context.create_node("own").unwrap();
    let small = DynamicType::new(&library.describe("own/msg/Small").unwrap()).unwrap();
    let publisher = node
        .create_publisher::<DynamicMessage>(PublisherOptions::of_type(&small, "small"))
        .unwrap();
    let message = DynamicMessage::from_yaml(&small, "{bytes: [1, 2, 3]}").unwrap();
    let timer = node
        .create_timer(Duration::from_millis(50), move || {
            let _ = publisher.publish(&message);
        })
        .unwrap();
    let half = DynamicService::new(&library, "own/srv/Half").unwrap();
    let response = half.response().clone();
    let service = node
        .create_service::<DynamicService>(ServiceOptions::of_type(&half, "half"), move |_| {
            DynamicMessage::from_yaml(&response, "{half: 21}").unwrap()
        })
        .unwrap();
    let count = DynamicAction::new(&library, "own/action/Count").unwrap();
    let types = count.clone();
    let work = move |goal: ServerGoalHandle<DynamicAction>| {
        let of = |ty, yaml| DynamicMessage::from_yaml(ty, yaml).unwrap();
        goal.publish_feedback(of(types.feedback(), "{at: 6}"));
        goal.succeed(of(types.result(), "{last: 7}")).unwrap();
    };
    let server = node
        .create_action_server::<DynamicAction>(ActionServerOptions::of_type(&count, "count"), work)
        .unwrap();
    [
        SpinThread::of_node(&first, ()),
        SpinThread::of_node(&node, (timer, service, server)),
    ]
}

#[test]
fn messages_services_and_actions_of_types_without_local_definition_work() {
    let domain = Domain::new();
    let _own = own_node(&domain);
    let ok = |answer: &crate::support::Answer| answer.code == Some(0);
    let echo = domain.run_until("topic echo /small --once --timeout 20 --json", ok);
    assert_eq!(echo.json()["bytes"], serde_json::json!([1, 2, 3]));
    // A publisher gets the type from the topic's endpoints too.
    for name in ["own/msg/Small", "own/Small"] {
        let words = format!("topic pub --once --json -w 0 /small {name}");
        let sent = domain.run_with(&words, "bytes: [4, 5, 6]").json();
        assert_eq!(sent["message"]["bytes"], serde_json::json!([4, 5, 6]));
    }
    let unknown = domain
        .run("topic pub --once -w 0 /small own/msg/Smal")
        .failed(1);
    assert_contains(&unknown, "unknown type 'own/msg/Smal'");
    let unknown = domain.run("interface show own/msg/Small").failed(1);
    assert_contains(&unknown, "pteros interface show own/msg/Small --from NODE");
    let call = domain.run_until("service call --json --timeout 20 /half own/srv/Half", ok);
    assert_eq!(call.json()["response"]["half"], 21);
    let goal = "action send_goal --feedback --timeout 20 /count own/action/Count";
    let mut answer = domain.run_with(goal, "{to: 7}");
    for _ in 0..10 {
        if ok(&answer) {
            break;
        }
        answer = domain.run_with(goal, "{to: 7}");
    }
    let text = answer.ok();
    assert!(text.contains("Feedback:\n    at: 6"), "{text}");
    assert!(
        text.contains("last: 7") && text.contains("SUCCEEDED"),
        "{text}"
    );
}

#[test]
fn a_type_is_shown_with_the_definition_of_a_node() {
    let domain = Domain::new();
    let _own = own_node(&domain);
    let ok = |answer: &crate::support::Answer| answer.code == Some(0);
    let text = domain
        .run_until("interface show --type-hash --from /own own/Small", ok)
        .ok();
    assert!(
        text.starts_with("uint8[3] bytes\n# type hash: RIHS01_"),
        "{text}"
    );
    let part = domain
        .run("interface show --from own own/srv/Half_Request")
        .ok();
    assert!(part.contains("number: 0"), "{part}");
    let error = domain.run("interface show --from own own/Large").failed(1);
    assert_contains(&error, "does not use 'own/Large'; it uses");
    let error = domain.run("interface show --from owl own/Small").failed(1);
    assert!(error.contains("unknown node '/owl'"), "{error}");
}

#[test]
fn a_type_without_any_definition_is_an_error_with_a_hint() {
    let domain = Domain::new();
    let error = domain
        .run("service call --timeout 1 /half own/srv/Half")
        .failed(1);
    assert_contains(&error, "no endpoint of service '/half' describes it");
    assert!(error.contains("unknown type 'own/srv/Half'"), "{error}");
}
