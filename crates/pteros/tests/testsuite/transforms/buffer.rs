//! tf buffer: errors that name frame, time and hint, rejected transforms, limits,
//! and frame lists.

use std::f64::consts::FRAC_PI_2;
use std::time::Duration;

use pteros::interfaces::geometry_msgs::msg::{
    PointStamped, PoseStamped, QuaternionStamped, TransformStamped, Vector3Stamped,
};
use pteros::tf::{
    InvalidTransform, Isometry, LATEST, LookupError, TransformBuffer, TransformBufferOptions,
};

use super::{ahead, at, ms};

/// map, odom (10 to 12 s), `base_link` (10 to 11.5 s), laser (static).
fn robot() -> TransformBuffer {
    let buffer = TransformBuffer::default();
    let tell = |transform: &TransformStamped, authority, is_static| {
        buffer
            .set_transform(transform, authority, is_static)
            .unwrap();
    };
    for millis in [10_000, 11_000, 12_000] {
        tell(&at(millis, "map", "odom", ahead(0.0)), "/amcl", false);
    }
    for millis in [10_000, 11_500] {
        tell(
            &at(millis, "odom", "base_link", ahead(1.0)),
            "/odometry",
            false,
        );
    }
    tell(&at(0, "base_link", "laser", ahead(0.2)), "/robot", true);
    buffer
}

fn error(buffer: &TransformBuffer, target: &str, source: &str, millis: i64) -> String {
    buffer
        .lookup_transform(target, source, ms(millis))
        .unwrap_err()
        .to_string()
}

#[test]
fn errors_show_the_chain_and_what_is_missing() {
    let buffer = robot();
    let future = error(&buffer, "map", "laser", 12_000);
    assert_eq!(
        future,
        "no transform from \"laser\" to \"map\" at 12.000000000: \"base_link\" in \"odom\" is known \
         up to 11.500000000, which is 0.500 s earlier. The chain: laser in base_link (static, by \
         /robot), base_link in odom (from 10.000000000 to 11.500000000, by /odometry), odom in map \
         (from 10.000000000 to 12.000000000, by /amcl). Wait for it (lookup_transform_within), or request the \
         latest (LATEST)"
    );
    let past = error(&buffer, "map", "laser", 9_000);
    assert!(
        past.contains("known from 10.000000000 on, which is 1.000 s later"),
        "{past}"
    );
    // Only the edges between the two frames matter: that of the map does not.
    assert!(
        buffer
            .lookup_transform("base_link", "laser", ms(77_000))
            .is_ok()
    );
    assert!(
        buffer
            .lookup_transform("odom", "base_link", ms(11_500))
            .is_ok()
    );
    assert!(error(&buffer, "map", "lasre", 0).contains("no frame \"lasre\"; did you mean laser?"));
    assert!(
        error(&buffer, "zzz", "laser", 0)
            .ends_with("among the 4 known frames; `pteros tf tree` lists them")
    );
    assert_eq!(
        buffer.lookup_transform("", "laser", LATEST),
        Err(LookupError::EmptyFrameId("target"))
    );
    let nothing = error(&TransformBuffer::default(), "a", "b", 0);
    assert!(
        nothing.contains("is any node publishing on /tf"),
        "{nothing}"
    );
    buffer
        .set_transform(&at(0, "arm", "hand", ahead(1.0)), "me", true)
        .unwrap();
    let apart = error(&buffer, "hand", "laser", 11_000);
    assert!(
        apart.contains("not connected. Up from the source: laser in base_link")
            && apart.ends_with("connects \"map\" to the other tree, or \"arm\""),
        "{apart}"
    );
    let stale = error(&buffer, "hand", "laser", 12_000);
    assert!(
        stale.contains("\"base_link\" in \"odom\" is known up to 11.500000000")
            && stale.ends_with("different trees, too: connect them by a transform"),
        "{stale}"
    );
}

#[test]
fn the_latest_common_time_is_the_oldest_of_the_newest() {
    let found = robot().lookup_transform("map", "laser", LATEST).unwrap();
    assert_eq!(found.header.stamp, ms(11_500).into());
    let fixed = robot()
        .lookup_transform("base_link", "laser", LATEST)
        .unwrap();
    assert_eq!(fixed.header.stamp, ms(0).into(), "static at any time");
    // tf1's leading slash is not part of a name.
    let slash = robot().lookup_transform("/map", "/laser", LATEST).unwrap();
    assert_eq!(
        (&*slash.header.frame_id, &*slash.child_frame_id),
        ("map", "laser")
    );
}

