//! QoS text of an endpoint, the last chunk of its liveliness token (rmw_zenoh_cpp
//! `qos_to_keyexpr`).
//!
//! Seven policies, separated by colons, as the numbers of rmw's enumerations. A value
//! that equals the default is left out.

use std::fmt::Write as _;

use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability, XCDR1, XCDR2};
use pteros_rtps::time::Duration;

/// Default depth, which is left out.
const DEPTH_DEFAULT: u32 = 42;
/// RMW_DURATION_INFINITE.
const INFINITE: (u64, u64) = (9_223_372_036, 854_775_807);
const NANOS: u64 = 1_000_000_000;

/// Encodes the QoS of an endpoint.
pub fn to_text(qos: &EndpointQos) -> String {
    let mut text = String::new();
    if qos.reliability == Reliability::BestEffort {
        text.push('2');
    }
    text.push(':');
    if qos.durability != Durability::Volatile {
        text.push('1');
    }
    text.push(':');
    match qos.history {
        History::KeepAll => text.push_str("2,"),
        History::KeepLast(DEPTH_DEFAULT) => text.push(','),
        History::KeepLast(depth) => {
            let _ = write!(text, ",{depth}");
        }
    }
    text.push(':');
    write_duration(&mut text, qos.deadline);
    text.push(':');
    write_duration(&mut text, qos.lifespan);
    text.push(':');
    if qos.liveliness != Liveliness::Automatic {
        text.push('3');
    }
    text.push(',');
    write_duration(&mut text, qos.lease_duration);
    text
}

fn write_duration(text: &mut String, span: Duration) {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(0);
    if span.is_infinite() || nanos == 0 {
        text.push(',');
    } else {
        let _ = write!(text, "{},{}", nanos / NANOS, nanos % NANOS);
    }
}

/// Decodes the QoS of a writer or reader. `None` if it is malformed.
///
/// Numbers without a name in rmw, "unknown" and "best available" decode as the default.
pub fn parse(text: &str, is_writer: bool) -> Option<EndpointQos> {
    let mut fields = text.split(':');
    let mut next = || fields.next();
    let reliability = number(next()?)?;
    let durability = number(next()?)?;
    let (history, depth) = next()?.split_once(',')?;
    let (history, depth) = (number(history)?, number(depth)?);
    let deadline = duration(next()?)?;
    let lifespan = duration(next()?)?;
    let (liveliness, lease) = next()?.split_once(',')?;
    let (liveliness, lease_duration) = (number(liveliness)?, duration(lease)?);
    if next().is_some() {
        return None;
    }
    let depth = depth.map_or(Some(DEPTH_DEFAULT), |depth| u32::try_from(depth).ok())?;
    Some(EndpointQos {
        reliability: match reliability {
            Some(2) => Reliability::BestEffort,
            _ => Reliability::Reliable,
        },
        durability: match durability {
            Some(1) => Durability::TransientLocal,
            _ => Durability::Volatile,
        },
        history: match history {
            Some(2) => History::KeepAll,
            _ => History::KeepLast(depth.max(1)),
        },
        deadline,
        lifespan,
        liveliness: match liveliness {
            Some(3) => Liveliness::ManualByTopic,
            _ => Liveliness::Automatic,
        },
        lease_duration,
        representation: if is_writer {
            vec![XCDR1]
        } else {
            vec![XCDR1, XCDR2]
        },
        ..EndpointQos::default()
    })
}

/// Parses a field. An empty one is `Some(None)`, the default.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    // `parse` would accept a sign.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?.map(Some)
}

fn duration(text: &str) -> Option<Duration> {
    let (seconds, nanos) = text.split_once(',')?;
    let seconds = number(seconds)?.unwrap_or(INFINITE.0);
    let nanos = number(nanos)?.unwrap_or(INFINITE.1);
    let total = seconds.saturating_mul(NANOS).saturating_add(nanos);
    let total = i64::try_from(total).unwrap_or(i64::MAX);
    // Unspecified (0, 0) means infinite in rmw.
    Some(if total == 0 || total == i64::MAX {
        Duration::INFINITE
    } else {
        Duration::from_nanos(total)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reliable(depth: u32) -> EndpointQos {
        EndpointQos {
            reliability: Reliability::Reliable,
            history: History::KeepLast(depth),
            ..EndpointQos::default()
        }
    }

    #[test]
    fn the_usual_profiles_have_the_texts_of_rmw_zenoh() {
        let table = [
            ("::,10:,:,:,,", reliable(10)),
            (
                "2::,5:,:,:,,",
                EndpointQos {
                    reliability: Reliability::BestEffort,
                    ..reliable(5)
                },
            ),
            (
                ":1:,1:,:,:,,",
                EndpointQos {
                    durability: Durability::TransientLocal,
                    ..reliable(1)
                },
            ),
            (
                "::2,:,:,:,,",
                EndpointQos {
                    history: History::KeepAll,
                    ..reliable(1)
                },
            ),
            ("::,:,:,:,,", reliable(42)),
            (
                "::,7:1,500000000:,:3,0,20",
                EndpointQos {
                    deadline: Duration::from_millis(1_500),
                    liveliness: Liveliness::ManualByTopic,
                    lease_duration: Duration::from_nanos(20),
                    ..reliable(7)
                },
            ),
        ];
        for (text, qos) in table {
            assert_eq!(to_text(&qos), text);
            let read = parse(text, true).unwrap();
            assert_eq!(read.representation, [XCDR1]);
            let representation = Vec::new();
            assert_eq!(
                EndpointQos {
                    representation,
                    ..read
                },
                qos,
                "{text}"
            );
        }
    }

    #[test]
    fn explicit_defaults_and_foreign_numbers_are_read() {
        let full = "1:2:1,10:9223372036,854775807:0,0:1,9223372036,854775807";
        assert_eq!(parse(full, false), parse("::,10:,:,:,,", false));
        assert_eq!(
            parse("9:9:9,10:,:,:9,,", false),
            parse("::,10:,:,:,,", false)
        );
        let huge = "::,10:18446744073709551615,18446744073709551615:,:,,";
        assert_eq!(parse(huge, true).unwrap().deadline, Duration::INFINITE);
    }

    #[test]
    fn malformed_texts_are_refused() {
        for text in [
            "",
            ":",
            "::,10:,:,:,",
            "::,10:,:,:,,:",
            "::10:,:,:,,",
            "x::,10:,:,:,,",
            "-1::,10:,:,:,,",
            "+1::,10:,:,:,,",
            "::,4294967296:,:,:,,",
            "::,99999999999999999999:,:,:,,",
            "::,10:1:,:,,",
        ] {
            assert_eq!(parse(text, true), None, "{text:?}");
        }
    }
}
