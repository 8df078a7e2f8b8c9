//! QoS overrides: QoS policies of an endpoint set by parameters, before it is
//! created.
//!
//! The parameters are named as in rclcpp's `qos_parameters.hpp`, for example
//! `qos_overrides./topic.publisher.depth`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::CreateError;
use crate::parameter::ParameterDescriptor;
use crate::parameter::ParameterValue;
use crate::parameter::{ParameterDeclaration, ParameterHooks, ParameterStore};
use crate::parameter::{ParameterError, SetParameterError};
use pteros_runtime::qos::{HistoryPolicy, QosProfile};

/// QoS policy that a parameter can override.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum QosPolicyKind {
    /// `avoid_ros_namespace_conventions`, true or false: uses the topic name as the
    /// DDS name, without the `rt/` prefix.
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

/// All policies, in the order in which they are declared and applied.
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

type ValidationCallback = Arc<dyn Fn(&QosProfile) -> Result<(), String> + Send + Sync>;

/// QoS policies of an endpoint that parameters may override; none by default. Each
/// is a read-only parameter of the node, for example
/// `qos_overrides./scan.subscription.reliability`. Its default is the profile in
/// the program. It can be set in a parameter file or with `-p`, and `pteros param`
/// lists it.
///
/// ```no_run
/// use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// use pteros::parameter::QosOverridingOptions;
/// use pteros::prelude::*;
/// use pteros::SubscriptionOptions;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("mapper")?;
/// let options = SubscriptionOptions::new("scan".sensor_data())
///     .qos_overrides(QosOverridingOptions::with_default_policies());
/// // --ros-args -p qos_overrides./scan.subscription.depth:=20
/// let _scans = node.create_subscription::<LaserScan>(options, |scan| {
///     println!("{} ranges", scan.ranges.len());
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct QosOverridingOptions {
    kinds: Vec<QosPolicyKind>,
    id: String,
    validate: Option<ValidationCallback>,
}

impl QosOverridingOptions {
    /// Allows overrides of these policies.
    pub fn new(kinds: impl IntoIterator<Item = QosPolicyKind>) -> Self {
        Self {
            kinds: kinds.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Allows overrides of history, depth and reliability, rclcpp's default
    /// policies.
    pub fn with_default_policies() -> Self {
        Self::new([
            QosPolicyKind::History,
            QosPolicyKind::Depth,
            QosPolicyKind::Reliability,
        ])
    }

    /// Sets an id that distinguishes endpoints of the same topic and node. The
    /// parameters are then named `qos_overrides./scan.subscription_ID.…`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets a callback that accepts or rejects the resulting profile.
    #[must_use]
    pub fn validation_callback(
        mut self,
        validate: impl Fn(&QosProfile) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.validate = Some(Arc::new(validate));
        self
    }

    /// Declares the parameters and applies their values to the profile.
    #[doc(hidden)]
    pub fn apply(
        &self,
        store: &ParameterStore,
        topic: &str,
        entity: &str,
        qos: &mut QosProfile,
    ) -> Result<(), CreateError> {
        self.apply_with(store, &store.callbacks, topic, entity, qos)
            .map_err(|error| CreateError::QosOverrides {
                topic: topic.into(),
                reason: error.to_string(),
            })
    }

    /// As [`Self::apply`], with the callbacks of a language.
    #[doc(hidden)]
    pub fn apply_with(
        &self,
        store: &ParameterStore,
        hooks: &dyn ParameterHooks,
        topic: &str,
        entity: &str,
        qos: &mut QosProfile,
    ) -> Result<(), QosOverrideError> {
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
            let declaration = ParameterDeclaration {
                name: name.clone(),
                type_of: default.parameter_type(),
                default,
                descriptor,
                ignore_override: false,
            };
            let value = match store.declare_with(hooks, declaration, |_| None) {
                Err(ParameterError::AlreadyDeclared { .. }) => store.get(&name)?,
                declared => declared?,
            };
            kind.set(qos, &value).map_err(|reason| {
                let error = SetParameterError::Rejected { reason };
                let origin = store
                    .overrides()
                    .get(&name)
                    .map(|override_value| override_value.origin.to_string());
                let origin = origin.unwrap_or_default();
                QosOverrideError::Refused(format!(
                    "parameter '{name}' = {value}, from {origin}: {error}"
                ))
            })?;
        }
        match &self.validate {
            Some(validate) => validate(qos).map_err(QosOverrideError::Refused),
            None => Ok(()),
        }
    }
}

/// Reason why overrides are not applied.
#[doc(hidden)]
#[derive(thiserror::Error)]
pub enum QosOverrideError {
    /// A parameter cannot be declared.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A value, or the whole profile, is refused.
    #[error("{0}")]
    Refused(String),
}

pteros_msg::debug_as_display!(QosOverrideError);

impl fmt::Debug for QosOverridingOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QosOverridingOptions")
            .field("kinds", &self.kinds)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl QosPolicyKind {
    /// The policy with that last part of its parameter name.
    #[doc(hidden)]
    pub fn from_word(word: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.word() == word)
    }

    /// Last part of the parameter name, as rmw spells the policy.
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

    /// The policy of a profile as the value of its parameter.
    #[doc(hidden)]
    pub fn value(self, qos: &QosProfile) -> ParameterValue {
        let nanos = |span: Option<Duration>| {
            let nanos = span.map_or(0, |span| span.as_nanos());
            ParameterValue::Integer(i64::try_from(nanos).unwrap_or(i64::MAX))
        };
        // The display names are the parameter values in capitals.
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
            _ => Err(
                "not a number of nanoseconds; write 100000000 for 100 ms, 0 for none".to_owned(),
            ),
        };
        let word = || match value {
            ParameterValue::String(word) => word.as_str(),
            _ => "",
        };
        let message = |error: pteros_runtime::qos::QosParseError| error.to_string();
        match self {
            // The type of the parameter was checked before.
            Self::AvoidRosNamespaceConventions => {
                qos.avoid_ros_namespace_conventions = *value == ParameterValue::Bool(true);
            }
            Self::Deadline => qos.deadline = span()?,
            Self::Durability => qos.durability = word().parse().map_err(message)?,
            Self::History => {
                let history = word().parse().map_err(message)?;
                // The depth is a separate parameter.
                let keeps = matches!(qos.history, HistoryPolicy::KeepLast(_));
                if !(keeps && matches!(history, HistoryPolicy::KeepLast(_))) {
                    qos.history = history;
                }
            }
            // KEEP_ALL has no depth.
            Self::Depth => {
                if let HistoryPolicy::KeepLast(depth) = &mut qos.history {
                    let override_value = match value {
                        ParameterValue::Integer(override_value) => {
                            usize::try_from(*override_value).ok()
                        }
                        _ => None,
                    };
                    let override_value =
                        override_value.filter(|override_value| *override_value > 0);
                    *depth = override_value.ok_or("invalid depth; use a number of 1 or more")?;
                }
            }
            Self::Lifespan => qos.lifespan = span()?,
            Self::Liveliness => qos.liveliness = word().parse().map_err(message)?,
            Self::LivelinessLeaseDuration => qos.liveliness_lease = span()?,
            Self::Reliability => qos.reliability = word().parse().map_err(message)?,
        }
        Ok(())
    }
}