/// Sky, earth (50 s), odom (60 s) and below it two branches: left (70 s), right (75 s).
#[test]
fn an_error_names_a_transform_below_the_common_ancestor() {
    let buffer = TransformBuffer::default();
    for (parent, child, newest) in [
        ("sky", "earth", 50_000),
        ("earth", "odom", 60_000),
        ("odom", "left", 70_000),
        ("odom", "right", 75_000),
    ] {
        for millis in [newest - 9_900, newest] {
            let transform = at(millis, parent, child, ahead(1.0));
            buffer.set_transform(&transform, "x", false).unwrap();
        }
    }
    for (target, source, millis, missing) in [
        ("left", "odom", 72_000, "\"left\" in \"odom\""),
        ("odom", "left", 72_000, "\"left\" in \"odom\""),
        ("left", "right", 72_000, "\"left\" in \"odom\""),
        ("right", "left", 72_000, "\"left\" in \"odom\""),
        ("right", "left", 85_000, "\"right\" in \"odom\""),
        ("sky", "left", 65_000, "\"odom\" in \"earth\""),
        ("odom", "sky", 55_000, "\"earth\" in \"sky\""),
        ("left", "right", 44_000, "\"left\" in \"odom\""),
    ] {
        let text = error(&buffer, target, source, millis);
        assert!(text.contains(&format!("{missing} is known")), "{text}");
    }
    // Those above it have no data for the latest time, and are not needed.
    let latest = buffer.lookup_transform("left", "right", LATEST).unwrap();
    assert_eq!(latest.header.stamp, ms(70_000).into());
    assert_eq!(buffer.latest_common_time("right", "odom"), Ok(ms(75_000)));
    assert_eq!(buffer.latest_common_time("sky", "left"), Ok(ms(50_000)));
    assert!(buffer.latest_common_time("sky", "lfet").is_err());
    assert_eq!(
        buffer.frame_names(),
        ["earth", "sky", "odom", "left", "right"]
    );
}

#[test]
fn a_cycle_is_an_error_and_not_an_endless_look_up() {
    let buffer = TransformBuffer::default();
    for (parent, child) in [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")] {
        buffer
            .set_transform(&at(1_000, parent, child, ahead(1.0)), "x", false)
            .unwrap();
    }
    buffer
        .set_transform(&at(1_000, "z", "y", ahead(1.0)), "x", false)
        .unwrap();
    let circle = error(&buffer, "y", "d", 1_000);
    assert!(
        circle.contains("form a cycle, a in c in b in a"),
        "{circle}"
    );
    assert!(
        buffer.lookup_transform("z", "d", LATEST).is_err()
            && buffer.lookup_transform("d", "z", LATEST).is_err()
    );
}

#[test]
fn a_frame_changes_its_parent_with_its_transforms() {
    let buffer = TransformBuffer::default();
    for (millis, parent) in [(1_000, "table"), (2_000, "table"), (3_000, "hand")] {
        buffer
            .set_transform(&at(millis, parent, "cup", ahead(1.0)), "x", false)
            .unwrap();
    }
    assert!(
        buffer.lookup_transform("table", "cup", ms(2_500)).is_ok(),
        "until the hand has it"
    );
    assert!(buffer.lookup_transform("hand", "cup", ms(3_000)).is_ok());
    assert!(
        buffer.lookup_transform("table", "cup", LATEST).is_err(),
        "the newest parent counts"
    );
    // A static frame becomes dynamic, and the other way round.
    buffer
        .set_transform(&at(0, "shelf", "cup", ahead(1.0)), "x", true)
        .unwrap();
    assert!(buffer.lookup_transform("shelf", "cup", ms(2_500)).is_ok());
    buffer
        .set_transform(&at(4_000, "hand", "cup", ahead(1.0)), "x", false)
        .unwrap();
    assert!(buffer.lookup_transform("shelf", "cup", ms(2_500)).is_err());
    assert_eq!(buffer.len(), 1);
}

#[test]
fn an_invalid_transform_is_rejected_by_name() {
    let buffer = TransformBuffer::default();
    let refuse = |transform: TransformStamped| {
        let error = buffer.set_transform(&transform, "x", false).unwrap_err();
        error.to_string()
    };
    let told = refuse(at(0, "a", "a", ahead(1.0)));
    assert!(told.starts_with("frame \"a\" in itself"), "{told}");
    assert!(refuse(at(0, "/a", "a", ahead(1.0))).contains("itself"));
    assert!(refuse(at(0, "", "b", ahead(1.0))).contains("must be set"));
    assert!(refuse(at(0, "a", "b", ahead(f64::NAN))).contains("\"b\" in \"a\": the translation"));
    let mut turned = at(0, "a", "b", ahead(1.0));
    turned.transform.rotation.w = 0.9;
    assert!(refuse(turned.clone()).contains("length 0.900000; normalise it"));
    turned.transform.rotation.w = 1.004;
    buffer.set_transform(&turned, "x", false).unwrap();
    turned.transform.rotation.w = f64::INFINITY;
    assert!(refuse(turned).contains("the rotation is not a finite number"));
    assert!(refuse(at(0, &"long".repeat(300), "b", ahead(1.0))).contains("1200 bytes"));
    buffer
        .set_transform(&at(20_000, "a", "b", ahead(1.0)), "x", false)
        .unwrap();
    let old = refuse(at(9_999, "a", "b", ahead(1.0)));
    assert!(
        old.contains("its newest transform is of 20.000000000"),
        "{old}"
    );
    assert_eq!(buffer.rejected_count(), 8);
}

