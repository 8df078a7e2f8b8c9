//! QoS policies of an endpoint that parameters may change before it is made:
//! `qos_overrides./topic.publisher.depth`, as in rclcpp's `qos_parameters.hpp`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::store::{Declaration, ParameterStore};
use super::value::ParameterValue;
use crate::error::CreateError;
use crate::qos::{HistoryPolicy, QosProfile};

/// A policy that a parameter may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum QosPolicyKind {
    /// `avoid_ros_namespace_conventions`, true or false: the topic's name is DDS's as it
    /// stands, without `rt/` before it.
    AvoidRosNamespaceConventions,
    /// `deadline`, in nanoseconds; 0 for none.
    Deadline,
    /// `durability`: `volatile`, `transient_local` …
    Durability,
    /// `history`: `keep_last`, `keep_all` …
    History,
    /// `depth`, of `keep_last`.
    Depth,
    /// `lifespan`, in nanoseconds; 0 for ever. Publishers only.
    Lifespan,
    /// `liveliness`: `automatic`, `manual_by_topic` …
    Liveliness,
    /// `liveliness_lease_duration`, in nanoseconds; 0 for ever.
    LivelinessLeaseDuration,
    /// `reliability`: `reliable`, `best_effort` …
    Reliability,
}

/// In the order in which they are declared and applied.
const KINDS: [QosPolicyKind; 9] = [
    QosPolicyKind::AvoidRosNamespaceConventions,
    QosPolicyKind::Deadline,
    QosPolicyKind::Durability,
    QosPolicyKind::History,
    QosPolicyKind::Depth,
    QosPolicyKind::Lifespan,
    QosPolicyKind::Liveliness,
    QosPolicyKind::LivelinessLeaseDuration,
    QosPolicyKind::Reliability,
];

type Check = Arc<dyn Fn(&QosProfile) -> Result<(), String> + Send + Sync>;

/// Which policies of an endpoint may be changed by parameters; none unless an
/// endpoint's options say so. Each is a read-only parameter of the node,
/// `qos_overrides./scan.subscription.reliability`, whose default is the program's
/// profile, so they can be given in a parameter file or with `-p` and are listed
/// by `pteros param`.
///
/// ```no_run
/// use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// use pteros::parameter::QosOverrides;
/// use pteros::prelude::*;
/// use pteros::SubscriptionOptions;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("mapper")?;
/// let options = SubscriptionOptions::new(QosProfile::sensor_data())
///     .qos_overrides(QosOverrides::common())
///     .callback(|scan: Sample<LaserScan>| println!("{} ranges", scan.ranges.len()));
/// // --ros-args -p qos_overrides./scan.subscription.depth:=20
/// let _scans = node.create_subscription_with("scan", options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct QosOverrides {
    kinds: Vec<QosPolicyKind>,
    id: String,
    check: Option<Check>,
}

impl QosOverrides {
    /// These policies.
    pub fn new(kinds: impl IntoIterator<Item = QosPolicyKind>) -> Self {
        Self {
            kinds: kinds.into_iter().collect(),
            ..Self::default()
        }
    }

    /// History, depth and reliability, rclcpp's default policies.
    pub fn common() -> Self {
        Self::new([
            QosPolicyKind::History,
            QosPolicyKind::Depth,
            QosPolicyKind::Reliability,
        ])
    }

