//! Flags for the QoS policies that DDS has and ros2's command line has not.

use anyhow::Result;
use clap::Args;
use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use pteros::qos::{DestinationOrder, Ownership, QosProfile, Representation};
use std::time::Duration;

use crate::values::{not_negative_seconds, positive_seconds};

const OWNERSHIP: [&str; 2] = ["shared", "exclusive"];
const ORDER: [&str; 2] = ["by_reception", "by_source"];
const REPRESENTATION: [&str; 2] = ["xcdr1", "xcdr2"];
const SCOPE: [&str; 3] = ["instance", "topic", "group"];

/// What is to be different from the preset in those policies.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Quality of service beyond ros2's flags")]
pub struct DdsFlags {
    /// Partition to be in; may be given several times, and hold * and ? on one side
    #[arg(long, value_name = "NAME")]
    qos_partition: Vec<String>,
    /// Whether every publisher is heard or the strongest alone
    #[arg(long, value_name = "OWNERSHIP", value_parser = PossibleValuesParser::new(OWNERSHIP).map(|word| ownership(&word)))]
    qos_ownership: Option<Ownership>,
    /// Rank of an exclusive publisher
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    qos_ownership_strength: Option<i32>,
    /// Whether samples are taken as they arrive or by source time
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(ORDER).map(|word| order(&word)))]
    qos_destination_order: Option<DestinationOrder>,
    /// Take at most one message in this time
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_time_based_filter_seconds: Option<Duration>,
    /// Expect a message at least this often
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_deadline_seconds: Option<Duration>,
    /// Drop messages older than this
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_lifespan_seconds: Option<Duration>,
    /// How long small messages may be held back to share datagrams; a subscription accepts no more than it says
    #[arg(long, value_name = "SECONDS", value_parser = not_negative_seconds)]
    qos_latency_budget_seconds: Option<Duration>,
    /// Most messages kept
    #[arg(long, value_name = "N")]
    qos_max_samples: Option<u32>,
    /// Most instances written or heard (types with a key)
    #[arg(long, value_name = "N")]
    qos_max_instances: Option<u32>,
    /// Most messages kept of one instance
    #[arg(long, value_name = "N")]
    qos_max_samples_per_instance: Option<u32>,
    /// Whether a publisher that leaves an instance, or ends, disposes of it [default: true]
    #[arg(long, value_name = "YES", value_parser = BoolishValueParser::new())]
    qos_autodispose_unregistered_instances: Option<bool>,
    /// Throw away what is left of an instance so long after its last publisher left it
    #[arg(long, value_name = "SECONDS", value_parser = not_negative_seconds)]
    qos_autopurge_nowriter_samples_delay_seconds: Option<Duration>,
    /// Throw away what is left of an instance so long after it was disposed of
    #[arg(long, value_name = "SECONDS", value_parser = not_negative_seconds)]
    qos_autopurge_disposed_samples_delay_seconds: Option<Duration>,
    /// Access scope of the presentation
    #[arg(long, value_name = "SCOPE", value_parser = PossibleValuesParser::new(SCOPE).map(|word| scope(&word)))]
    qos_presentation: Option<u8>,
    /// See sets of coherent changes whole or not at all
    #[arg(long)]
    qos_coherent_access: bool,
    /// See changes in the order of their publisher, in the access scope
    #[arg(long)]
    qos_ordered_access: bool,
    /// How messages are written, or the only way they are taken [default: xcdr1; both are taken]
    #[arg(long, value_name = "VERSION", value_parser = PossibleValuesParser::new(REPRESENTATION).map(|word| representation(&word)))]
    qos_representation: Option<Representation>,
    /// Differentiated services code point of the datagrams, 1 to 63 (46: expedited)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    qos_transport_priority: Option<i32>,
    /// Text announced with the endpoint
    #[arg(long, value_name = "TEXT")]
    qos_user_data: Option<String>,
    /// Text announced with the topic
    #[arg(long, value_name = "TEXT")]
    qos_topic_data: Option<String>,
    /// Text announced with the group
    #[arg(long, value_name = "TEXT")]
    qos_group_data: Option<String>,
}

impl DdsFlags {
    /// The profile with what was given here.
    pub fn apply(&self, mut qos: QosProfile) -> Result<QosProfile> {
        if !self.qos_partition.is_empty() {
            qos.partition.clone_from(&self.qos_partition);
        }
        set(&mut qos.ownership, self.qos_ownership);
        set(&mut qos.ownership_strength, self.qos_ownership_strength);
        set(&mut qos.destination_order, self.qos_destination_order);
        set(
            &mut qos.time_based_filter,
            self.qos_time_based_filter_seconds,
        );
        set(&mut qos.deadline, self.qos_deadline_seconds.map(Some));
        set(&mut qos.lifespan, self.qos_lifespan_seconds.map(Some));
        set(&mut qos.latency_budget, self.qos_latency_budget_seconds);
        let most = self.qos_max_samples.map(Some);
        set(&mut qos.resource_limits.max_samples, most);
        let most = self.qos_max_instances.map(Some);
        set(&mut qos.resource_limits.max_instances, most);
        let most = self.qos_max_samples_per_instance.map(Some);
        set(&mut qos.resource_limits.max_samples_per_instance, most);
        set(
            &mut qos.autodispose_unregistered_instances,
            self.qos_autodispose_unregistered_instances,
        );
        let delay = self.qos_autopurge_nowriter_samples_delay_seconds;
        set(&mut qos.autopurge_nowriter_samples_delay, delay.map(Some));
        let delay = self.qos_autopurge_disposed_samples_delay_seconds;
        set(&mut qos.autopurge_disposed_samples_delay, delay.map(Some));
        set(&mut qos.presentation.access_scope, self.qos_presentation);
        qos.presentation.coherent |= self.qos_coherent_access;
        qos.presentation.ordered |= self.qos_ordered_access;
        set(&mut qos.representation, self.qos_representation.map(Some));
        set(&mut qos.transport_priority, self.qos_transport_priority);
        let bytes = |text: &Option<String>| text.clone().map(String::into_bytes);
        set(&mut qos.user_data, bytes(&self.qos_user_data));
        set(&mut qos.topic_data, bytes(&self.qos_topic_data));
        set(&mut qos.group_data, bytes(&self.qos_group_data));
        if self.qos_ownership_strength.is_some() && qos.ownership == Ownership::Shared {
            anyhow::bail!(
                "--qos-ownership-strength ranks exclusive publishers; add --qos-ownership exclusive"
            );
        }
        Ok(qos)
    }
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

fn ownership(word: &str) -> Ownership {
    match word {
        "exclusive" => Ownership::Exclusive,
        _ => Ownership::Shared,
    }
}

fn order(word: &str) -> DestinationOrder {
    match word {
        "by_source" => DestinationOrder::BySource,
        _ => DestinationOrder::ByReception,
    }
}

fn representation(word: &str) -> Representation {
    match word {
        "xcdr2" => Representation::Xcdr2,
        _ => Representation::Xcdr1,
    }
}

fn scope(word: &str) -> u8 {
    match word {
        "instance" => 0,
        "topic" => 1,
        _ => 2,
    }
}
