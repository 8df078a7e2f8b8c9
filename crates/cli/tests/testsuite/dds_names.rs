//! `pteros topic --dds-names`: topics and types that are not ROS's.

use crate::support::Domain;

#[test]
fn a_topic_without_ros_prefix_is_published_found_and_echoed_by_its_dds_name() {
    let domain = Domain::new();
    let words = "topic pub --dds-names Square dds_shapes/msg/ShapeType -r 20 -n shapes";
    let mut publisher = domain.start_with(words, "{color: BLUE, x: 1}");
    assert_eq!(publisher.line(), "publisher: beginning loop");

    let listed = domain.run("topic list -t --dds-names").ok();
    assert!(listed.contains("Square [ShapeType]\n"), "{listed}");
    assert!(!domain.run("topic list").ok().contains("Square"));
    assert_eq!(
        domain.run("topic type --dds-names Square").ok(),
        "ShapeType\n"
    );
    for name in ["ShapeType", "dds_shapes/msg/ShapeType"] {
        let found = domain.run(&format!("topic find --dds-names {name}")).ok();
        assert_eq!(found, "Square\n");
    }
    let info = domain.run("topic info Square --dds-names -v").ok();
    assert!(info.contains("Type: ShapeType\n"), "{info}");
    assert!(info.contains("Node name: shapes\n"), "{info}");
    let echo = "topic echo --dds-names Square --once --csv --timeout 20";
    assert_eq!(domain.run(echo).ok(), "BLUE,1,0,0,\n");
    let named = format!("{echo} ShapeType");
    assert_eq!(domain.run(&named).ok(), "BLUE,1,0,0,\n");
    let hz = domain.run("topic bw --dds-names Square --timeout 2").ok();
    assert!(hz.contains("B/s"), "{hz}");

    let error = domain.run("topic echo --once Square").failed(1);
    assert!(error.contains("unknown topic '/Square'"), "{error}");
    let error = domain.run("topic echo --once --dds-names größe").failed(1);
    assert!(error.contains("visible ASCII"), "{error}");
}
