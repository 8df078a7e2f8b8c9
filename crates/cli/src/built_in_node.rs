//! Runs a built-in node in this process, as `pteros run` does where the real package is
//! not installed.

use anyhow::{Result, anyhow};
use pteros::args::Arguments;
use pteros::{Context, ContextOptions, info};
use pteros_launch::built_in_nodes::SWITCH;
use std::ffi::OsString;

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
    let options = ContextOptions {
        arguments,
        use_environment: true,
        ..ContextOptions::default()
    };
    let context = Context::with_options(options)?;
    let text = |word: OsString| word.to_string_lossy().into_owned();
    let rest: Vec<String> = rest.into_iter().map(text).collect();
    let failed = |error| anyhow!("{package}/{executable}: {error}");
    let running = node.start(&context, &rest).map_err(failed)?;
    info!(
        running.node().logger(),
        "built-in node of Pteros, because package {package} is not installed; {SWITCH}=off leaves it out"
    );
    running.node().spin();
    Ok(())
}

#[cfg(test)]
mod tests {
    use pteros_launch::built_in_nodes::NAMES;

    #[test]
    fn launch_files_know_every_built_in_node() {
        let nodes = pteros_nodes::NODES.iter();
        let nodes: Vec<_> = nodes.map(|node| (node.package, node.executable)).collect();
        assert_eq!(nodes, NAMES);
    }
}
