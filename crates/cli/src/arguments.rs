//! The command line: nouns, verbs and the flags that every verb knows.

use crate::action::ActionVerb;
use crate::completion::Completion;
use crate::component::ComponentVerb;
use crate::demo::Demo;
use crate::doctor::Doctor;
use crate::interface::InterfaceVerb;
use crate::lab::LabVerb;
use crate::launch::Launch;
use crate::lifecycle::LifecycleVerb;
use crate::new::New;
use crate::node::NodeVerb;
use crate::param::ParamVerb;
use crate::pkg::PkgVerb;
use crate::run::Run;
use crate::security::SecurityVerb;
use crate::service::ServiceVerb;
use crate::shared::Shared;
use crate::store::StoreVerb;
use crate::tf::TfVerb;
use crate::topic::Topic;
use crate::trace::TraceVerb;
use anyhow::Result;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;

/// ROS 2 without the weight: look at, talk to and try out a graph of nodes
#[derive(Debug, Parser)]
#[command(
    name = "pteros",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Start with: pteros demo\nROS arguments of the node behind a verb go last: --ros-args -r __ns:=/robot"
)]
pub struct CommandLine {
    #[command(flatten)]
    pub global: GlobalFlags,
    #[command(subcommand)]
    pub noun: Noun,
}

impl CommandLine {
    /// Reads the words after `--ros-args` has been cut out. A negative number
    /// behind a flag is its value, so that the error is about the number.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let command = with_negative_numbers(Self::command());
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|arg| {
            let takes_value = !arg.is_positional() && arg.get_action().takes_values();
            if takes_value {
                arg.allow_negative_numbers(true)
            } else {
                arg
            }
        })
        .mut_subcommands(with_negative_numbers)
}

/// Flags that may stand anywhere.
#[derive(Debug, Args)]
pub struct GlobalFlags {
    /// Answer in JSON: one document, or a line per answer where they keep coming
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// Folder with further interface definitions (package/msg/Name.msg …); may be repeated
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub interfaces: Vec<PathBuf>,
}

/// What the command is about.
#[derive(Debug, Subcommand)]
pub enum Noun {
    /// Start a small robot graph and watch what flows; or a talker, or a listener
    Demo(Demo),
    /// Run a launch file: XML or YAML, as in ROS 2
    #[command(arg_required_else_help = true)]
    Launch(Box<Launch>),
    /// Run a program of a package
    #[command(arg_required_else_help = true)]
    Run(Run),
    /// List packages and their programs
    #[command(subcommand, arg_required_else_help = true)]
    Pkg(PkgVerb),
    /// Make a package of one node, in Rust
    #[command(arg_required_else_help = true)]
    New(New),
    /// List, watch, publish and measure topics
    #[command(arg_required_else_help = true)]
    Topic(Box<Topic>),
    /// List nodes and show what they offer
    #[command(subcommand, arg_required_else_help = true)]
    Node(NodeVerb),
    /// List, print and set the parameters of nodes
    #[command(subcommand, arg_required_else_help = true)]
    Param(ParamVerb),
    /// List and call services
    #[command(subcommand, arg_required_else_help = true)]
    Service(ServiceVerb),
    /// List actions and ask for goals
    #[command(subcommand, arg_required_else_help = true)]
    Action(ActionVerb),
    /// Look at and change the states of managed nodes
    #[command(subcommand, arg_required_else_help = true)]
    Lifecycle(LifecycleVerb),
    /// Run containers, and load components into them
    #[command(subcommand, arg_required_else_help = true)]
    Component(ComponentVerb),
    /// Show message, service and action types
    #[command(subcommand, arg_required_else_help = true)]
    Interface(InterfaceVerb),
    /// See where frames are and how they hang together
    #[command(subcommand, arg_required_else_help = true)]
    Tf(TfVerb),
    /// Look at and remove what transient and persistent publishers have stored
    #[command(subcommand, arg_required_else_help = true)]
    Store(StoreVerb),
    /// Make and check keystores for secured nodes
    #[command(subcommand, arg_required_else_help = true)]
    Security(SecurityVerb),
    /// Repeat what papers measured of ROS 2, beside other stacks
    #[command(subcommand, arg_required_else_help = true)]
    Lab(LabVerb),
    /// Record where messages spend their time, and what comes of them
    #[command(subcommand, arg_required_else_help = true)]
    Trace(TraceVerb),
    /// Look for what keeps nodes from talking, and say what mends it
    #[command(visible_alias = "wtf")]
    Doctor(Doctor),
    /// Print a completion script for a shell
    Completion(Completion),
}

impl Noun {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Demo(verb) => verb.run(shared),
            Self::Launch(verb) => verb.run(shared),
            Self::Run(verb) => verb.run(shared),
            Self::Pkg(verb) => verb.run(shared),
            Self::New(verb) => verb.run(shared),
            Self::Topic(verb) => verb.run(shared),
            Self::Node(verb) => verb.run(shared),
            Self::Param(verb) => verb.run(shared),
            Self::Service(verb) => verb.run(shared),
            Self::Action(verb) => verb.run(shared),
            Self::Lifecycle(verb) => verb.run(shared),
            Self::Component(verb) => verb.run(shared),
            Self::Interface(verb) => verb.run(shared),
            Self::Tf(verb) => verb.run(shared),
            Self::Store(verb) => verb.run(shared),
            Self::Security(verb) => verb.run(shared),
            Self::Lab(verb) => verb.run(shared),
            Self::Trace(verb) => verb.run(shared),
            Self::Doctor(verb) => verb.run(shared),
            Self::Completion(verb) => verb.run(shared),
        }
    }
}
