//! Log lines in ROS 2's form, `[INFO] [1700000000.123456789] [talker]: text`,
//! on standard error, or on standard output where RCUTILS_LOGGING_USE_STDOUT
//! is 1.

use crate::shared::Shared;
use anyhow::{Result, anyhow};
use pteros::log::Severity;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// What one node says to the operator.
#[derive(Debug)]
pub struct Logger {
    name: String,
    least: Severity,
    is_on: bool,
    to_stdout: bool,
}

impl Logger {
    /// The logger of that name, as strict as `--ros-args --log-level` says.
    pub fn new(shared: &Shared, name: &str) -> Self {
        let settings = &shared.arguments.log;
        let own = settings.loggers.iter().find(|(logger, _)| logger == name);
        Self {
            name: name.to_string(),
            least: own
                .map(|(_, severity)| *severity)
                .or(settings.level)
                .unwrap_or(Severity::Info),
            is_on: settings.console != Some(false),
            to_stdout: std::env::var_os("RCUTILS_LOGGING_USE_STDOUT")
                .is_some_and(|value| value == "1"),
        }
    }

    /// Writes one line for the operator. The error is that of the stream.
    pub fn info(&self, text: &str) -> std::io::Result<()> {
        if !self.is_on || self.least > Severity::Info {
            return Ok(());
        }
        let line = line("INFO", &self.name, text);
        if self.to_stdout {
            writeln!(anstream::stdout().lock(), "{line}")
        } else {
            writeln!(anstream::stderr().lock(), "{line}")
        }
    }
}

/// Shows what the layers below report: warnings and worse, or what
/// `--log-level` or RUST_LOG ask for.
///
/// # Errors
/// RUST_LOG means nothing.
pub fn install(shared: &Shared) -> Result<()> {
    let asked = &shared.arguments.log;
    let mut directives = asked.filter(Severity::Warn);
    if asked.level.is_none() {
        // The verbs say this themselves, with the names of the nodes.
        directives += ",pteros_rmw::mismatch=error";
    }
    let filter = match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).map_err(|error| {
            anyhow!(
                "environment variable RUST_LOG={text:?}: {error}; write a level, such as debug, or several as in warn,pteros_rmw=debug, or leave it unset"
            )
        })?,
        _ => EnvFilter::new(directives),
    };
    // Only fails where a subscriber is installed already; then that one stays.
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
        context
            .field_format()
            .format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
