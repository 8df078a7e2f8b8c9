//! Command line of the shapes program: the options of the OMG program, then further
//! ones.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use pteros::qos::{
    DestinationOrder, DurabilityPolicy, LivelinessPolicy, Ownership, Presentation, QosProfile,
    Representation, ResourceLimits,
};

/// Final action of a publisher on its instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FinalState {
    /// Unregister them.
    #[value(name = "u")]
    Unregister,
    /// Dispose them.
    #[value(name = "d")]
    Dispose,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Durability {
    #[value(name = "v")]
    Volatile,
    #[value(name = "l")]
    TransientLocal,
    #[value(name = "t")]
    Transient,
    #[value(name = "p")]
    Persistent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Liveliness {
    #[value(name = "a")]
    Automatic,
    #[value(name = "p")]
    ManualByParticipant,
    #[value(name = "t")]
    ManualByTopic,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scope {
    #[value(name = "i")]
    Instance,
    #[value(name = "t")]
    Topic,
    #[value(name = "g")]
    Group,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Order {
    #[value(name = "r")]
    Reception,
    #[value(name = "s")]
    Source,
}

/// Publishes or subscribes shapes (DDS topics Square, Circle, Triangle; type
/// ShapeType, key: color).
#[derive(Parser, Debug)]
#[command(name = "shapes")]
pub struct Arguments {
    /// Publish samples
    #[arg(
        short = 'P',
        required_unless_present = "subscribe",
        conflicts_with = "subscribe"
    )]
    pub publish: bool,
    /// Subscribe samples
    #[arg(short = 'S')]
    pub subscribe: bool,
    /// Domain id [default: ROS_DOMAIN_ID, else 0]
    #[arg(short)]
    pub domain: Option<u32>,
    /// Best effort reliability
    #[arg(short, conflicts_with = "reliable")]
    pub best_effort: bool,
    /// Reliable reliability (the default)
    #[arg(short)]
    pub reliable: bool,
    /// History depth; 0 keeps all
    #[arg(short = 'k', value_name = "DEPTH")]
    pub depth: Option<usize>,
    /// Deadline; 0 is off
    #[arg(short = 'f', value_name = "MS", default_value_t = 0)]
    pub deadline: u64,
    /// Exclusive ownership with this strength; -1 is shared
    #[arg(short, value_name = "STRENGTH", default_value_t = -1, allow_negative_numbers = true)]
    pub strength: i32,
    /// Topic name
    #[arg(short)]
    pub topic: String,
    /// Color to publish, BLUE by default; the only color to subscribe
    #[arg(short)]
    pub color: Option<String>,
    /// Content filter, for example "shapesize > 20 AND color = 'RED'"
    #[arg(
        long,
        value_name = "EXPRESSION",
        requires = "subscribe",
        conflicts_with = "color"
    )]
    pub cft: Option<String>,
    /// Partition; may be repeated
    #[arg(short)]
    pub partition: Vec<String>,
    /// Durability: volatile, transient local, transient, persistent
    #[arg(short = 'D', default_value = "v")]
    pub durability: Durability,
    /// Data representation: 1 for XCDR1, 2 for XCDR2; without it subscribers accept
    /// both
    #[arg(short = 'x', value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub representation: Option<u8>,
    /// Print the publisher's samples
    #[arg(short = 'w')]
    pub print_writer_samples: bool,
    /// Size of the shape; 0 grows with every sample
    #[arg(short = 'z', value_name = "SIZE", default_value_t = 20)]
    pub shapesize: i32,
    /// Pause between writes
    #[arg(long, value_name = "MS", default_value_t = 33)]
    pub write_period: u64,
    /// Period of reading samples
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub read_period: u64,
    /// Time based filter; 0 is off
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub time_filter: u64,
    /// Lifespan of a sample; 0 is off
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub lifespan: u64,
    /// Number of writes or reads; without it until Ctrl-C
    #[arg(long, value_name = "N")]
    pub num_iterations: Option<u64>,
    /// Number of instances of a publisher: BLUE, BLUE1, ...
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub num_instances: usize,
    /// Number of topics with one endpoint each: Square, Square1, ...
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub num_topics: usize,
    /// Final action of a publisher on its instances
    #[arg(long, value_name = "STATE")]
    pub final_instance_state: Option<FinalState>,
    /// Presentation: access scope
    #[arg(long, value_name = "SCOPE", default_value = "i")]
    pub access_scope: Scope,
    /// Presentation: coherent access, sets are delivered completely or not at all
    #[arg(long)]
    pub coherent: bool,
    /// Presentation: ordered access, samples are delivered in their order
    #[arg(long)]
    pub ordered: bool,
    /// Number of writes in a coherent set; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub coherent_sample_count: u64,
    /// Bytes added to each sample
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub additional_payload_size: usize,
    /// With -z 0: sizes stay in 1 ... N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub size_modulo: Option<i32>,

    /// Folder of the stores of transient and persistent publishers
    #[arg(long, value_name = "FOLDER", help_heading = "More policies")]
    pub store_folder: Option<std::path::PathBuf>,
    /// Liveliness: automatic, manual by participant, manual by topic
    #[arg(long, default_value = "a", help_heading = "More policies")]
    pub liveliness: Liveliness,
    /// Liveliness lease; 0 is infinite
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 0,
        help_heading = "More policies"
    )]
    pub lease: u64,
    /// Destination order: by reception or by source timestamp
    #[arg(long, default_value = "r", help_heading = "More policies")]
    pub destination_order: Order,
    /// Latency budget
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 0,
        help_heading = "More policies"
    )]
    pub latency_budget: u64,
    /// DSCP value of the datagrams, 1 to 63
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "More policies"
    )]
    pub transport_priority: i32,
    /// Resource limits: samples over all instances
    #[arg(long, value_name = "N", help_heading = "More policies")]
    pub max_samples: Option<u32>,
    /// Resource limits: instances
    #[arg(long, value_name = "N", help_heading = "More policies")]
    pub max_instances: Option<u32>,
    /// Resource limits: samples per instance
    #[arg(long, value_name = "N", help_heading = "More policies")]
    pub max_samples_per_instance: Option<u32>,
    /// Unregistering an instance does not dispose of it
    #[arg(long, help_heading = "More policies")]
    pub no_autodispose: bool,
    /// Purge samples of instances without writers after this time; without it never
    #[arg(long, value_name = "MS", help_heading = "More policies")]
    pub autopurge_nowriter: Option<u64>,
    /// Purge samples of disposed instances after this time; without it never
    #[arg(long, value_name = "MS", help_heading = "More policies")]
    pub autopurge_disposed: Option<u64>,
    /// User data
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        help_heading = "More policies"
    )]
    pub user_data: String,
    /// Topic data
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        help_heading = "More policies"
    )]
    pub topic_data: String,
    /// Group data
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        help_heading = "More policies"
    )]
    pub group_data: String,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected 1 or more".into()),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("{error}")),
    }
}

