//! Warnings of the runtime, as lines of the logger `pteros`: on the console and in log
//! files. They tell what no exception tells, because another process is wrong: a message
//! that is not of its type, a type or a QoS that does not match.
//!
//! They do not go to `/rosout`: a line may come while a lock of the runtime is held.

use std::fmt::{Debug, Write as _};

use pteros_rcl::log::Severity;
use pteros_rcl::log_outputs::LogRecord;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::logging::opened_log;

/// The name of the logger.
const LOGGER: &str = "pteros";

/// Writes the lines. Without spans, which the runtime does not use.
struct NativeLog;

/// Begins to write them, unless another library of the process has a subscriber.
pub(crate) fn start() {
    let _ = tracing::subscriber::set_global_default(NativeLog);
}

/// The text of a line, and what it names beside.
#[derive(Default)]
struct LineText {
    message: String,
    fields: String,
}

impl Visit for LineText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

impl Subscriber for NativeLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let severity = if *event.metadata().level() == Level::ERROR {
            Severity::Error
        } else {
            Severity::Warn
        };
        let Some(log) = opened_log() else { return };
        if !log.is_enabled(LOGGER, severity) {
            return;
        }
        let mut text = LineText::default();
        event.record(&mut text);
        let record = LogRecord {
            severity,
            time: log.now(),
            name: LOGGER,
            message: &(text.message + &text.fields),
            keeps_lines: true,
            file: "",
            function: "",
            line: 0,
        };
        log.write(&record, None);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
