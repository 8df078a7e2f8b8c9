//! `pteros doctor`, on this host.

use crate::support::Domain;
use pteros::prelude::*;

fn texts(found: &serde_json::Value, result: &str) -> Vec<String> {
    let list = found["findings"].as_array().unwrap().iter();
    list.filter(|finding| finding["result"] == result)
        .map(|finding| format!("{} / {}", finding["text"], finding["fix"]))
        .collect()
}

#[test]
fn every_area_is_checked_without_errors_on_this_host() {
    let domain = Domain::new();
    let found = domain.run("doctor --json").json();
    assert_eq!(found["errors"], 0, "{found:#}");
    let list = found["findings"].as_array().unwrap();
    for area in [
        "environment",
        "network",
        "shared memory",
        "graph",
        "permissions",
        "time",
    ] {
        assert!(list.iter().any(|f| f["area"] == area), "{area} {found:#}");
    }
    let text = domain.run("doctor").ok();
    assert!(text.contains("\nnetwork\n  ok      "), "{text}");
}

#[test]
fn misspelt_and_unsupported_variables_are_reported_with_a_fix() {
    let domain = Domain::new();
    let mut command = domain.command(["doctor", "--json", "--include-warnings"]);
    command
        .env("ROS_DOMIAN_ID", "7")
        .env("CYCLONEDDS_URI", "file:///a.xml");
    let answer = crate::support::finish(command);
    assert_eq!(answer.code, Some(1), "{}", answer.out);
    let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let warnings = texts(&found, "warning");
    assert!(
        warnings
            .iter()
            .any(|text| text.contains("did you mean ROS_DOMAIN_ID?")),
        "{warnings:?}"
    );
    let notes = texts(&found, "note");
    assert!(
        notes
            .iter()
            .any(|text| text.contains("CYCLONEDDS_URI has no effect"))
    );
    let mut command = domain.command(["doctor", "--json"]);
    command.env("PTEROS_BUSY_POLL_US", "soon");
    let answer = crate::support::finish(command);
    assert_eq!(answer.code, Some(1), "{}", answer.out);
    let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let errors = texts(&found, "error");
    assert!(errors[0].contains("PTEROS_BUSY_POLL_US"), "{errors:?}");
}

#[test]
fn duplicate_node_names_and_mismatched_endpoints_are_reported() {
    use pteros::interfaces::std_msgs::msg::String as Text;
    let domain = Domain::new();
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let one = context.create_node("arm").unwrap();
    let _two = context.create_node("arm").unwrap();
    let _publisher = one
        .create_publisher::<Text>("/words".sensor_data())
        .unwrap();
    let _subscription = one.create_polled_subscription::<Text>("/words").unwrap();
    let has_both = |text: &str| {
        text.contains("2 nodes have the name /arm")
            && text.contains("topic /words: RELIABILITY")
            && text.contains("pteros topic why /words")
    };
    let answer = domain.run_until("doctor --report-failed", |answer| has_both(&answer.out));
    assert!(has_both(&answer.out), "{}", answer.out);
    let answer = domain.run_until("doctor", |answer| answer.out.contains("of Pteros"));
    let others = format!(
        "other participants: 1 of Pteros {}",
        pteros::graph::ProductVersion::OURS
    );
    assert!(answer.out.contains(&others), "{}", answer.out);
    let report = domain.run_until("doctor --report --json", |answer| {
        answer.out.contains("/words")
    });
    let report = report.json();
    let other = &report["participants"][0];
    assert_eq!(other["guid"], context.guid().to_string(), "{report:#}");
    assert_eq!(other["nodes"][0], "/arm", "{report:#}");
    let mut topics = report["topics"].as_array().unwrap().iter();
    let words = topics.find(|topic| topic["name"] == "/words").unwrap();
    assert_eq!(words["publishers"], 1, "{report:#}");
    assert!(report["platform"]["kernel"].is_string(), "{report:#}");
}

#[test]
fn two_instances_of_hello_receive_each_other() {
    let domain = Domain::new();
    let other = domain.start("doctor hello");
    let received = |answer: &crate::support::Answer| answer.out.contains("\"topic\":{\"");
    let answer = domain.run_until("doctor hello --once --json", received);
    assert!(received(&answer), "{}", answer.out);
    drop(other);
}
