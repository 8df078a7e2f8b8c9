//! Logger services: `~/get_logger_levels` and `~/set_logger_levels`, for nodes that
//! enable them.

use std::sync::Arc;

use pteros_interfaces::rcl_interfaces::{msg, srv};

use crate::error::CreateError;
use crate::log::Severity;
use crate::log_outputs::LogOutputs;
use crate::node::{Node, NodeOptions};
use crate::service::Service;

/// Kept alive by the node's handles.
pub(crate) struct LoggerServices {
    _get: Service<srv::GetLoggerLevels>,
    _set: Service<srv::SetLoggerLevels>,
}

impl LoggerServices {
    pub(crate) fn start(node: &Node) -> Result<Self, CreateError> {
        let outputs = node.context().inner.log_outputs.clone();
        let get = node.create_service::<srv::GetLoggerLevels>("~/get_logger_levels", {
            let outputs = outputs.clone();
            move |asked| srv::GetLoggerLevelsResponse {
                levels: asked
                    .names
                    .iter()
                    .map(|name| level_message(&outputs, name))
                    .collect(),
            }
        })?;
        let set =
            node.create_service::<srv::SetLoggerLevels>("~/set_logger_levels", move |asked| {
                srv::SetLoggerLevelsResponse {
                    results: asked
                        .levels
                        .iter()
                        .map(|wanted| set_level(&outputs, wanted))
                        .collect(),
                }
            })?;
        Ok(Self {
            _get: get,
            _set: set,
        })
    }
}

/// 0 (unset) for a logger without an explicit level, as in rcutils.
fn level_message(outputs: &Arc<LogOutputs>, name: &str) -> msg::LoggerLevel {
    msg::LoggerLevel {
        name: name.into(),
        level: outputs
            .levels
            .explicit_level(name)
            .map_or(0, |level| u32::from(level as u8)),
    }
}

fn set_level(outputs: &Arc<LogOutputs>, wanted: &msg::LoggerLevel) -> msg::SetLoggerLevelsResult {
    let level = match wanted.level {
        0 => Ok(None),
        number => match u8::try_from(number).map(Severity::try_from) {
            Ok(Ok(level)) => Ok(Some(level)),
            _ => Err(format!(
                "{number} is not a log level; use 10, 20, 30, 40 or 50, or 0 to remove the level"
            )),
        },
    };
    let outcome = level.and_then(|level| {
        if outputs.levels.set(&wanted.name, level) {
            Ok(())
        } else {
            Err("a thousand loggers have explicit levels, which is the limit".into())
        }
    });
    msg::SetLoggerLevelsResult {
        successful: outcome.is_ok(),
        reason: outcome.err().unwrap_or_default(),
    }
}

impl NodeOptions {
    /// Whether the node offers `~/get_logger_levels` and `~/set_logger_levels`.
    ///
    /// Off by default, as in ROS 2.
    ///
    /// They read and set all loggers of its context, whatever their names.
    #[must_use]
    pub fn enable_logger_service(mut self, yes: bool) -> Self {
        self.logger_services = yes;
        self
    }
}
