//! Log output of the lower layers in ROS 2's log format,
//! `[WARN] [1700000000.123456789] [pteros_runtime]: text`, on standard error.

use crate::cli_context::CliContext;
use anyhow::{Result, anyhow};
use pteros::log::Severity;
use pteros_container::RosLogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Installs the log output: warnings and worse, or the level of `--log-level` or
/// RUST_LOG.
///
/// # Errors
/// RUST_LOG is invalid.
pub fn install(cli: &CliContext) -> Result<()> {
    let log_options = &cli.arguments.log;
    let mut directives = log_options.filter(Severity::Warn);
    if log_options.level.is_none() {
        // The verbs report mismatches themselves, with node names.
        directives += ",pteros_runtime::endpoints::mismatch=error";
        // It warns whenever there is no router, and whatever it refuses is an error here.
        directives += ",zenoh=error";
    }
    let filter = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).map_err(|error| {
            anyhow!(
                "environment variable RUST_LOG={text:?}: {error}; write a level, such as debug, or several as in warn,pteros_runtime=debug, or leave it unset"
            )
        })?,
        _ => EnvFilter::new(directives),
    };
    // This fails if another subscriber is installed already. That one is kept.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .event_format(RosLogFormat)
        .try_init();
    Ok(())
}
