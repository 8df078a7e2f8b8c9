//! Candidates of arguments: names of the graph, of interface types and of packages.
//!
//! An argument's id says what it names. Ids are those of the verbs' structs. A failure
//! gives no candidates, because a shell shows no errors.

use crate::action::all_actions;
use crate::cli_context::CliContext;
use crate::component::all_containers;
use crate::console::Console;
use crate::launch::{launch_arguments, launch_files, packages};
use crate::node::node_names;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use pteros::args::Arguments;
use pteros::parameter::{ParameterClient, ParameterValue};
use pteros::service::CallError;
use pteros_container::ComponentIndex;
use std::ffi::OsStr;
use std::time::Duration;

/// How long a node may take to list its parameters.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Candidates of one argument; a shell shows fewer.
const CANDIDATES_MAX: usize = 2_000;

/// The kind of name that an argument takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named {
    Topic,
    Service,
    Action,
    Node,
    Container,
    Parameter,
    ParameterValue,
    MessageType,
    ServiceType,
    ActionType,
    AnyType,
    InterfacePackage,
    ComponentPackage,
    Package,
    /// One that has programs, built-in nodes too.
    PackageOfPrograms,
    Program,
    Launch,
}

/// Adds candidates to all arguments of a command and of its verbs.
pub fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, noun: &str) -> Command {
    let name = command.get_name().to_owned();
    // `mut_arg` would change the order of positional arguments.
    let command =
        command.mut_args(
            |argument: Arg| match named(noun, &name, argument.get_id().as_str()) {
                Some(named) => argument.add(ArgValueCompleter::new(move |current: &OsStr| {
                    complete(named, current)
                })),
                None => argument,
            },
        );
    command.mut_subcommands(|verb| add_below(verb, &name))
}

/// The kind of name that the argument `id` of a verb takes.
fn named(noun: &str, verb: &str, id: &str) -> Option<Named> {
    Some(match (noun, verb, id) {
        // A name that the caller chooses.
        ("topic", "echo" | "pub", "node_name") | ("bag", _, "node_name") => return None,
        ("component" | "pkg", "load" | "standalone" | "create", "node_name") => return None,
        ("pkg", "create", _) => return None,
        (_, _, "topic_name" | "topic_names" | "topics") if noun != "bag" || verb == "record" => {
            Named::Topic
        }
        (_, _, "service_name") => Named::Service,
        (_, _, "action_name") => Named::Action,
        (_, _, "container_node_name") => Named::Container,
        (_, _, "node_name") => Named::Node,
        ("param", _, "parameter_name") => Named::Parameter,
        ("param", "set", "value") => Named::ParameterValue,
        ("topic", _, "message_type") => Named::MessageType,
        (_, _, "service_type") => Named::ServiceType,
        (_, _, "action_type") => Named::ActionType,
        ("interface", _, "type_name") => Named::AnyType,
        ("interface", _, "package_name") => Named::InterfacePackage,
        ("component", _, "package_name") => Named::ComponentPackage,
        (_, "run", "package_name") | ("pkg", "executables", "package_name") => {
            Named::PackageOfPrograms
        }
        ("pkg", _, "package_name") => Named::Package,
        (_, "run", "executable_name") => Named::Program,
        (_, "launch", "file") => Named::Launch,
        _ => return None,
    })
}

fn complete(named: Named, current: &OsStr) -> Vec<CompletionCandidate> {
    let begins = |name: &String| current.to_str().is_none_or(|begin| name.starts_with(begin));
    let mut names: Vec<String> = types_in_use(named).unwrap_or_default();
    names.retain(begins);
    if names.is_empty() {
        names = self::names(named).unwrap_or_default();
        names.retain(begins);
    }
    let mut found: Vec<CompletionCandidate> = names
        .into_iter()
        .take(CANDIDATES_MAX)
        .map(CompletionCandidate::new)
        .collect();
    if named == Named::Launch {
        use clap_complete::engine::ValueCompleter;
        found.extend(PathCompleter::file().complete(current));
    }
    found
}

fn context() -> CliContext {
    CliContext {
        console: Console { json: false },
        interface_folders: Vec::new(),
        arguments: Arguments::default(),
        dds_names: false,
        include_hidden: false,
    }
}

