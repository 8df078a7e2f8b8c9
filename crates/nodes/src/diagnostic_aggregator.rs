//! `diagnostic_aggregator aggregator_node`: sorts `/diagnostics` by analyzers and publishes
//! the sums on `/diagnostics_agg`, as ROS 2's node of that name.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros::clock::ClockType;
use pteros::component::ComponentError;
use pteros::interfaces::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus};
use pteros::prelude::*;
use pteros::{error, warn};

use crate::analyzers::{Group, Items, Parameters, STATUS_BYTES_MAX, bytes_of, top_level};
use crate::any_parameter::{declaring_overrides, given_or, number, text, truth};
use crate::running_node::RunningNode;

/// Warnings that are remembered, so that they are said once. Further ones are not said.
const WARNINGS_MAX: usize = 1000;
/// Most bytes of the names in a warning.
const NAMES_MAX: usize = 200;

/// Starts the node.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(declaring_overrides(options.name("analyzers")))?;
    let rate = number("pub_rate", &given_or(&node, "pub_rate", 1.0)?)?;
    let period = Duration::try_from_secs_f64(1.0 / rate)
        .map_err(|_| format!("pub_rate = {rate}: it is a number of Hertz above 0"))?;
    let depth = number("history_depth", &given_or(&node, "history_depth", 1000)?)?;
    if !(1.0..=100_000.0).contains(&depth) {
        return Err(format!("history_depth = {depth}: it is from 1 to 100000 messages").into());
    }
    let path = match text("path", given_or(&node, "path", "")?)? {
        path if path.is_empty() => path,
        path => format!("/{path}"),
    };
    let clock = node.clock_of(ClockType::SteadyTime);
    let mut parameters = Parameters::new();
    for name in node.parameter_names("") {
        let value = node.parameter(&name)?;
        parameters.insert(name, value);
    }
    let mut problems = Vec::new();
    let now = clock.now().as_nanos();
    let (group, _) = Group::read(&parameters, &path, "", now, &mut problems);
    for problem in problems {
        error!(node.logger(), "{problem}");
    }
    let aggregator = Arc::new(Mutex::new(Aggregator {
        group,
        other: Items::other(&path),
        others_are_errors: flag(&node, "other_as_errors")?,
        is_critical: flag(&node, "critical")?,
        level: DiagnosticStatus::STALE,
    }));
    let sums = node.create_publisher::<DiagnosticArray>("/diagnostics_agg".keep_last(1))?;
    let levels =
        node.create_publisher::<DiagnosticStatus>("/diagnostics_toplevel_state".keep_last(1))?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    let topic = "/diagnostics".qos(QosProfile::system_default().keep_last(depth as usize));
    let (taking, steady, logger) = (aggregator.clone(), clock.clone(), node.logger());
    let critical = levels.clone();
    let mut warnings = Warnings::default();
    let diagnostics = node.create_subscription(topic, move |array: Sample<DiagnosticArray>| {
        for warning in warnings.about(&array) {
            warn!(logger, "{warning}");
        }
        let now = steady.now().as_nanos();
        let mut aggregator = taking.lock();
        let statuses = array.status.iter();
        for status in statuses.filter(|status| bytes_of(status) <= STATUS_BYTES_MAX) {
            if let Some(level) = aggregator.take(status, now)
                && let Err(problem) = critical.publish_owned(level)
            {
                error!(logger, "{problem}");
            }
        }
    })?;
    let (stamps, logger) = (node.clock(), node.logger());
    let timer = node.create_timer(period, move || {
        let (mut array, level) = aggregator.lock().report(clock.now().as_nanos());
        array.header.stamp = stamps.now().into();
        let sent = sums
            .publish_owned(array)
            .and_then(|()| levels.publish_owned(level));
        if let Err(problem) = sent {
            error!(logger, "{problem}");
        }
    })?;
    Ok(RunningNode::new(node, (diagnostics, timer)))
}

fn flag(node: &Node, name: &str) -> Result<bool, ComponentError> {
    Ok(truth(name, &given_or(node, name, false)?)?)
}

/// Warnings that were said already.
#[derive(Default)]
struct Warnings {
    /// The first names of messages without a time.
    without_time: BTreeSet<String>,
    has_refused: bool,
}

impl Warnings {
    /// The warnings about a message.
    fn about(&mut self, array: &DiagnosticArray) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut statuses = array.status.iter();
        let large = statuses.find(|status| bytes_of(status) > STATUS_BYTES_MAX);
        if let (Some(large), false) = (large, self.has_refused) {
            self.has_refused = true;
            warnings.push(format!(
                "an item with more than {STATUS_BYTES_MAX} bytes is left out, and so are further ones; its name: {}",
                cut(&large.name)
            ));
        }
        // Upstream's.
        let first = array.status.first().map_or("", |one| cut(&one.name));
        if array.header.stamp.sec == 0
            && self.without_time.len() < WARNINGS_MAX
            && self.without_time.insert(first.into())
        {
            let names = array.status.iter().map(|one| cut(&one.name));
            let names: Vec<&str> = names.take(NAMES_MAX / 2).collect();
            let names = names.join(", ");
            warnings.push(format!(
                "No timestamp set for diagnostic message. Message names: {}",
                cut(&names)
            ));
        }
        warnings
    }
}

/// The beginning of a name.
fn cut(name: &str) -> &str {
    let end = name.floor_char_boundary(NAMES_MAX);
    name.get(..end).unwrap_or(name)
}

struct Aggregator {
    group: Group,
    other: Items,
    others_are_errors: bool,
    /// An error is told at once.
    is_critical: bool,
    /// The level that was published last.
    level: u8,
}

impl Aggregator {
    /// Takes an item. Returns what to publish at once.
    fn take(&mut self, status: &DiagnosticStatus, now: i64) -> Option<DiagnosticStatus> {
        if !self.group.take(status, now) {
            self.other.take(status, now);
        }
        let error = DiagnosticStatus::ERROR;
        if !self.is_critical || self.level == error || status.level != error {
            return None;
        }
        self.level = error;
        Some(DiagnosticStatus {
            level: error,
            name: "toplevel_state_critical".into(),
            ..DiagnosticStatus::default()
        })
    }

    fn report(&mut self, now: i64) -> (DiagnosticArray, DiagnosticStatus) {
        let mut status = self.group.report(now);
        status.extend(self.other.report_other(now, self.others_are_errors));
        self.level = top_level(&status);
        let level = DiagnosticStatus {
            level: self.level,
            name: "toplevel_state".into(),
            ..DiagnosticStatus::default()
        };
        let array = DiagnosticArray {
            status,
            ..DiagnosticArray::default()
        };
        (array, level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_short_and_are_said_once() {
        let status = |name: &str, bytes: usize| DiagnosticStatus {
            name: name.into(),
            message: "x".repeat(bytes),
            ..DiagnosticStatus::default()
        };
        let mut array = DiagnosticArray::default();
        array.status.push(status("first", 10));
        for at in 0..1000 {
            array.status.push(status(&"\u{e4}".repeat(at), 10));
        }
        let mut warnings = Warnings::default();
        let said = warnings.about(&array);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("Message names: first, "), "{said:?}");
        assert!(said[0].len() < 300, "{said:?}");
        array.status.truncate(2);
        assert!(warnings.about(&array).is_empty(), "the first name is known");
        array.header.stamp.sec = 1;
        array.status.push(status("large", STATUS_BYTES_MAX));
        let said = warnings.about(&array);
        assert!(said[0].ends_with("its name: large"), "{said:?}");
        assert!(warnings.about(&array).is_empty());
    }
}
