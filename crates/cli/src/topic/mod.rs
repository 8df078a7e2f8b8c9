//! `pteros topic`: list, watch, publish and measure topics.

mod bandwidth;
mod delay;
pub mod echo;
mod find;
mod hz;
mod info;
pub mod known;
mod list;
mod listening;
mod mismatch;
mod publish;
mod publish_mode;
mod python_filter;
pub mod stamps;
mod type_of;
mod why;
mod window;

pub use window::Window;

use crate::shared::Shared;
use anyhow::Result;
use clap::{Args, Subcommand};

/// `topic` and what all its verbs know.
#[derive(Debug, Args)]
pub struct Topic {
    /// Take and show topic names as DDS has them, without ROS's prefix, namespace and remapping (e.g. Square, rt/chatter)
    #[arg(long, global = true)]
    dds_names: bool,
    #[command(subcommand)]
    verb: TopicVerb,
}

impl Topic {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        self.verb.run(&Shared {
            dds_names: self.dds_names,
            ..shared.clone()
        })
    }
}

/// Verbs of `topic`.
#[derive(Debug, Subcommand)]
pub enum TopicVerb {
    /// List the topics that are published or subscribed to
    List(list::List),
    /// Show a topic's type and its publishers and subscriptions
    Info(info::Info),
    /// Print the messages of a topic
    Echo(Box<echo::Echo>),
    /// Publish messages on a topic
    Pub(Box<publish::Publish>),
    /// Measure how often messages come
    Hz(hz::Hz),
    /// Measure how many bytes come
    Bw(bandwidth::Bandwidth),
    /// Measure how old messages are, by their header's stamp
    Delay(delay::Delay),
    /// List the topics of a type
    Find(find::Find),
    /// Print a topic's type
    Type(type_of::TypeOf),
    /// Say for each publisher and subscription whether they match, and if not, why
    Why(why::Why),
}

impl TopicVerb {
    fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Info(verb) => verb.run(shared),
            Self::Echo(verb) => verb.run(shared),
            Self::Pub(verb) => verb.run(shared),
            Self::Hz(verb) => verb.run(shared),
            Self::Bw(verb) => verb.run(shared),
            Self::Delay(verb) => verb.run(shared),
            Self::Find(verb) => verb.run(shared),
            Self::Type(verb) => verb.run(shared),
            Self::Why(verb) => verb.run(shared),
        }
    }
}
