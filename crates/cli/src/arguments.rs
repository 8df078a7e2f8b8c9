//! Command line grammar: nouns, verbs and the global flags.

use crate::action::ActionVerb;
use crate::bag::BagVerb;
use crate::bridge::BridgeVerb;
use crate::cli_context::CliContext;
use crate::completion::Completion;
use crate::component::ComponentVerb;
use crate::daemon::DaemonVerb;
use crate::demo::Demo;
use crate::doctor::Doctor;
use crate::interface::InterfaceVerb;
use crate::lab::Lab;
use crate::launch::Launch;
use crate::lifecycle::LifecycleVerb;
use crate::multicast::MulticastVerb;
use crate::new::New;
use crate::node::NodeVerb;
use crate::param::ParamVerb;
use crate::pkg::PkgVerb;
use crate::rmw::RmwVerb;
use crate::router::RouterVerb;
use crate::run::Run;
use crate::security::SecurityVerb;
use crate::service::Service;
use crate::store::StoreVerb;
use crate::tf::TfVerb;
use crate::topic::Topic;
use crate::trace::TraceVerb;
use crate::view::ViewVerb;
use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use pteros::log::Severity;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// ROS 2 command line: inspect, run and debug a graph of nodes
#[derive(Debug, Parser)]
#[command(
    name = "pteros",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Start with: pteros demo\nROS arguments for the node of a verb go last: --ros-args -r __ns:=/robot"
)]
pub struct CommandLine {
    #[command(flatten)]
    pub global: GlobalFlags,
    #[command(subcommand)]
    pub noun: Noun,
}

impl CommandLine {
    /// Parses the words without `--ros-args`. A negative number after a flag is
    /// parsed as its value, so that the error is about the number.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let command = with_short_help(with_negative_numbers(Self::command()));
        let words = with_long_forms(words.into_iter().collect());
        let words = with_separator(words);
        let takes_yaml = takes_yaml(&words);
        let matches = command.try_get_matches_from(words);
        let matches = matches.map_err(|error| with_tip(error, takes_yaml));
        Self::from_arg_matches(&matches?)
    }
}

/// Puts `--` behind the program of `run`, so that `--help` and other words that this
/// command knows are the program's.
fn with_separator(mut words: Vec<OsString>) -> Vec<OsString> {
    let takes_value = |word: &OsString| word == "--interfaces" || word == "--prefix";
    let mut plain = 0;
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| *word != "--") {
        match (plain, is_flag(word)) {
            (_, true) if takes_value(word) => at += 1,
            (_, true) => {}
            (0, false) if word != "run" => break,
            // The noun, the package and the program.
            (2, false) if words.len() > at + 1 && words[at + 1] != "--" => {
                words.insert(at + 1, "--".into());
                break;
            }
            (_, false) => plain += 1,
        }
        at += 1;
    }
    words
}

/// Verbs whose last word is YAML.
const VERBS_WITH_YAML: [(&str, &str); 4] = [
    ("topic", "pub"),
    ("service", "call"),
    ("action", "send_goal"),
    ("param", "set"),
];

fn takes_yaml(words: &[OsString]) -> bool {
    let mut plain = words.iter().skip(1).filter(|word| !is_flag(word));
    let (noun, verb) = (plain.next(), plain.next());
    VERBS_WITH_YAML
        .iter()
        .any(|(of, with)| noun.is_some_and(|noun| noun == of) && verb.is_some_and(|v| v == with))
}

