//! `pteros component standalone`.

use super::container::ContainerFlags;
use super::load_flags::LoadFlags;
use crate::cli_context::CliContext;
use crate::session::UnusedGraphFlags;
use anyhow::Result;
use clap::Args;

/// Arguments of `component standalone`.
#[derive(Debug, Args)]
pub struct Standalone {
    /// Name of the container's node [default: standalone_container_ and a number]
    #[arg(short = 'c', long, value_name = "NAME")]
    container_node_name: Option<String>,
    #[command(flatten)]
    unused: UnusedGraphFlags,
    #[command(flatten)]
    container: ContainerFlags,
    #[command(flatten)]
    flags: LoadFlags,
}

impl Standalone {
    /// Becomes a container that loads only this component at its start.
    pub fn run(self, _: &CliContext) -> Result<()> {
        let own = format!("standalone_container_{}", std::process::id());
        let name = self.container_node_name.unwrap_or(own);
        let mut words = self.flags.container_arguments();
        words.extend(["--ros-args".into(), "-r".into(), format!("__node:={name}")]);
        self.container.become_container(&words)
    }
}
