//! Log messages of a node: console, log file and `/rosout`, by the client library.

use std::ffi::{c_char, c_int};

use pteros::LoggerSourceLocation;
use pteros::log::Severity;

use crate::argument::{required, text};
use crate::error::{self, Error, Outcome, Status};
use crate::node::PterosNode;

fn severity(number: c_int) -> Outcome<Severity> {
    Ok(match number {
        10 => Severity::Debug,
        20 => Severity::Info,
        30 => Severity::Warn,
        40 => Severity::Error,
        50 => Severity::Fatal,
        _ => {
            return Err(Error::argument(format!(
                "severity is {number}; use PTEROS_LOG_DEBUG to PTEROS_LOG_FATAL"
            )));
        }
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_log(
    node: Option<&PterosNode>,
    number: c_int,
    message: *const c_char,
) -> Status {
    error::run("pteros_log", || {
        let logger = required(node, "node")?.node.logger();
        let at = LoggerSourceLocation {
            file: "",
            function: "",
            line: 0,
        };
        let message = text(message, "message")?;
        logger.log(severity(number)?, at, format_args!("{message}"));
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_log_is_enabled(node: Option<&PterosNode>, number: c_int) -> bool {
    error::value("pteros_log_is_enabled", false, || {
        let logger = required(node, "node")?.node.logger();
        Ok(logger.is_enabled(severity(number)?))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_log_set_level(node: Option<&PterosNode>, number: c_int) -> Status {
    error::run("pteros_log_set_level", || {
        let logger = required(node, "node")?.node.logger();
        if logger.set_level(Some(severity(number)?)) {
            return Ok(());
        }
        Err(Error::failed(format!(
            "logger {:?}: the context has levels of as many loggers as it can keep",
            logger.name()
        )))
    })
}
