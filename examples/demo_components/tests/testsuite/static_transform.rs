//! The static transform component, loaded by a container.

use crate::support::{DEMO_PACKAGE, Running, TIMEOUT, request};
use pteros::interfaces::composition_interfaces::srv::LoadNodeRequest;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::parameter::ParameterValue;
use pteros::tf::{LATEST, TransformListener};

fn parameter(name: &str, value: impl Into<ParameterValue>) -> Parameter {
    Parameter {
        name: name.into(),
        value: value.into().into_message(),
    }
}

fn with(parameters: Vec<Parameter>) -> LoadNodeRequest {
    LoadNodeRequest {
        parameters,
        ..request(DEMO_PACKAGE, "StaticTransformPublisher")
    }
}

#[test]
fn a_loaded_component_publishes_a_static_transform_until_it_is_unloaded() {
    let container = Running::plain();
    let viewer = container.context.create_node("viewer").unwrap();
    let frames = TransformListener::new(&viewer).unwrap();
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let loaded = container.call_load(&with(vec![
        parameter("frame_id", "base_link"),
        parameter("child_frame_id", "laser"),
        parameter("translation.x", 0.25),
        parameter("translation.z", -1.5),
        parameter("rotation.z", half),
        parameter("rotation.w", half),
    ]));
    assert!(loaded.success, "{}", loaded.error_message);
    let found = frames.lookup_transform_within("base_link", "laser", LATEST, TIMEOUT);
    let found = found.unwrap().transform;
    let (moved, turned) = (found.translation, found.rotation);
    assert_eq!((moved.x, moved.y, moved.z), (0.25, 0.0, -1.5));
    assert!((turned.z - half).abs() < 1e-9 && (turned.w - half).abs() < 1e-9);
    // A late joiner receives it too.
    let late = container.context.create_node("late").unwrap();
    let late = TransformListener::new(&late).unwrap();
    late.lookup_transform_within("base_link", "laser", LATEST, TIMEOUT)
        .unwrap();
    let unloaded = container.unload(loaded.unique_id);
    assert!(unloaded.success, "{}", unloaded.error_message);
}

#[test]
fn an_invalid_transform_is_refused_with_its_reason() {
    let container = Running::plain();
    let frames = || vec![parameter("frame_id", "a"), parameter("child_frame_id", "b")];
    let and = |more: Parameter| {
        let mut all = frames();
        all.push(more);
        all
    };
    for (parameters, reason) in [
        (vec![parameter("child_frame_id", "b")], "frame_id"),
        (
            vec![parameter("frame_id", "a"), parameter("child_frame_id", "a")],
            "\"a\"",
        ),
        (and(parameter("rotation.w", 0.5)), "0.5"),
        (and(parameter("translation.x", "far")), "translation.x"),
    ] {
        let refused = container.call_load(&with(parameters));
        assert!(!refused.success);
        let words = &refused.error_message;
        assert!(words.contains(reason), "no {reason:?} in: {words}");
    }
}
