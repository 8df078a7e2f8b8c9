//! Logging macros: one per severity, each also with `_once`, `_skip_first` and
//! `_throttle`, as in rclcpp.

/// Logs at a severity; all other macros expand to this.
#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ($logger:expr, $severity:ident, $($words:tt)+) => {{
        let logger: &$crate::Logger = &$logger;
        let severity = $crate::log::Severity::$severity;
        if logger.is_enabled(severity) {
            let location = $crate::LoggerSourceLocation {
                file: ::core::file!(),
                function: ::core::module_path!(),
                line: ::core::line!(),
            };
            logger.log(severity, location, ::core::format_args!($($words)+));
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_once {
    ($logger:expr, $severity:ident, $($words:tt)+) => {{
        static LOGGED: ::core::sync::atomic::AtomicBool = ::core::sync::atomic::AtomicBool::new(false);
        if !LOGGED.swap(true, ::core::sync::atomic::Ordering::Relaxed) {
            $crate::__log!($logger, $severity, $($words)+);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_skip_first {
    ($logger:expr, $severity:ident, $($words:tt)+) => {{
        static REACHED_BEFORE: ::core::sync::atomic::AtomicBool = ::core::sync::atomic::AtomicBool::new(false);
        if REACHED_BEFORE.swap(true, ::core::sync::atomic::Ordering::Relaxed) {
            $crate::__log!($logger, $severity, $($words)+);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_throttle {
    ($logger:expr, $severity:ident, $pause:expr, $($words:tt)+) => {{
        static LAST_LOGGED: ::core::sync::atomic::AtomicU64 = ::core::sync::atomic::AtomicU64::new(0);
        let logger: &$crate::Logger = &$logger;
        if logger.is_enabled($crate::log::Severity::$severity) && logger.pass_throttle(&LAST_LOGGED, $pause) {
            $crate::__log!(logger, $severity, $($words)+);
        }
    }};
}

/// `debug!(logger, "{}", …)`: logs at severity debug.
#[macro_export]
macro_rules! debug {
    ($logger:expr, $($words:tt)+) => { $crate::__log!($logger, Debug, $($words)+) };
}

/// As [`debug!`](crate::debug), only the first time it is reached.
#[macro_export]
macro_rules! debug_once {
    ($logger:expr, $($words:tt)+) => { $crate::__log_once!($logger, Debug, $($words)+) };
}

/// As [`debug!`](crate::debug), but not the first time it is reached.
#[macro_export]
macro_rules! debug_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__log_skip_first!($logger, Debug, $($words)+) };
}

/// As [`debug!`](crate::debug), at most once per `Duration` of real time:
/// `debug_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! debug_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__log_throttle!($logger, Debug, $pause, $($words)+)
    };
}

/// `info!(logger, "{}", …)`: logs at severity info.
#[macro_export]
macro_rules! info {
    ($logger:expr, $($words:tt)+) => { $crate::__log!($logger, Info, $($words)+) };
}

/// As [`info!`](crate::info), only the first time it is reached.
#[macro_export]
macro_rules! info_once {
    ($logger:expr, $($words:tt)+) => { $crate::__log_once!($logger, Info, $($words)+) };
}

/// As [`info!`](crate::info), but not the first time it is reached.
#[macro_export]
macro_rules! info_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__log_skip_first!($logger, Info, $($words)+) };
}

/// As [`info!`](crate::info), at most once per `Duration` of real time:
/// `info_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! info_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__log_throttle!($logger, Info, $pause, $($words)+)
    };
}

/// `warn!(logger, "{}", …)`: logs at severity warn.
#[macro_export]
macro_rules! warn {
    ($logger:expr, $($words:tt)+) => { $crate::__log!($logger, Warn, $($words)+) };
}

/// As [`warn!`](crate::warn), only the first time it is reached.
#[macro_export]
macro_rules! warn_once {
    ($logger:expr, $($words:tt)+) => { $crate::__log_once!($logger, Warn, $($words)+) };
}

/// As [`warn!`](crate::warn), but not the first time it is reached.
#[macro_export]
macro_rules! warn_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__log_skip_first!($logger, Warn, $($words)+) };
}

/// As [`warn!`](crate::warn), at most once per `Duration` of real time:
/// `warn_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! warn_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__log_throttle!($logger, Warn, $pause, $($words)+)
    };
}

/// `error!(logger, "{}", …)`: logs at severity error.
#[macro_export]
macro_rules! error {
    ($logger:expr, $($words:tt)+) => { $crate::__log!($logger, Error, $($words)+) };
}

/// As [`error!`](macro@crate::error), only the first time it is reached.
#[macro_export]
macro_rules! error_once {
    ($logger:expr, $($words:tt)+) => { $crate::__log_once!($logger, Error, $($words)+) };
}

/// As [`error!`](macro@crate::error), but not the first time it is reached.
#[macro_export]
macro_rules! error_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__log_skip_first!($logger, Error, $($words)+) };
}

/// As [`error!`](macro@crate::error), at most once per `Duration` of real time:
/// `error_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! error_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__log_throttle!($logger, Error, $pause, $($words)+)
    };
}

/// `fatal!(logger, "{}", …)`: logs at severity fatal.
#[macro_export]
macro_rules! fatal {
    ($logger:expr, $($words:tt)+) => { $crate::__log!($logger, Fatal, $($words)+) };
}

/// As [`fatal!`](crate::fatal), only the first time it is reached.
#[macro_export]
macro_rules! fatal_once {
    ($logger:expr, $($words:tt)+) => { $crate::__log_once!($logger, Fatal, $($words)+) };
}

/// As [`fatal!`](crate::fatal), but not the first time it is reached.
#[macro_export]
macro_rules! fatal_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__log_skip_first!($logger, Fatal, $($words)+) };
}

/// As [`fatal!`](crate::fatal), at most once per `Duration` of real time:
/// `fatal_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! fatal_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__log_throttle!($logger, Fatal, $pause, $($words)+)
    };
}
