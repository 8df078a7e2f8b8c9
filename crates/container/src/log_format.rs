//! Log lines of the lower layers in ROS 2's format,
//! `[WARN] [1700000000.123456789] [pteros_runtime]: text`, for programs that print
//! what is traced.
#![allow(clippy::disallowed_methods, reason = "a log line has the time of day")]

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use pteros::log::escape_line;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

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

/// One line per event. Names and error texts in it may come from peers, so control
/// characters are escaped.
#[derive(Clone, Copy, Debug)]
pub struct RosLogFormat;

impl<S, N> FormatEvent<S, N> for RosLogFormat
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
        writeln!(writer, "{}", escape_line(&text))
    }
}