/// The types in the graph of the topic, service or action that the line names. None where it
/// names none, or one that is not there.
fn types_in_use(named: Named) -> Result<Vec<String>> {
    if !matches!(
        named,
        Named::MessageType | Named::ServiceType | Named::ActionType
    ) {
        return Ok(Vec::new());
    }
    let words: Vec<String> = (2..).map_while(positional).collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let session = Session::open(&context(), None)?;
    let graph = session.discover(&DiscoveryFlags::default());
    let known: Vec<(String, Vec<String>)> = match named {
        Named::MessageType => {
            let topics = graph.topics().into_iter();
            topics.map(|one| (one.name, one.types)).collect()
        }
        Named::ServiceType => {
            let services = graph.services().into_iter();
            services.map(|one| (one.name, one.types)).collect()
        }
        _ => {
            let actions = all_actions(&graph).into_iter();
            actions.map(|one| (one.name, one.types)).collect()
        }
    };
    // The value of an option is among the words, too; it is no such name.
    let mut named = words.iter().filter_map(|word| session.topic(word).ok());
    let found = named.find_map(|name| known.iter().find(|(known, _)| *known == name));
    Ok(found.map(|(_, types)| types.clone()).unwrap_or_default())
}

fn names(named: Named) -> Result<Vec<String>> {
    let cli = context();
    Ok(match named {
        Named::Topic | Named::Service | Named::Action | Named::Node | Named::Container => {
            of_graph(&cli, named)?
        }
        Named::Parameter => of_node(&cli, |client, _| client.list(&[], 0, RESPONSE_TIMEOUT))?,
        Named::ParameterValue => of_node(&cli, parameter_values)?,
        Named::MessageType | Named::ServiceType | Named::ActionType | Named::AnyType => {
            let library = cli.library()?;
            let kind = match named {
                Named::MessageType => "/msg/",
                Named::ServiceType => "/srv/",
                Named::ActionType => "/action/",
                _ => "/",
            };
            let names = library.names().filter(|name| name.contains(kind));
            names.map(str::to_owned).collect()
        }
        Named::InterfacePackage => cli
            .library()?
            .packages()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        Named::ComponentPackage => {
            let packages = ComponentIndex::from_environment().packages();
            packages.into_keys().collect()
        }
        Named::Package => packages(&ComponentIndex::from_environment()).names(),
        Named::PackageOfPrograms => {
            let packages = packages(&ComponentIndex::from_environment());
            let built_in = packages.built_in(None).into_iter();
            let built_in = built_in.map(|(package, _)| package.to_owned());
            packages.names().into_iter().chain(built_in).collect()
        }
        Named::Program => {
            let package = positional(1).unwrap_or_default();
            let packages = packages(&ComponentIndex::from_environment());
            let programs = packages.executables(&package).unwrap_or_default();
            let built_in = packages.built_in(Some(&package)).into_iter();
            let built_in = built_in.filter_map(|(_, node)| Some(node.built_in_name()?.to_owned()));
            let programs = programs.into_iter().map(|(name, _)| name);
            programs.chain(built_in).collect()
        }
        Named::Launch => {
            let words: Vec<String> = (1..).map_while(positional).collect();
            let known = packages(&ComponentIndex::from_environment());
            let mut names = launch_arguments(&words);
            names.extend(match words.as_slice() {
                [] | [_] => known.names(),
                _ => Vec::new(),
            });
            if let [package, ..] = words.as_slice() {
                names.extend(launch_files(&known, package));
            }
            names
        }
    })
}

fn of_graph(cli: &CliContext, named: Named) -> Result<Vec<String>> {
    let session = Session::open(cli, None)?;
    let graph = session.discover(&DiscoveryFlags::default());
    let mut names: Vec<String> = match named {
        Named::Topic => graph.topics().into_iter().map(|one| one.name).collect(),
        Named::Service => graph.services().into_iter().map(|one| one.name).collect(),
        Named::Action => all_actions(&graph)
            .into_iter()
            .map(|one| one.name)
            .collect(),
        Named::Container => all_containers(&graph, false),
        _ => node_names(&graph, false),
    };
    names.retain(|name| !pteros::names::is_hidden(name));
    names.sort();
    names.dedup();
    Ok(names)
}