/// Adds to the error of a ROS argument that it follows `--ros-args`, and to that of a word
/// too many of a verb with YAML that values with blanks need quotes.
fn with_tip(mut error: clap::Error, takes_yaml: bool) -> clap::Error {
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => return error,
    };
    let tip = if ROS_ARGUMENTS.contains(&&*word) || word.contains(":=") {
        "ROS arguments follow --ros-args, as in: --ros-args -r chatter:=news -p rate:=2"
    } else if word.starts_with('-') || !takes_yaml {
        return error;
    } else {
        "a value with blanks is one word in quotes, as 'data: hi' or '[1, 2]'"
    };
    if error.kind() == ErrorKind::UnknownArgument {
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Flags that only nodes take, and only behind `--ros-args`.
const ROS_ARGUMENTS: [&str; 5] = ["-r", "--remap", "-p", "--param", "--params-file"];

/// Short forms of two letters that ros2 doctor has: whether of `doctor hello`, the
/// short form, the long form.
pub const SHORT_FORMS: [(bool, &str, &str); 5] = [
    (false, "-rf", "--report-failed"),
    (false, "-iw", "--include-warnings"),
    (false, "-ep", "--exclude-packages"),
    (true, "-ep", "--emit-period"),
    (true, "-pp", "--print-period"),
];

/// Whether a word begins with a dash.
pub fn is_flag(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Replaces the short forms of two letters of `doctor` by the long forms, since
/// `clap` has none.
fn with_long_forms(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_noun = |word: &OsString| word == "doctor" || word == "wtf";
    let mut nouns = words.iter().skip(1).filter(|word| !is_flag(word));
    if !nouns.next().is_some_and(is_noun) {
        return words;
    }
    let is_hello = nouns.next().is_some_and(|word| word == "hello");
    for word in &mut words {
        let long = SHORT_FORMS
            .iter()
            .find(|(of_hello, short, _)| *of_hello == is_hello && *word == **short);
        if let Some((.., long)) = long {
            *word = (*long).into();
        }
    }
    words
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

/// Leaves options out of `-h` that few lines need: those below a heading, as QoS
/// policies, and those that only ros2 has a use for. `--help` has all.
fn with_short_help(command: Command) -> Command {
    command
        .mut_args(|arg| {
            let is_everywhere = arg.get_help_heading() == Some(EVERYWHERE);
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let is_rare = arg.get_help_heading().is_some() && !is_everywhere
                || help.starts_with("Accepted for compatibility");
            if is_rare {
                arg.hide_short_help(true)
            } else {
                arg
            }
        })
        .mut_subcommands(with_short_help)
}

/// Heading of the global flags.
const EVERYWHERE: &str = "Everywhere";

/// Global flags, accepted at any position.
#[derive(Debug, Args)]
pub struct GlobalFlags {
    /// Print JSON: one document, or one line per result for continuous output
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// Folder with further interface definitions (package/msg/Name.msg …); may be repeated
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    pub interfaces: Vec<PathBuf>,
}

/// The noun of a command.
#[derive(Debug, Subcommand)]
pub enum Noun {
    /// Start a small robot graph and show its data flow; or a talker, or a listener
    Demo(Demo),
    /// Run a launch file: XML, YAML or Python, as in ROS 2
    #[command(arg_required_else_help = true)]
    Launch(Box<Launch>),
    /// Run a program of a package
    #[command(arg_required_else_help = true)]
    Run(Run),
    /// List packages and their programs, and create packages
    #[command(subcommand, arg_required_else_help = true)]
    Pkg(PkgVerb),
    /// Create a package with one node, in Rust or Python
    #[command(arg_required_else_help = true)]
    New(New),
    /// List, print, publish and measure topics
    #[command(arg_required_else_help = true)]
    Topic(Box<Topic>),
    /// List nodes and show their topics, services and actions
    #[command(subcommand, arg_required_else_help = true)]
    Node(NodeVerb),
    /// List, print and set the parameters of nodes
    #[command(subcommand, arg_required_else_help = true)]
    Param(ParamVerb),
    /// List, show and call services
    #[command(arg_required_else_help = true)]
    Service(Box<Service>),
    /// List actions and send goals
    #[command(subcommand, arg_required_else_help = true)]
    Action(ActionVerb),
    /// Show and change the states of managed nodes
    #[command(subcommand, arg_required_else_help = true)]
    Lifecycle(LifecycleVerb),
    /// Run component containers, and load components into them
    #[command(subcommand, arg_required_else_help = true)]
    Component(ComponentVerb),
    /// Show message, service and action types
    #[command(subcommand, arg_required_else_help = true)]
    Interface(InterfaceVerb),
    /// Show transforms and the frame tree
    #[command(subcommand, arg_required_else_help = true)]
    Tf(TfVerb),
    /// Show the graph in a browser, and serve Foxglove and Lichtblick
    View(ViewVerb),
    /// Show and remove stored samples of transient and persistent publishers
    #[command(subcommand, arg_required_else_help = true)]
    Store(StoreVerb),
    /// Create and check keystores for secured nodes
    #[command(subcommand, arg_required_else_help = true)]
    Security(SecurityVerb),
    /// Repeat published ROS 2 measurements, with other stacks for comparison
    Lab(Lab),
    /// Record and show message latencies per topic, layer and chain
    #[command(subcommand, arg_required_else_help = true)]
    Trace(TraceVerb),
    /// Install and check the plug-in that runs rclcpp and rclpy on Pteros
    #[command(subcommand, arg_required_else_help = true)]
    Rmw(RmwVerb),
    /// Run a Zenoh router, as rmw_zenohd
    Router(RouterVerb),
    /// Join an RTPS domain with a Zenoh network, for nodes that have one wire each
    Bridge(BridgeVerb),
    /// Find problems that keep nodes from communicating, and suggest fixes
    #[command(visible_alias = "wtf")]
    Doctor(Doctor),
    /// Send or receive one UDP multicast datagram, to test the network
    #[command(subcommand, arg_required_else_help = true)]
    Multicast(MulticastVerb),
    /// Verbs of ros2's daemon, for scripts: Pteros has none
    #[command(subcommand, arg_required_else_help = true)]
    Daemon(DaemonVerb),
    /// Record topics into MCAP files, and play, show and copy them
    #[command(subcommand, arg_required_else_help = true)]
    Bag(BagVerb),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Write man pages
    #[cfg(feature = "man")]
    #[command(hide = true)]
    Man(crate::man::Man),
}

impl Noun {
    /// The value of an own option `--log-level`, beside that of `--ros-args`.
    pub fn log_level(&self) -> Option<Severity> {
        match self {
            Self::Bag(verb) => verb.log_level(),
            _ => None,
        }
    }

    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Demo(verb) => verb.run(cli),
            Self::Launch(verb) => verb.run(cli),
            Self::Run(verb) => verb.run(cli),
            Self::Pkg(verb) => verb.run(cli),
            Self::New(verb) => verb.run(cli),
            Self::Topic(verb) => verb.run(cli),
            Self::Node(verb) => verb.run(cli),
            Self::Param(verb) => verb.run(cli),
            Self::Service(verb) => verb.run(cli),
            Self::Action(verb) => verb.run(cli),
            Self::Lifecycle(verb) => verb.run(cli),
            Self::Component(verb) => verb.run(cli),
            Self::Interface(verb) => verb.run(cli),
            Self::Tf(verb) => verb.run(cli),
            Self::View(verb) => verb.run(cli),
            Self::Store(verb) => verb.run(cli),
            Self::Security(verb) => verb.run(cli),
            Self::Lab(verb) => verb.run(cli),
            Self::Trace(verb) => verb.run(cli),
            Self::Rmw(verb) => verb.run(cli),
            Self::Router(verb) => verb.run(cli),
            Self::Bridge(verb) => verb.run(cli),
            Self::Doctor(verb) => verb.run(cli),
            Self::Multicast(verb) => verb.run(cli),
            Self::Daemon(verb) => verb.run(cli),
            Self::Bag(verb) => verb.run(cli),
            Self::Completion(verb) => verb.run(cli),
            #[cfg(feature = "man")]
            Self::Man(verb) => verb.run(cli),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_word_too_many_gets_the_tip_of_its_kind() {
        let text = |line: &str| CommandLine::read(words(line)).unwrap_err().to_string();
        for line in [
            "x demo talker -r a:=b",
            "x topic list a:=b",
            "x node list -p a:=1",
        ] {
            assert!(
                text(line).contains("ROS arguments follow --ros-args"),
                "{line}"
            );
        }
        let unquoted = text("x param set /n speed 1 2");
        assert!(unquoted.contains("one word in quotes"), "{unquoted}");
        let plain = text("x node list -z");
        assert!(!plain.contains("tip:"), "{plain}");
    }

    #[test]
    fn short_forms_of_two_letters_are_those_of_ros2_doctor() {
        for (short, long) in [
            (
                "x doctor -iw -ep",
                "x doctor --include-warnings --exclude-packages",
            ),
            ("x --json wtf -rf", "x --json wtf --report-failed"),
            (
                "x doctor hello -ep 1 -pp 2",
                "x doctor hello --emit-period 1 --print-period 2",
            ),
            ("x topic pub /t T -ep", "x topic pub /t T -ep"),
        ] {
            assert_eq!(with_long_forms(words(short)), words(long));
        }
    }

    #[test]
    fn the_words_of_a_program_are_not_this_commands() {
        for (line, separated) in [
            ("x run box say --help", "x run box say -- --help"),
            (
                "x run --prefix gdb --json box say -V a",
                "x run --prefix gdb --json box say -- -V a",
            ),
            (
                "x --interfaces d run box say --json",
                "x --interfaces d run box say -- --json",
            ),
            ("x run box say -- -h", "x run box say -- -h"),
            ("x run box say", "x run box say"),
            ("x run box --help", "x run box --help"),
            ("x run --help", "x run --help"),
            ("x topic echo /run a --help", "x topic echo /run a --help"),
        ] {
            assert_eq!(with_separator(words(line)), words(separated), "{line}");
        }
    }

    #[test]
    fn the_grammar_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