    /// Tells endpoints of one topic and node apart: the parameters are
    /// `qos_overrides./scan.subscription_ID.…` then.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Asks whether the profile that came of it will do; the error says why not.
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(&QosProfile) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Declares the parameters and changes the profile as they say.
    pub(crate) fn apply(
        &self,
        store: &ParameterStore,
        (topic, entity): (&str, &str),
        qos: &mut QosProfile,
    ) -> Result<(), CreateError> {
        let refused = |reason: String| CreateError::QosOverrides {
            topic: topic.into(),
            reason,
        };
        let id = match self.id.as_str() {
            "" => String::new(),
            id => format!("_{id}"),
        };
        let is_publisher = entity == "publisher";
        for kind in KINDS.into_iter().filter(|kind| self.kinds.contains(kind)) {
            if kind == QosPolicyKind::Lifespan && !is_publisher {
                continue;
            }
            let name = format!("qos_overrides.{topic}.{entity}{id}.{}", kind.word());
            let default = kind.value(qos);
            let descriptor = ParameterDescriptor::new()
                .description(format!(
                    "qos policy {{{}}} for {entity} {{{topic}}}",
                    kind.word()
                ))
                .read_only();
            let declaration = Declaration {
                name: name.clone(),
                type_of: default.parameter_type(),
                default,
                descriptor,
                ignore_override: false,
            };
            let value = match store.declare(declaration, |_| None) {
                Err(ParameterError::AlreadyDeclared { .. }) => store.get(&name),
                declared => declared,
            };
            let value = value.map_err(|error| refused(error.to_string()))?;
            kind.set(qos, &value).map_err(|reason| {
                let error = SetParameterError::Rejected { reason };
                let from = store
                    .overrides()
                    .get(&name)
                    .map(|given| given.from.to_string());
                let from = from.unwrap_or_default();
                refused(format!(
                    "parameter '{name}' = {value}, from {from}: {error}"
                ))
            })?;
        }
        match &self.check {
            Some(check) => check(qos).map_err(refused),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for QosOverrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QosOverrides")
            .field("kinds", &self.kinds)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl QosPolicyKind {
    /// The last part of the parameter's name, as rmw spells the policy.
    fn word(self) -> &'static str {
        match self {
            Self::AvoidRosNamespaceConventions => "avoid_ros_namespace_conventions",
            Self::Deadline => "deadline",
            Self::Durability => "durability",
            Self::History => "history",
            Self::Depth => "depth",
            Self::Lifespan => "lifespan",
            Self::Liveliness => "liveliness",
            Self::LivelinessLeaseDuration => "liveliness_lease_duration",
            Self::Reliability => "reliability",
        }
    }

    fn value(self, qos: &QosProfile) -> ParameterValue {
        let nanos = |span: Option<Duration>| {
            let nanos = span.map_or(0, |span| span.as_nanos());
            ParameterValue::Integer(i64::try_from(nanos).unwrap_or(i64::MAX))
        };
        // The words of reports are those of parameters in capitals.
        let word = |word: String| ParameterValue::String(word.to_lowercase());
        match self {
            Self::AvoidRosNamespaceConventions => {
                ParameterValue::Bool(qos.avoid_ros_namespace_conventions)
            }
            Self::Deadline => nanos(qos.deadline),
            Self::Durability => word(qos.durability.to_string()),
            Self::History => ParameterValue::String(
                match qos.history {
                    HistoryPolicy::KeepLast(_) => "keep_last",
                    HistoryPolicy::KeepAll => "keep_all",
                    HistoryPolicy::SystemDefault => "system_default",
                }
                .into(),
            ),
            Self::Depth => ParameterValue::Integer(match qos.history {
                HistoryPolicy::KeepLast(depth) => i64::try_from(depth).unwrap_or(i64::MAX),
                _ => 0,
            }),
            Self::Lifespan => nanos(qos.lifespan),
            Self::Liveliness => word(qos.liveliness.to_string()),
            Self::LivelinessLeaseDuration => nanos(qos.liveliness_lease),
            Self::Reliability => word(qos.reliability.to_string()),
        }
    }

    fn set(self, qos: &mut QosProfile, value: &ParameterValue) -> Result<(), String> {
        let span = || match value {
            ParameterValue::Integer(0 | i64::MAX) => Ok(None),
            ParameterValue::Integer(nanos) if *nanos > 0 => {
                Ok(Some(Duration::from_nanos(nanos.unsigned_abs())))
            }
            _ => Err("no number of nanoseconds; write 100000000 for 100 ms, 0 for none".to_owned()),
        };
        let word = || match value {
            ParameterValue::String(word) => word.as_str(),
            _ => "",
        };
        let says = |error: crate::qos::QosWordError| error.to_string();
        match self {
            // The parameter's type has been checked.
            Self::AvoidRosNamespaceConventions => {
                qos.avoid_ros_namespace_conventions = *value == ParameterValue::Bool(true);
            }
            Self::Deadline => qos.deadline = span()?,
            Self::Durability => qos.durability = word().parse().map_err(says)?,
            Self::History => {
                let history = word().parse().map_err(says)?;
                // The depth is a parameter of its own.
                let keeps = matches!(qos.history, HistoryPolicy::KeepLast(_));
                if !(keeps && matches!(history, HistoryPolicy::KeepLast(_))) {
                    qos.history = history;
                }
            }
            // Whoever keeps all has no depth.
            Self::Depth => {
                if let HistoryPolicy::KeepLast(depth) = &mut qos.history {
                    let given = match value {
                        ParameterValue::Integer(given) => usize::try_from(*given).ok(),
                        _ => None,
                    };
                    let given = given.filter(|given| *given > 0);
                    *depth = given.ok_or("no depth; give a number from 1 on")?;
                }
            }
            Self::Lifespan => qos.lifespan = span()?,
            Self::Liveliness => qos.liveliness = word().parse().map_err(says)?,
            Self::LivelinessLeaseDuration => qos.liveliness_lease = span()?,
            Self::Reliability => qos.reliability = word().parse().map_err(says)?,
        }
        Ok(())
    }
}
