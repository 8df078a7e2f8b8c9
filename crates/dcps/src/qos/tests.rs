//! Presets, conversion to the wire form and back, and text forms.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use super::report::mismatches;
use super::*;
use pteros_rtps::qos::{PolicyId, XCDR1, XCDR2};
use pteros_rtps::time::Duration as Span;

#[test]
fn presets_are_those_of_ros_2() {
    use DurabilityPolicy::{TransientLocal, Volatile};
    use ReliabilityPolicy::{BestEffort, Reliable};
    let table = [
        ("default", 10, Reliable, Volatile, None),
        ("services_default", 10, Reliable, Volatile, None),
        ("sensor_data", 5, BestEffort, Volatile, None),
        ("clock", 1, BestEffort, Volatile, None),
        ("parameters", 1000, Reliable, Volatile, None),
        ("parameter_events", 1000, Reliable, Volatile, None),
        ("rosout", 1000, Reliable, TransientLocal, Some(10)),
        ("action_status_default", 1, Reliable, TransientLocal, None),
        ("tf", 100, Reliable, Volatile, None),
        ("tf_static", 1, Reliable, TransientLocal, None),
    ];
    for (name, depth, reliability, durability, lifespan) in table {
        let profile = QosProfile::preset(name).unwrap();
        assert_eq!(profile.history, HistoryPolicy::KeepLast(depth), "{name}");
        assert_eq!(profile.reliability, reliability, "{name}");
        assert_eq!(profile.durability, durability, "{name}");
        assert_eq!(
            profile.lifespan,
            lifespan.map(Duration::from_secs),
            "{name}"
        );
        assert_eq!(
            profile.liveliness,
            LivelinessPolicy::SystemDefault,
            "{name}"
        );
        profile.validate().unwrap();
    }
    assert_eq!(
        QosProfile::preset("sensor").unwrap_err().to_string(),
        "QoS profile \"sensor\" is not known; use default, sensor_data, services_default, \
         parameters, parameter_events, clock, rosout, action_status_default, tf, tf_static, \
         system_default, best_available"
    );
}

#[test]
fn an_announced_profile_converts_back_unchanged() {
    let asked = QosProfile::default()
        .keep_last(7)
        .best_effort()
        .transient_local()
        .deadline(Duration::from_millis(20))
        .lifespan(Duration::from_secs(3))
        .liveliness(LivelinessPolicy::ManualByTopic, Duration::from_secs(1))
        .partition(["a", "b*"])
        .representation(Representation::Xcdr2);
    assert_eq!(QosProfile::from_endpoint(&asked.to_endpoint()), asked);
}

#[test]
fn a_durability_service_keeps_disposed_instances_for_the_cleanup_delay() {
    use pteros_rtps::qos as wire;
    assert_eq!(
        DurabilityService::default().cleanup_delay,
        Some(Duration::ZERO)
    );
    for (delay, span) in [
        (None, Span::INFINITE),
        (Some(Duration::from_secs(3)), Span::from_secs(3)),
    ] {
        let service = DurabilityService {
            cleanup_delay: delay,
            ..DurabilityService::default()
        };
        let profile = QosProfile::default()
            .transient()
            .durability_service(service);
        let endpoint = profile.to_endpoint();
        assert_eq!(
            endpoint.durability_service,
            wire::DurabilityService {
                cleanup_delay: span,
                ..wire::DurabilityService::default()
            }
        );
        let read = QosProfile::from_endpoint(&endpoint);
        assert_eq!(read.durability_service, Some(service));
    }
}

#[test]
fn subscriptions_take_both_representations_by_default() {
    let plain = QosProfile::default();
    assert_eq!(plain.to_endpoint().representation, [XCDR1]);
    assert_eq!(plain.to_reader().representation, [XCDR1, XCDR2]);
    let one = plain.clone().representation(Representation::Xcdr2);
    assert_eq!(one.to_endpoint().representation, [XCDR2]);
    assert_eq!(one.to_reader().representation, [XCDR2]);
    assert_eq!(one.describe(), plain.describe() + ", representation XCDR2");
}

#[test]
fn a_zero_or_endless_duration_is_infinite_as_in_ros_2() {
    let zero = QosProfile::default()
        .deadline(Duration::ZERO)
        .lifespan(Duration::MAX);
    let endpoint = zero.to_endpoint();
    assert!(endpoint.deadline.is_infinite());
    assert!(endpoint.lifespan.is_infinite());
}

#[test]
fn best_available_follows_the_weakest_publisher() {
    let asked = QosProfile::best_available();
    let strong = QosProfile::default()
        .transient_local()
        .liveliness(LivelinessPolicy::ManualByTopic, Duration::from_secs(1))
        .to_endpoint();
    let weak = QosProfile::sensor_data().to_endpoint();

    let alone = asked.resolved_for_publishers([]);
    assert_eq!(alone.reliability, ReliabilityPolicy::Reliable);
    assert_eq!(alone.durability, DurabilityPolicy::TransientLocal);

    let both = asked.resolved_for_publishers([&strong, &weak]);
    assert_eq!(both.reliability, ReliabilityPolicy::BestEffort);
    assert_eq!(both.durability, DurabilityPolicy::Volatile);
    assert_eq!(both.liveliness, LivelinessPolicy::Automatic);
    for publisher in [&strong, &weak] {
        assert_eq!(mismatches(publisher, &both.to_endpoint()), []);
    }
}

