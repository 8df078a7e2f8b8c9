//! diagnostic_aggregator: topics, QoS and parameters. Its unit tests cover the analyzers.

use std::time::Instant;

use pteros::interfaces::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus};
use pteros::prelude::*;
use pteros_test_support::folder::Folder;

use crate::{TIMEOUT, start, try_start};

const PARAMETERS: &str = "analyzers:
  ros__parameters:
    path: Robot
    pub_rate: 50.0
    critical: true
    motors:
      type: diagnostic_aggregator/GenericAnalyzer
      path: Motors
      startswith: ['/motor']
";

#[test]
fn diagnostics_are_sorted_and_an_error_is_told_at_once() {
    let folder = Folder::new("diagnostics");
    let file = folder.write("a.yaml", PARAMETERS).display().to_string();
    let line = ["--ros-args", "--params-file", &file];
    let started = start("diagnostic_aggregator", "aggregator_node", &line);
    let node = &started.test;
    let sums = node
        .create_polled_subscription::<DiagnosticArray>("/diagnostics_agg")
        .unwrap();
    let levels = node
        .create_polled_subscription::<DiagnosticStatus>(
            "/diagnostics_toplevel_state".keep_last(1000),
        )
        .unwrap();
    let diagnostics = node
        .create_publisher::<DiagnosticArray>("/diagnostics")
        .unwrap();
    assert!(diagnostics.wait_for_matched(1, TIMEOUT));
    assert!(sums.wait_for_matched(1, TIMEOUT) && levels.wait_for_matched(1, TIMEOUT));
    let mut array = DiagnosticArray::default();
    for (name, level) in [("/motor/left", DiagnosticStatus::ERROR), ("gps", 0)] {
        array.status.push(DiagnosticStatus {
            level,
            name: name.into(),
            ..DiagnosticStatus::default()
        });
    }
    diagnostics.publish_owned(array).unwrap();
    let sum = loop {
        let sum = sums.take_timeout(TIMEOUT).expect("sums");
        if sum.status.len() > 2 {
            break sum;
        }
    };
    assert!(sum.header.stamp.sec > 0);
    let names: Vec<&str> = sum.status.iter().map(|one| one.name.as_str()).collect();
    let expected = [
        "/Robot/Motors",
        "/Robot/Motors/ motor left",
        "/Robot",
        "/Robot/Other",
        "/Robot/Other/gps",
    ];
    assert_eq!(names, expected);
    let end = Instant::now() + TIMEOUT;
    let mut levels = std::iter::from_fn(|| {
        let left = end.saturating_duration_since(Instant::now());
        levels.take_timeout(left)
    });
    let critical = levels.find(|level| level.name == "toplevel_state_critical");
    assert_eq!(critical.expect("an error").level, DiagnosticStatus::ERROR);
    let next = levels.find(|level| level.name == "toplevel_state");
    assert_eq!(next.expect("a level").level, DiagnosticStatus::ERROR);
}

#[test]
fn wrong_parameters_name_themselves() {
    for (parameter, reason) in [
        (
            "pub_rate:=0.0",
            "pub_rate = 0: it is a number of Hertz above 0",
        ),
        ("history_depth:=0", "history_depth = 0"),
        ("critical:=3", "\"critical\""),
    ] {
        let line = ["--ros-args", "-p", parameter];
        let problem = try_start("diagnostic_aggregator", "aggregator_node", &line).err();
        let problem = problem.expect(parameter);
        assert!(problem.contains(reason), "{problem}");
    }
}
