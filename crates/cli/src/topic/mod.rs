//! `pteros topic`: lists, prints, publishes and measures topics.

mod bandwidth;
mod delay;
pub mod echo;
mod find;
mod hz;
pub mod info;
mod list;
pub mod lookup;
pub mod message_template;
mod mismatch;
mod publish;
mod publish_mode;
mod python_filter;
mod sampling;
mod type_of;
mod why;
mod window;

pub use window::SlidingWindow;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, Subcommand};

/// The noun `topic` with the flags of all its verbs.
#[derive(Debug, Args)]
pub struct Topic {
    /// Use DDS topic names, without ROS's prefix, namespace and remapping (e.g.
    /// Square, rt/chatter)
    #[arg(long, global = true)]
    dds_names: bool,
    /// List and find hidden topics too, whose names have a part that begins with _;
    /// the other verbs always accept them
    #[arg(long, global = true)]
    include_hidden_topics: bool,
    #[command(subcommand)]
    verb: TopicVerb,
}

impl Topic {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        self.verb.run(&CliContext {
            dds_names: self.dds_names,
            include_hidden: self.include_hidden_topics,
            ..cli.clone()
        })
    }
}

/// Verbs of `topic`.
#[derive(Debug, Subcommand)]
pub enum TopicVerb {
    /// List the topics that have publishers or subscriptions
    List(list::List),
    /// Show a topic's type and its publishers and subscriptions
    Info(info::Info),
    /// Print the messages of a topic
    Echo(Box<echo::Echo>),
    /// Publish messages on a topic
    Pub(Box<publish::Publish>),
    /// Measure the message rate of topics
    Hz(hz::Hz),
    /// Measure the bandwidth of a topic
    Bw(bandwidth::Bandwidth),
    /// Measure the age of messages, from the stamp in their header
    Delay(delay::Delay),
    /// List the topics of a type
    Find(find::Find),
    /// Print a topic's type
    Type(type_of::TypeOf),
    /// Show for each publisher and subscription whether they match, and if not, why
    Why(why::Why),
}

impl TopicVerb {
    fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Info(verb) => verb.run(cli),
            Self::Echo(verb) => verb.run(cli),
            Self::Pub(verb) => verb.run(cli),
            Self::Hz(verb) => verb.run(cli),
            Self::Bw(verb) => verb.run(cli),
            Self::Delay(verb) => verb.run(cli),
            Self::Find(verb) => verb.run(cli),
            Self::Type(verb) => verb.run(cli),
            Self::Why(verb) => verb.run(cli),
        }
    }
}
