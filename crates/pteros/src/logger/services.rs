//! `~/get_logger_levels` and `~/set_logger_levels`, for nodes whose options ask for
//! them.

use std::sync::Arc;

use pteros_interfaces::rcl_interfaces::{msg, srv};

use super::LogHub;
use crate::error::CreateError;
use crate::log::Severity;
use crate::node::{Node, NodeOptions};
use crate::service::Service;

/// Kept by the node's handles.
pub(crate) struct LoggerServices {
    _get: Service<srv::GetLoggerLevels>,
    _set: Service<srv::SetLoggerLevels>,
}

impl LoggerServices {
    pub(crate) fn start(node: &Node) -> Result<Self, CreateError> {
        let hub = node.context().inner.log.clone();
        let get = node.create_service::<srv::GetLoggerLevels>("~/get_logger_levels", {
            let hub = hub.clone();
            move |asked| srv::GetLoggerLevels_Response {
                levels: asked.names.iter().map(|name| level(&hub, name)).collect(),
            }
        })?;
        let set =
            node.create_service::<srv::SetLoggerLevels>("~/set_logger_levels", move |asked| {
                srv::SetLoggerLevels_Response {
                    results: asked
                        .levels
                        .iter()
                        .map(|wanted| set(&hub, wanted))
                        .collect(),
                }
            })?;
        Ok(Self {
            _get: get,
            _set: set,
        })
    }
}

/// 0, unset, for a logger without a level of its own, as rcutils says.
fn level(hub: &Arc<LogHub>, name: &str) -> msg::LoggerLevel {
    msg::LoggerLevel {
        name: name.into(),
        level: hub
            .levels
            .own(name)
            .map_or(0, |level| u32::from(level as u8)),
    }
}

fn set(hub: &Arc<LogHub>, wanted: &msg::LoggerLevel) -> msg::SetLoggerLevelsResult {
    let level = match wanted.level {
        0 => Ok(None),
        number => match u8::try_from(number).map(Severity::try_from) {
            Ok(Ok(level)) => Ok(Some(level)),
            _ => Err(format!(
                "{number} is no log level; give 10, 20, 30, 40 or 50, or 0 for none of its own"
            )),
        },
    };
    let outcome = level.and_then(|level| match hub.levels.set(&wanted.name, level) {
        true => Ok(()),
        false => Err("a thousand loggers have levels of their own already".into()),
    });
    msg::SetLoggerLevelsResult {
        successful: outcome.is_ok(),
        reason: outcome.err().unwrap_or_default(),
    }
}

impl NodeOptions {
    /// Whether the node serves the levels of loggers, `~/get_logger_levels` and
    /// `~/set_logger_levels`: those of its context, whatever their names. Off by
    /// default, as in ROS 2.
    #[must_use]
    pub fn enable_logger_service(mut self, yes: bool) -> Self {
        self.logger_services = yes;
        self
    }
}
