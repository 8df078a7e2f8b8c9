//! `pteros bag list`: the formats that bags are read from and written to.

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

/// Arguments of `bag list`.
#[derive(Debug, Args)]
pub struct List {
    /// Kind of the plugins to list
    #[arg(value_enum)]
    plugin_type: PluginType,
    /// Say what each is for
    #[arg(short, long)]
    verbose: bool,
}

/// rosbag2's kinds of plug-ins. Those of Pteros are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PluginType {
    /// Formats of files
    Storage,
    /// Conversions of messages
    Converter,
    /// Compression of whole files
    #[value(alias = "compressor")]
    Compression,
    /// Decompression of whole files and of messages
    #[value(alias = "decompressor")]
    Decompression,
}

impl PluginType {
    /// Name and purpose of each.
    fn entries(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Storage => &[
                ("mcap", "MCAP files: read and written"),
                ("sqlite3", "databases of rosbag2: read"),
                ("rosbag1", "bags of ROS 1, format 2.0: read"),
            ],
            Self::Converter => &[
                ("cdr", "messages of ROS 2: copied as they are"),
                (
                    "ros1",
                    "messages of ROS 1: converted to cdr when they are read",
                ),
            ],
            Self::Compression => &[("zstd", "whole files, when they are complete")],
            Self::Decompression => &[("zstd", "whole files, and single messages")],
        }
    }
}

impl List {
    /// Prints a name per line.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let entries = self.plugin_type.entries();
        if cli.console.json {
            let rows = entries.iter();
            let rows = rows.map(|(name, purpose)| json!({ "name": name, "purpose": purpose }));
            cli.console.json(&rows.collect::<Value>())?;
            return Ok(());
        }
        for (name, purpose) in entries {
            if self.verbose {
                cli.console.line(format!("name: {name}\n\t{purpose}"))?;
            } else {
                cli.console.line(name)?;
            }
        }
        Ok(())
    }
}
