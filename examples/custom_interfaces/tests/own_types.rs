//! Types from user definitions behave as the standard ones do.

use custom_interfaces::custom_interfaces::action::{Reach, ReachGoal};
use custom_interfaces::custom_interfaces::msg::{Arm, Gripper, Result, Result2, Torques};
use custom_interfaces::custom_interfaces::srv::{Park, ParkRequest};
use custom_interfaces::{TYPES, library};
use pteros::interfaces::builtin_interfaces::msg::Duration;
use pteros::msg::{Action, Message, Representation, Service, WString, from_payload, to_payload};
use pteros::prelude::*;
use pteros::subscription::InPlaceMessage;

#[test]
fn definitions_give_names_constants_and_defaults() {
    assert_eq!(Arm::TYPE_NAME, "custom_interfaces/msg/Arm");
    assert_eq!((Arm::MODE_MOVING, Arm::DEFAULT_FRAME), (1, "base_link"));
    let arm = Arm::default();
    assert_eq!(
        arm.gripper,
        Gripper {
            closed: true,
            width: 0.08
        }
    );
    assert_eq!(arm.r#type, 1);
    assert_eq!(arm.labels, ["left", "right"]);
    assert_eq!(arm.forces, [0.0; 40]);
    assert_eq!(arm.note, WString::from("grüß dich"));
}

#[test]
fn custom_messages_are_encoded_as_cdr() {
    let mut arm = Arm::default();
    arm.header.frame_id = Arm::DEFAULT_FRAME.into();
    arm.joints = vec![0.5, -0.5];
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let payload = to_payload(&arm, representation);
        assert_eq!(from_payload::<Arm>(&payload).unwrap(), arm);
    }
}

#[test]
fn values_beyond_their_bounds_are_reported_with_their_field() {
    let mut arm = Arm::default();
    assert_eq!(arm.check_bounds(), Ok(()));
    arm.labels[1] = "a label that is too long".into();
    let error = arm.check_bounds().unwrap_err().to_string();
    assert!(error.contains("labels[1]"), "{error}");
    arm.labels.clear();
    arm.joints = vec![0.0; 8];
    let error = arm.check_bounds().unwrap_err().to_string();
    assert!(error.contains("joints") && error.contains('7'), "{error}");
}

#[test]
fn keywords_of_rust_can_be_field_names() {
    let message = Result {
        self_: 1,
        r#match: "yes".into(),
        r#async: Result2 { crate_: vec![true] },
    };
    let payload = to_payload(&message, Representation::Xcdr1);
    assert!(from_payload::<Result>(&payload).is_ok_and(|read| read == message));
}

#[test]
fn services_and_actions_use_custom_and_standard_types() {
    let request = ParkRequest {
        timeout: Duration { sec: 3, nanosec: 0 },
    };
    let received: <Park as Service>::Request =
        from_payload(&to_payload(&request, Representation::Xcdr1)).unwrap();
    assert_eq!(request, received);
    let goal = <Reach as Action>::Goal::default();
    assert_eq!(goal, ReachGoal::default());
    assert_eq!(Reach::TYPE_NAME, "custom_interfaces/action/Reach");
}

#[test]
fn the_library_contains_custom_and_standard_types() {
    assert_eq!(TYPES.len(), 5 + 4 + 13);
    for (name, hash) in TYPES {
        assert_eq!(library().type_hash(name).unwrap(), *hash, "{name}");
    }
    assert!(library().text("std_msgs/String").is_some());
    let described = Arm::type_description();
    assert_eq!(described.type_description.fields.len(), 7);
    assert_eq!(described.referenced.len(), 3);
}

#[test]
fn custom_messages_are_published_as_standard_ones_are() {
    let context = Context::with_options(ContextOptions::local(217)).unwrap();
    let node = context.create_node("arm").unwrap();
    let publisher = node.create_publisher::<Arm>("arm".keep_last(10)).unwrap();
    let subscription = node
        .create_polled_subscription::<Arm>("arm".keep_last(10))
        .unwrap();
    publisher.publish(&Arm::default()).unwrap();
    let arm = subscription.take_timeout(std::time::Duration::from_secs(5));
    assert_eq!(*arm.expect("an arm"), Arm::default());
}

