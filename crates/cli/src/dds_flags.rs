//! QoS flags for DDS policies that ros2's command line lacks.

use anyhow::Result;
use clap::Args;
use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use pteros::qos::{DestinationOrder, Ownership, QosProfile, Representation};
use std::time::Duration;

use crate::value_parsers::{non_negative_seconds, positive_seconds};

const OWNERSHIP: [&str; 2] = ["shared", "exclusive"];
const ORDER: [&str; 2] = ["by_reception", "by_source"];
const REPRESENTATION: [&str; 2] = ["xcdr1", "xcdr2"];
const SCOPE: [&str; 3] = ["instance", "topic", "group"];

/// Overrides of the preset in these policies.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Quality of service policies that ros2 has no flags for")]
pub struct DdsFlags {
    /// Partition; may be repeated, and contain * and ? on one side
    #[arg(long, value_name = "NAME")]
    qos_partition: Vec<String>,
    /// Whether all publishers are received or only the strongest one
    #[arg(long, value_name = "OWNERSHIP", value_parser = PossibleValuesParser::new(OWNERSHIP).map(|word| ownership(&word)))]
    qos_ownership: Option<Ownership>,
    /// Strength of an exclusive publisher
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    qos_ownership_strength: Option<i32>,
    /// Whether samples are ordered by reception or by source timestamp
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(ORDER).map(|word| order(&word)))]
    qos_destination_order: Option<DestinationOrder>,
    /// Smallest time between two received messages
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_time_based_filter_seconds: Option<Duration>,
    /// Largest time between two messages
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_deadline_seconds: Option<Duration>,
    /// Lifespan: drop messages older than this
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    qos_lifespan_seconds: Option<Duration>,
    /// How long small messages may wait to be batched; a subscription matches no
    /// larger value than its own
    #[arg(long, value_name = "SECONDS", value_parser = non_negative_seconds)]
    qos_latency_budget_seconds: Option<Duration>,
    /// Largest number of kept messages
    #[arg(long, value_name = "N")]
    qos_max_samples: Option<u32>,
    /// Largest number of instances (types with a key)
    #[arg(long, value_name = "N")]
    qos_max_instances: Option<u32>,
    /// Largest number of kept messages per instance
    #[arg(long, value_name = "N")]
    qos_max_samples_per_instance: Option<u32>,
    /// Whether a publisher that unregisters an instance, or ends, also disposes it
    /// [default: true]
    #[arg(long, value_name = "YES", value_parser = BoolishValueParser::new())]
    qos_autodispose_unregistered_instances: Option<bool>,
    /// Drop the remaining samples of an instance this long after its last publisher
    /// left
    #[arg(long, value_name = "SECONDS", value_parser = non_negative_seconds)]
    qos_autopurge_nowriter_samples_delay_seconds: Option<Duration>,
    /// Drop the remaining samples of an instance this long after it was disposed
    #[arg(long, value_name = "SECONDS", value_parser = non_negative_seconds)]
    qos_autopurge_disposed_samples_delay_seconds: Option<Duration>,
    /// Access scope of the presentation policy
    #[arg(long, value_name = "SCOPE", value_parser = PossibleValuesParser::new(SCOPE).map(|word| scope(&word)))]
    qos_presentation: Option<u8>,
    /// Deliver coherent sets completely or not at all
    #[arg(long)]
    qos_coherent_access: bool,
    /// Deliver samples in publication order within the access scope
    #[arg(long)]
    qos_ordered_access: bool,
    /// Data representation of a publisher, or the only one that a subscription
    /// accepts [default: xcdr1; both are accepted]
    #[arg(long, value_name = "VERSION", value_parser = PossibleValuesParser::new(REPRESENTATION).map(|word| representation(&word)))]
    qos_representation: Option<Representation>,
    /// DSCP value of the datagrams, 1 to 63 (46: expedited forwarding)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    qos_transport_priority: Option<i32>,
    /// User data announced with the endpoint
    #[arg(long, value_name = "TEXT")]
    qos_user_data: Option<String>,
    /// Topic data announced with the topic
    #[arg(long, value_name = "TEXT")]
    qos_topic_data: Option<String>,
    /// Group data announced with the publisher or subscriber
    #[arg(long, value_name = "TEXT")]
    qos_group_data: Option<String>,
}

impl DdsFlags {
    /// The profile with these overrides.
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
                "--qos-ownership-strength applies to exclusive publishers; add --qos-ownership exclusive"
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