/// A duration in milliseconds; zero is none.
fn optional_duration(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

impl Arguments {
    /// The color to publish.
    pub fn color(&self) -> &str {
        self.color.as_deref().unwrap_or("BLUE")
    }

    /// The presentation policy.
    pub fn presentation(&self) -> Presentation {
        Presentation {
            access_scope: match self.access_scope {
                Scope::Instance => 0,
                Scope::Topic => 1,
                Scope::Group => 2,
            },
            coherent: self.coherent,
            ordered: self.ordered,
        }
    }

    /// All options as one QoS profile.
    pub fn profile(&self) -> anyhow::Result<QosProfile> {
        let mut profile = QosProfile::default().avoid_ros_namespace_conventions();
        profile = if self.best_effort {
            profile.best_effort()
        } else {
            profile.reliable()
        };
        profile = match self.depth {
            None => profile,
            Some(0) => profile.keep_all(),
            Some(depth) => profile.keep_last(depth),
        };
        profile.deadline = optional_duration(self.deadline);
        profile.lifespan = optional_duration(self.lifespan);
        profile.liveliness_lease = optional_duration(self.lease);
        profile.liveliness = match self.liveliness {
            Liveliness::Automatic => LivelinessPolicy::Automatic,
            Liveliness::ManualByParticipant => LivelinessPolicy::ManualByParticipant,
            Liveliness::ManualByTopic => LivelinessPolicy::ManualByTopic,
        };
        profile.durability = match self.durability {
            Durability::Volatile => DurabilityPolicy::Volatile,
            Durability::TransientLocal => DurabilityPolicy::TransientLocal,
            Durability::Transient => DurabilityPolicy::Transient,
            Durability::Persistent => DurabilityPolicy::Persistent,
        };
        if self.strength >= 0 {
            profile.ownership = Ownership::Exclusive;
            profile.ownership_strength = self.strength;
        }
        profile.partition.clone_from(&self.partition);
        profile.time_based_filter = Duration::from_millis(self.time_filter);
        profile.latency_budget = Duration::from_millis(self.latency_budget);
        profile.transport_priority = self.transport_priority;
        profile.destination_order = match self.destination_order {
            Order::Reception => DestinationOrder::ByReception,
            Order::Source => DestinationOrder::BySource,
        };
        profile.resource_limits = ResourceLimits {
            max_samples: self.max_samples,
            max_instances: self.max_instances,
            max_samples_per_instance: self.max_samples_per_instance,
        };
        profile.autodispose_unregistered_instances = !self.no_autodispose;
        profile.autopurge_nowriter_samples_delay =
            self.autopurge_nowriter.map(Duration::from_millis);
        profile.autopurge_disposed_samples_delay =
            self.autopurge_disposed.map(Duration::from_millis);
        profile.presentation = self.presentation();
        profile.representation = self.representation.map(|version| match version {
            1 => Representation::Xcdr1,
            _ => Representation::Xcdr2,
        });
        profile.user_data = self.user_data.clone().into_bytes();
        profile.topic_data = self.topic_data.clone().into_bytes();
        profile.group_data = self.group_data.clone().into_bytes();
        profile.validate()?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("shapes").chain(line.split(' ')))
    }

    #[test]
    fn the_command_lines_of_the_omgs_scripts_are_accepted() {
        for line in [
            "-P -t Square -r -k 1 -D v -s 3",
            "-S -t Square -b -f 600 -p p1",
            "-P -t Square -w -c BLUE -z 0 --size-modulo 50 --num-instances 4 --final-instance-state d",
            "-S -t Circle -s -1 --time-filter 250 --read-period 100 --num-iterations 5",
        ] {
            parse(line).unwrap().profile().unwrap();
        }
        let strong = parse("-P -t Square -s 3").unwrap().profile().unwrap();
        assert_eq!(strong.ownership_strength, 3);
        assert_eq!(strong.ownership, Ownership::Exclusive);
    }

    #[test]
    fn inconsistent_options_are_refused_by_name() {
        for (line, named) in [
            ("-t Square", "-P"),
            ("-P -S -t Square", "-S"),
            ("-P -t Square --num-instances 0", "--num-instances"),
            ("-P -t Square -D x", "x"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(named), "{line}: {error}");
        }
        let contradiction = parse("-S -t Square -f 100 --time-filter 200").unwrap();
        let error = contradiction.profile().unwrap_err().to_string();
        assert!(error.contains("DEADLINE"), "{error}");
    }
}