#[test]
fn best_available_spans_follow_the_other_side() {
    let seconds = |count| QosProfile::default().deadline(Duration::from_secs(count));
    let [short, long, none] =
        [seconds(2), seconds(3), QosProfile::default()].map(|profile| profile.to_endpoint());
    let asked = QosProfile::best_available();
    assert!(asked.is_best_available() && !seconds(2).is_best_available());
    assert_eq!(asked.to_endpoint().deadline, none.deadline);
    for (known, of_subscription, of_publisher) in [
        (&[&short, &long][..], Some(3), Some(2)),
        (&[&short, &none], None, Some(2)),
        (&[], None, None),
    ] {
        let subscription = asked.resolved_for_publishers(known.iter().copied());
        let publisher = asked.resolved_for_subscriptions(known.iter().copied());
        assert!(!subscription.is_best_available() && !publisher.is_best_available());
        assert_eq!(
            subscription.deadline,
            of_subscription.map(Duration::from_secs)
        );
        assert_eq!(publisher.deadline, of_publisher.map(Duration::from_secs));
        for other in known {
            assert_eq!(mismatches(other, &subscription.to_endpoint()), []);
            assert_eq!(mismatches(&publisher.to_endpoint(), other), []);
        }
    }
}

#[test]
fn an_invalid_profile_is_an_error_with_policy_value_and_hint() {
    let limits = |max_samples| ResourceLimits {
        max_samples: Some(max_samples),
        ..ResourceLimits::default()
    };
    let filtered = QosProfile {
        time_based_filter: Duration::from_secs(1),
        ..QosProfile::default().deadline(Duration::from_millis(100))
    };
    let table = [
        (
            QosProfile::from(0),
            "QoS HISTORY keep last 0: would keep no sample, not even the one just published; \
             use a depth of 1 or more, or keep all",
        ),
        (
            QosProfile::from(10).resource_limits(limits(4)),
            "QoS RESOURCE_LIMITS max samples 4: less than the history depth 10; raise the limit \
             or lower the depth",
        ),
        (
            QosProfile::default().keep_all().resource_limits(limits(0)),
            "QoS RESOURCE_LIMITS 0: leaves no space for any sample; use 1 or more, or None for \
             the default bound",
        ),
        (
            filtered,
            "QoS DEADLINE 100 ms: shorter than the time-based filter of 1 s, so it would always \
             be missed; lengthen the deadline or shorten the filter",
        ),
    ];
    for (profile, text) in table {
        assert_eq!(profile.validate().unwrap_err().to_string(), text);
    }
}

#[test]
fn a_mismatch_report_has_both_values_and_a_hint() {
    let publisher = QosProfile::sensor_data().to_endpoint();
    let subscription = QosProfile::default()
        .transient_local()
        .deadline(Duration::from_millis(100))
        .to_endpoint();
    let found = mismatches(&publisher, &subscription);
    let policies: Vec<_> = found.iter().map(|m| m.policy).collect();
    assert_eq!(
        policies,
        [
            PolicyId::Reliability,
            PolicyId::Durability,
            PolicyId::Deadline
        ]
    );
    assert_eq!(
        found[0].to_string(),
        "RELIABILITY: offered best effort, requested reliable; make the publisher reliable or \
         the subscription best effort"
    );
    assert_eq!(found[2].offered, "infinite");
    assert_eq!(found[2].requested, "100 ms");
}

#[test]
fn keys_and_durations_are_parsed_as_on_the_command_line() {
    assert_eq!("best-effort".parse(), Ok(ReliabilityPolicy::BestEffort));
    assert_eq!(
        "Transient_Local".parse(),
        Ok(DurabilityPolicy::TransientLocal)
    );
    assert_eq!("keep_all".parse(), Ok(HistoryPolicy::KeepAll));
    assert_eq!(
        "sometimes"
            .parse::<ReliabilityPolicy>()
            .unwrap_err()
            .to_string(),
        "reliability \"sometimes\" is not known; use reliable, best_effort, system_default, \
         best_available"
    );
    let table = [
        ("0.5", Some(Duration::from_millis(500))),
        ("1e-3", Some(Duration::from_millis(1))),
        ("20ms", Some(Duration::from_millis(20))),
        ("3 s", Some(Duration::from_secs(3))),
        ("2min", Some(Duration::from_secs(120))),
        ("infinite", None),
    ];
    for (text, duration) in table {
        assert_eq!(parse_duration(text), Ok(duration), "{text}");
    }
    for bad in ["", "-1", "5 parsecs", "ms", "nan"] {
        assert!(parse_duration(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_description_has_the_main_policies_and_the_non_default_ones() {
    assert_eq!(
        QosProfile::default().describe(),
        "reliable, volatile, keep last 10"
    );
    assert_eq!(
        QosProfile::rosout().partition(["arm"]).describe(),
        "reliable, transient local, keep last 1000, lifespan 10 s, partition [\"arm\"]"
    );
}
