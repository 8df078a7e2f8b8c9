//! Runs a built-in node in this process, as `pteros run` does where the real package is
//! not installed.

use crate::console::Console;
use anyhow::{Context as _, Error, Result, anyhow};
use pteros::args::{Arguments, ParameterArgument, RemapKind, RemapRule};
use pteros::{Context, ContextOptions, info};
use pteros_launch::built_in_nodes::SWITCH;
use pteros_nodes::CommandRequest;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whether this build has the built-in nodes.
pub const HAS_NODES: bool = true;

/// Runs the node until a signal ends it. The words are those after its name, with
/// `--ros-args`.
///
/// # Errors
/// Wrong arguments or parameters.
pub fn run(package: &str, executable: &str, words: Vec<OsString>) -> Result<()> {
    let node = pteros_nodes::find(package, executable)
        .ok_or_else(|| anyhow!("there is no built-in node {package}/{executable}"))?;
    let (arguments, rest) = Arguments::parse_os(words)?;
    let without_effect = without_effect_on_page(&arguments);
    let options = ContextOptions {
        arguments,
        use_environment: true,
        ..ContextOptions::default()
    };
    let context = Context::with_options(options)?;
    let text = |word: OsString| word.to_string_lossy().into_owned();
    let rest: Vec<String> = rest.into_iter().map(text).collect();
    let running = match node.start(&context, &rest) {
        Ok(running) => running,
        Err(error) => {
            drop(context);
            return match error.downcast::<CommandRequest>() {
                Ok(request) => run_instead(package, *request, &without_effect),
                Err(error) => Err(anyhow!("{package}/{executable}: {error}")),
            };
        }
    };
    info!(
        running.node().logger(),
        "built-in node of Pteros, because package {package} is not installed; {SWITCH}=off leaves it out"
    );
    running.node().spin();
    Ok(())
}

/// Does what a command line asks for in place of a node.
fn run_instead(package: &str, request: CommandRequest, without_effect: &[String]) -> Result<()> {
    let console = Console { json: false };
    let words = match request {
        CommandRequest::Usage(usage) => return Ok(console.line(usage)?),
        CommandRequest::View(words) => words,
    };
    let program = std::env::current_exe()?;
    console.note(format!(
        "the page of pteros view stands in for {package}, because that package is not installed; {SWITCH}=off leaves it out"
    ));
    if words.iter().any(|word| word == "publish") {
        console.note("the page may publish messages (--allow publish)");
    }
    if !without_effect.is_empty() {
        console.note(format!(
            "these arguments have no effect on the page: {}",
            without_effect.join(" ")
        ));
    }
    let error = Command::new(&program).arg("view").args(words).exec();
    Err(Error::new(error)).with_context(|| format!("start {}", program.display()))
}

/// The names and parameters that the page does not take. The name of the node does not
/// matter, and each launch file gives one.
fn without_effect_on_page(arguments: &Arguments) -> Vec<String> {
    let remap = |rule: &RemapRule| {
        let from = match rule.kind {
            RemapKind::Node => return None,
            RemapKind::Namespace => "__ns",
            _ => &rule.pattern,
        };
        Some(format!("-r {from}:={}", rule.replacement))
    };
    let parameter = |argument: &ParameterArgument| match argument {
        ParameterArgument::Value(one) => format!("-p {}:={}", one.name, one.value),
        ParameterArgument::File(file) => format!("--params-file {}", file.display()),
    };
    let remaps = arguments.remaps.iter().filter_map(remap);
    remaps
        .chain(arguments.parameters.iter().map(parameter))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_launch::built_in_nodes::NAMES;

    #[test]
    fn arguments_without_effect_on_the_page_are_named() {
        let line = "--ros-args -r __node:=rviz -r __ns:=/robot -r /tf:=tf -p use_sim_time:=true --params-file a.yaml";
        let (arguments, _) = Arguments::parse(line.split(' ')).unwrap();
        let expected = "-r __ns:=/robot -r /tf:=tf -p use_sim_time:=true --params-file a.yaml";
        assert_eq!(without_effect_on_page(&arguments).join(" "), expected);
    }

    #[test]
    fn launch_files_know_every_built_in_node() {
        let nodes = pteros_nodes::NODES.iter();
        let nodes: Vec<_> = nodes.map(|node| (node.package, node.executable)).collect();
        assert_eq!(nodes, NAMES);
    }
}