/// The generated code has no `unsafe`: this package forbids it.
#[test]
fn custom_messages_are_loaned_and_viewed_as_standard_ones_are() {
    let context = Context::with_options(ContextOptions::local(218)).unwrap();
    let node = context.create_node("arm").unwrap();
    let views = node
        .create_polled_subscription::<InPlaceMessage<Torques>>("torques".keep_last(10))
        .unwrap();
    let publisher = node
        .create_publisher::<Torques>("torques".keep_last(10))
        .unwrap();
    let mut torques = publisher.borrow_loaned_message().unwrap();
    torques.joints[5] = 1.5;
    torques.history[999] = 7;
    publisher.publish_loaned(torques).unwrap();
    let sample = views.take().unwrap();
    let view = sample.view().unwrap();
    assert!(view.is_borrowed());
    assert_eq!((view.joints[5], view.history[999]), (1.5, 7));

    let arms = node
        .create_polled_subscription::<InPlaceMessage<Arm>>("arm".keep_last(10))
        .unwrap();
    let publisher = node.create_publisher::<Arm>("arm".keep_last(10)).unwrap();
    let loan =
        |count| publisher.borrow_loaned_sequence(&mut Arm::default(), |arm| &mut arm.joints, count);
    let mut joints = loan(7).unwrap();
    joints.fill(0.25);
    publisher.publish_loaned(joints).unwrap();
    let sample = arms.take().unwrap();
    let view = sample.view().unwrap();
    assert_eq!(view.joints[..], [0.25; 7]);
    assert!(view.labels[1] == "right" && view.header.frame_id.is_empty());
    let error = loan(8).unwrap_err().to_string();
    assert!(error.contains('7') && error.contains('8'), "{error}");
}

/// ROS 2 sends the file of a type unchanged, with comments.
#[test]
fn nodes_send_the_definition_files_of_custom_types() {
    use pteros::interfaces::type_description_interfaces::srv;
    let context = Context::with_options(ContextOptions::local(73)).unwrap();
    let options = NodeOptions::new("arm").start_type_description_service(true);
    let node = context.create_node(options).unwrap();
    let _arms = node.create_publisher::<Arm>("arms".keep_last(10)).unwrap();
    let _park = node
        .create_service::<Park>("park", |_| Default::default())
        .unwrap();
    let client = node
        .create_client::<srv::GetTypeDescription>("/arm/get_type_description")
        .unwrap();
    let ask = |hash: String| {
        let request = srv::GetTypeDescriptionRequest {
            type_hash: hash,
            include_type_sources: true,
            ..Default::default()
        };
        let mut call = client.call_async(&request).unwrap();
        let mut sources = None;
        let timeout = std::time::Duration::from_secs(20);
        node.spin_until(
            || {
                sources = call.take().map(std::result::Result::unwrap);
                sources.is_some()
            },
            timeout,
        );
        sources.unwrap().into_inner().type_sources
    };
    let file = |name: &str| {
        let path = format!("{}/interfaces/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let sources = ask(Arm::TYPE_HASH.to_string());
    let text = |name: &str| {
        let found = sources
            .iter()
            .find(|source| source.type_name == name)
            .unwrap();
        found.raw_file_contents.clone()
    };
    assert_eq!(text("custom_interfaces/msg/Arm"), file("msg/Arm.msg"));
    assert!(text("custom_interfaces/msg/Arm").contains('#'), "comments");
    assert_eq!(
        text("custom_interfaces/msg/Gripper"),
        file("msg/Gripper.msg")
    );
    assert!(text("std_msgs/msg/Header").contains("frame_id"));
    let sources = ask(Park::TYPE_HASH.to_string());
    let park = sources.iter().find(|one| one.type_name == Park::TYPE_NAME);
    let park = park.unwrap();
    assert_eq!(park.encoding, "srv");
    assert_eq!(park.raw_file_contents, file("srv/Park.srv"));
}
