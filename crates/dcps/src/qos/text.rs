//! Text forms of QoS values: what the command line accepts (ROS 2's short keys) and
//! what reports print (the capitals of `ros2 topic info -v`).

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::policy::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};
use super::profile::QosProfile;

/// Unknown text for a policy or a duration.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject} {value:?} is not known; use {choices}")]
pub struct QosParseError {
    /// The policy or quantity.
    pub subject: &'static str,
    /// The given text.
    pub value: String,
    /// The valid texts.
    pub choices: String,
}

pteros_msg::debug_as_display!(QosParseError);

/// One table per policy for parsing and printing.
macro_rules! text_forms {
    ($policy:ty, $subject:literal, $( $word:literal => $value:expr ),+ $(,)?) => {
        impl $policy {
            /// The keys that [`FromStr`] accepts.
            pub const WORDS: &[&str] = &[$( $word ),+];
        }
        impl FromStr for $policy {
            type Err = QosParseError;
            /// Parses ROS 2's key, in any case, with `-` or `_`.
            fn from_str(text: &str) -> Result<Self, QosParseError> {
                match normalized(text).as_str() {
                    $( $word => Ok($value), )+
                    _ => Err(QosParseError {
                        subject: $subject,
                        value: text.into(),
                        choices: Self::WORDS.join(", "),
                    }),
                }
            }
        }
    };
}

text_forms!(ReliabilityPolicy, "reliability",
    "reliable" => Self::Reliable,
    "best_effort" => Self::BestEffort,
    "system_default" => Self::SystemDefault,
    "best_available" => Self::BestAvailable,
);
text_forms!(DurabilityPolicy, "durability",
    "volatile" => Self::Volatile,
    "transient_local" => Self::TransientLocal,
    "transient" => Self::Transient,
    "persistent" => Self::Persistent,
    "system_default" => Self::SystemDefault,
    "best_available" => Self::BestAvailable,
);
text_forms!(LivelinessPolicy, "liveliness",
    "automatic" => Self::Automatic,
    "manual_by_topic" => Self::ManualByTopic,
    "manual_by_participant" => Self::ManualByParticipant,
    "system_default" => Self::SystemDefault,
    "best_available" => Self::BestAvailable,
);
// The depth comes from its own flag; 10 applies until then.
text_forms!(HistoryPolicy, "history",
    "keep_last" => Self::KeepLast(10),
    "keep_all" => Self::KeepAll,
    "system_default" => Self::SystemDefault,
);

impl fmt::Display for ReliabilityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reliable => "RELIABLE",
            Self::BestEffort => "BEST_EFFORT",
            Self::SystemDefault => "SYSTEM_DEFAULT",
            Self::BestAvailable => "BEST_AVAILABLE",
        })
    }
}

impl fmt::Display for DurabilityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Volatile => "VOLATILE",
            Self::TransientLocal => "TRANSIENT_LOCAL",
            Self::Transient => "TRANSIENT",
            Self::Persistent => "PERSISTENT",
            Self::SystemDefault => "SYSTEM_DEFAULT",
            Self::BestAvailable => "BEST_AVAILABLE",
        })
    }
}

impl fmt::Display for LivelinessPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Automatic => "AUTOMATIC",
            Self::ManualByParticipant => "MANUAL_BY_PARTICIPANT",
            Self::ManualByTopic => "MANUAL_BY_TOPIC",
            Self::SystemDefault => "SYSTEM_DEFAULT",
            Self::BestAvailable => "BEST_AVAILABLE",
        })
    }
}

impl fmt::Display for HistoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepLast(depth) => write!(f, "KEEP_LAST ({depth})"),
            Self::KeepAll => f.pad("KEEP_ALL"),
            Self::SystemDefault => f.pad("SYSTEM_DEFAULT"),
        }
    }
}

impl QosProfile {
    /// The names that [`QosProfile::preset`] knows.
    pub const PRESETS: &[&str] = &[
        "default",
        "sensor_data",
        "services_default",
        "parameters",
        "parameter_events",
        "clock",
        "rosout",
        "action_status_default",
        "tf",
        "tf_static",
        "system_default",
        "best_available",
    ];

    /// The preset with this name, as `--qos-profile` gives it.
    pub fn preset(name: &str) -> Result<QosProfile, QosParseError> {
        Ok(match normalized(name).as_str() {
            "default" => Self::default(),
            "sensor_data" => Self::sensor_data(),
            "services_default" | "services" => Self::services(),
            "parameters" => Self::parameters(),
            "parameter_events" => Self::parameter_events(),
            "clock" => Self::clock(),
            "rosout" => Self::rosout(),
            "action_status_default" | "action_status" => Self::action_status(),
            "tf" => Self::tf(),
            "tf_static" => Self::tf_static(),
            "system_default" => Self::system_default(),
            "best_available" => Self::best_available(),
            _ => {
                return Err(QosParseError {
                    subject: "QoS profile",
                    value: name.into(),
                    choices: Self::PRESETS.join(", "),
                });
            }
        })
    }
}

/// Reads a duration: seconds (`0.5`), a number with `ns`, `us`, `ms`, `s`,
/// `min` or `h`, or `infinite`, which is `None`.
pub fn parse_duration(text: &str) -> Result<Option<Duration>, QosParseError> {
    let wrong = || QosParseError {
        subject: "duration",
        value: text.into(),
        choices: "seconds (0.5), a number with ns, us, ms, s, min or h (20ms), or infinite".into(),
    };
    let trimmed = text.trim();
    if ["infinite", "inf"].contains(&trimmed.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    let digits = trimmed
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(trimmed.len());
    // A number such as 1e3 keeps its exponent.
    let (number, unit) = match trimmed.parse::<f64>() {
        Ok(_) => (trimmed, ""),
        Err(_) => trimmed.split_at(digits),
    };
    let seconds = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds)
        .map(Some)
        .map_err(|_| wrong())
}

/// A duration for display: `infinite`, `10 s`, `100 ms`, `250 ns`.
pub(super) fn duration_text(duration: Option<Duration>) -> String {
    let Some(duration) = duration else {
        return "infinite".into();
    };
    let nanos = duration.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.iter().find(|(size, _)| nanos >= *size) {
        Some((size, unit)) => format!("{} {unit}", nanos as f64 / *size as f64),
        None => format!("{nanos} ns"),
    }
}

fn normalized(word: &str) -> String {
    word.trim().to_ascii_lowercase().replace('-', "_")
}