/// Candidates from the answer of the node that the line names. `ask` also gets the words
/// behind that name.
fn of_node(
    cli: &CliContext,
    ask: impl Fn(&ParameterClient, &[String]) -> Result<Vec<String>, CallError> + Sync,
) -> Result<Vec<String>> {
    let words: Vec<String> = (2..).map_while(positional).collect();
    let session = Session::open(cli, None)?;
    let graph = session.discover(&DiscoveryFlags::default());
    let nodes = node_names(&graph, true);
    // The value of an option is among the words, too; it is no such name.
    let full = |word: &String| {
        if word.starts_with('/') {
            word.clone()
        } else {
            format!("/{word}")
        }
    };
    let Some(at) = words.iter().position(|word| nodes.contains(&full(word))) else {
        return Ok(Vec::new());
    };
    let client = ParameterClient::new(&session.node, &full(&words[at]));
    let end = std::time::Instant::now() + RESPONSE_TIMEOUT;
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| ask(&client, &words[at + 1..]));
        while !answer.is_finished() && std::time::Instant::now() < end {
            session.spin_once(RESPONSE_TIMEOUT / 50);
        }
        let answer = answer.join().ok().and_then(Result::ok);
        Ok(answer.unwrap_or_default())
    })
}

/// The value that a parameter has, as `param set` reads it; both of a boolean.
fn parameter_values(client: &ParameterClient, words: &[String]) -> Result<Vec<String>, CallError> {
    let Some(name) = words.last() else {
        return Ok(Vec::new());
    };
    let values = client.get(&[name.as_str()], RESPONSE_TIMEOUT)?;
    Ok(match values.as_slice() {
        [ParameterValue::NotSet] => Vec::new(),
        [ParameterValue::Bool(value)] => vec![value.to_string(), (!value).to_string()],
        values => values.iter().map(ParameterValue::to_yaml).collect(),
    })
}

/// The positional argument `at` of the line that is completed; 0 is the noun.
fn positional(at: usize) -> Option<String> {
    let line = std::env::args().skip_while(|word| word != "--").skip(2);
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok();
    let before = index.and_then(|index| index.parse::<usize>().ok());
    // The word at the cursor is not an argument yet.
    line.take(before.unwrap_or(usize::MAX).saturating_sub(1))
        .filter(|word| !word.starts_with('-') && !word.is_empty())
        .nth(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::CommandLine;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_the_verbs_are_known_by_what_they_name() {
        let mut found = Vec::new();
        collect(&CommandLine::command(), "", &mut found);
        for (line, wanted) in [
            ("topic echo topic_name", Named::Topic),
            ("topic hz topic_name", Named::Topic),
            ("topic pub message_type", Named::MessageType),
            ("service call service_name", Named::Service),
            ("service call service_type", Named::ServiceType),
            ("action send_goal action_name", Named::Action),
            ("param get node_name", Named::Node),
            ("param set parameter_name", Named::Parameter),
            ("param set value", Named::ParameterValue),
            ("node info node_name", Named::Node),
            ("lifecycle set node_name", Named::Node),
            ("bag record topic_names", Named::Topic),
            ("component load container_node_name", Named::Container),
            ("interface show type_name", Named::AnyType),
            ("pteros run package_name", Named::PackageOfPrograms),
            ("pteros run executable_name", Named::Program),
            ("pteros launch file", Named::Launch),
        ] {
            let is_there = found
                .iter()
                .any(|(known, named)| known == line && *named == wanted);
            assert!(is_there, "{line} in {found:#?}");
        }
        assert!(!found.iter().any(|(line, _)| line == "topic pub node_name"));
        assert!(!found.iter().any(|(line, _)| line == "bag record node_name"));
    }

    fn collect(command: &Command, noun: &str, found: &mut Vec<(String, Named)>) {
        let name = command.get_name();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            if let Some(named) = named(noun, name, id) {
                found.push((format!("{noun} {name} {id}").trim().to_owned(), named));
            }
        }
        for verb in command.get_subcommands() {
            collect(verb, name, found);
        }
    }
}