#[test]
fn a_buffer_keeps_to_its_limits() {
    let buffer = TransformBuffer::new(TransformBufferOptions {
        cache_time: Duration::from_secs(2),
        transforms_max: 12,
        frames_max: 4,
    });
    let tell =
        |millis, child| buffer.set_transform(&at(millis, "a", child, ahead(1.0)), "x", false);
    for millis in 0..10 {
        tell(millis * 500, "b").unwrap();
    }
    // 2.5, 3, 3.5, 4 and 4.5 s.
    assert_eq!(buffer.len(), 5);
    assert!(buffer.lookup_transform("a", "b", ms(2_400)).is_err());
    for millis in 0..10 {
        tell(millis, "c").unwrap();
    }
    assert_eq!(buffer.len(), 12, "the frame's own oldest make room");
    assert!(
        buffer.lookup_transform("a", "b", ms(2_500)).is_ok()
            && buffer.lookup_transform("a", "c", ms(2)).is_err()
    );
    assert!(matches!(tell(0, "d"), Err(InvalidTransform::Full { .. })));
    assert!(
        matches!(tell(0, "e"), Err(InvalidTransform::Full { .. })),
        "a fifth frame"
    );
    // The same time again replaces the earlier transform.
    buffer.clear();
    tell(1_000, "b").unwrap();
    buffer
        .set_transform(&at(1_000, "a", "b", ahead(7.0)), "x", false)
        .unwrap();
    assert_eq!(buffer.len(), 1);
    assert_eq!(
        buffer
            .lookup_transform("a", "b", LATEST)
            .unwrap()
            .transform
            .translation
            .x,
        7.0
    );
}

#[test]
fn frames_are_listed_as_tf2_lists_them() {
    let buffer = robot();
    assert_eq!(
        buffer.frames_yaml(),
        "base_link:\n  parent: 'odom'\n  broadcaster: '/odometry'\n  rate: 1.333\n  \
         most_recent_transform: 11.500000\n  oldest_transform: 10.000000\n  buffer_length: 1.500\n\
         laser:\n  parent: 'base_link'\n  broadcaster: '/robot'\n  rate: 10000.000\n  \
         most_recent_transform: 0.000000\n  oldest_transform: 0.000000\n  buffer_length: 0.000\n\
         odom:\n  parent: 'map'\n  broadcaster: '/amcl'\n  rate: 1.500\n  \
         most_recent_transform: 12.000000\n  oldest_transform: 10.000000\n  buffer_length: 2.000\n"
    );
    let dot = buffer.frames_dot();
    assert!(
        dot.contains("\"map\" -> \"odom\" [label=\"/amcl\\n1.0 Hz\"];"),
        "{dot}"
    );
    assert!(
        dot.contains("\"base_link\" -> \"laser\" [label=\"/robot\\nstatic\"];"),
        "{dot}"
    );
}

#[test]
fn stamped_messages_are_transformed_to_another_frame() {
    let buffer = TransformBuffer::default();
    let left = Isometry::planar(1.0, 2.0, FRAC_PI_2);
    buffer
        .set_transform(&at(0, "base", "arm", left), "x", true)
        .unwrap();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    let mut point = PointStamped::default();
    point.header.frame_id = "arm".into();
    point.point.x = 3.0;
    let point = buffer.transform(&point, "base").unwrap();
    near(point.point.x, 1.0);
    near(point.point.y, 5.0);
    assert_eq!(point.header.frame_id, "base");
    let mut vector = Vector3Stamped::default();
    vector.header.frame_id = "arm".into();
    vector.vector.x = 3.0;
    let vector = buffer.transform(&vector, "base").unwrap();
    near(vector.vector.x, 0.0);
    near(vector.vector.y, 3.0);
    let mut pose = PoseStamped::default();
    pose.header.frame_id = "arm".into();
    pose.pose = Isometry::planar(0.0, 1.0, FRAC_PI_2).into();
    let pose = Isometry::from(&buffer.transform(&pose, "base").unwrap().pose);
    near(pose.translation[0], 0.0);
    near(pose.translation[1], 2.0);
    near(pose.yaw().abs(), 2.0 * FRAC_PI_2);
    let mut turned = QuaternionStamped::default();
    turned.header.frame_id = "arm".into();
    turned.quaternion.w = 1.0;
    near(
        buffer.transform(&turned, "base").unwrap().quaternion.z,
        (FRAC_PI_2 / 2.0).sin(),
    );
}
