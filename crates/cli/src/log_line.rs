//! Log output of the lower layers in ROS 2's log format,
//! `[WARN] [1700000000.123456789] [pteros_runtime]: text`, on standard error.

use crate::cli_context::CliContext;
use anyhow::{Result, anyhow};
use pteros::log::{Severity, escape_line};
use std::fmt;
use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

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
        .event_format(RosFormat)
        .try_init();
    Ok(())
}

fn line(severity: &str, logger: &str, text: &str) -> String {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!(
        "[{severity}] [{}.{:09}] [{logger}]: {text}",
        time.as_secs(),
        time.subsec_nanos()
    )
}

struct RosFormat;

impl<S, N> FormatEvent<S, N> for RosFormat
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let logger = metadata.target().replace("::", ".");
        write!(writer, "{}", line(metadata.level().as_str(), &logger, ""))?;
        let mut text = String::new();
        context
            .field_format()
            .format_fields(Writer::new(&mut text), event)?;
        // Names and error texts in it may come from peers.
        writeln!(writer, "{}", escape_line(&text))
    }
}
