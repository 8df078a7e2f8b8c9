//! The macros that loggers are used by: a plain one for each severity, and with
//! `_once`, `_skip_first` and `_throttle` behind its name.

/// Says something at a severity; the other macros become this.
#[doc(hidden)]
#[macro_export]
macro_rules! __say {
    ($logger:expr, $severity:ident, $($words:tt)+) => {{
        let logger: &$crate::Logger = &$logger;
        let severity = $crate::log::Severity::$severity;
        if logger.is_enabled(severity) {
            let at = $crate::LoggerAt {
                file: ::core::file!(),
                function: ::core::module_path!(),
                line: ::core::line!(),
            };
            logger.say(severity, at, ::core::format_args!($($words)+));
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __say_once {
    ($logger:expr, $severity:ident, $($words:tt)+) => {{
        static SAID: ::core::sync::atomic::AtomicBool = ::core::sync::atomic::AtomicBool::new(false);
        if !SAID.swap(true, ::core::sync::atomic::Ordering::Relaxed) {
            $crate::__say!($logger, $severity, $($words)+);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __say_skip_first {
    ($logger:expr, $severity:ident, $($words:tt)+) => {{
        static BEFORE: ::core::sync::atomic::AtomicBool = ::core::sync::atomic::AtomicBool::new(false);
        if BEFORE.swap(true, ::core::sync::atomic::Ordering::Relaxed) {
            $crate::__say!($logger, $severity, $($words)+);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __say_throttle {
    ($logger:expr, $severity:ident, $pause:expr, $($words:tt)+) => {{
        static LAST: ::core::sync::atomic::AtomicU64 = ::core::sync::atomic::AtomicU64::new(0);
        let logger: &$crate::Logger = &$logger;
        if logger.is_enabled($crate::log::Severity::$severity) && logger.may_speak(&LAST, $pause) {
            $crate::__say!(logger, $severity, $($words)+);
        }
    }};
}

/// `debug!(logger, "{}", …)`: says it at severity debug.
#[macro_export]
macro_rules! debug {
    ($logger:expr, $($words:tt)+) => { $crate::__say!($logger, Debug, $($words)+) };
}

/// As [`debug!`](crate::debug), the first time it is reached only.
#[macro_export]
macro_rules! debug_once {
    ($logger:expr, $($words:tt)+) => { $crate::__say_once!($logger, Debug, $($words)+) };
}

/// As [`debug!`](crate::debug), but not the first time it is reached.
#[macro_export]
macro_rules! debug_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__say_skip_first!($logger, Debug, $($words)+) };
}

/// As [`debug!`](crate::debug), then not for a `Duration`, in real time:
/// `debug_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! debug_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__say_throttle!($logger, Debug, $pause, $($words)+)
    };
}

/// `info!(logger, "{}", …)`: says it at severity info.
#[macro_export]
macro_rules! info {
    ($logger:expr, $($words:tt)+) => { $crate::__say!($logger, Info, $($words)+) };
}

/// As [`info!`](crate::info), the first time it is reached only.
#[macro_export]
macro_rules! info_once {
    ($logger:expr, $($words:tt)+) => { $crate::__say_once!($logger, Info, $($words)+) };
}

/// As [`info!`](crate::info), but not the first time it is reached.
#[macro_export]
macro_rules! info_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__say_skip_first!($logger, Info, $($words)+) };
}

/// As [`info!`](crate::info), then not for a `Duration`, in real time:
/// `info_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! info_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__say_throttle!($logger, Info, $pause, $($words)+)
    };
}

/// `warn!(logger, "{}", …)`: says it at severity warn.
#[macro_export]
macro_rules! warn {
    ($logger:expr, $($words:tt)+) => { $crate::__say!($logger, Warn, $($words)+) };
}

/// As [`warn!`](crate::warn), the first time it is reached only.
#[macro_export]
macro_rules! warn_once {
    ($logger:expr, $($words:tt)+) => { $crate::__say_once!($logger, Warn, $($words)+) };
}

/// As [`warn!`](crate::warn), but not the first time it is reached.
#[macro_export]
macro_rules! warn_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__say_skip_first!($logger, Warn, $($words)+) };
}

/// As [`warn!`](crate::warn), then not for a `Duration`, in real time:
/// `warn_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! warn_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__say_throttle!($logger, Warn, $pause, $($words)+)
    };
}

/// `error!(logger, "{}", …)`: says it at severity error.
#[macro_export]
macro_rules! error {
    ($logger:expr, $($words:tt)+) => { $crate::__say!($logger, Error, $($words)+) };
}

/// As [`error!`](crate::error), the first time it is reached only.
#[macro_export]
macro_rules! error_once {
    ($logger:expr, $($words:tt)+) => { $crate::__say_once!($logger, Error, $($words)+) };
}

/// As [`error!`](crate::error), but not the first time it is reached.
#[macro_export]
macro_rules! error_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__say_skip_first!($logger, Error, $($words)+) };
}

/// As [`error!`](crate::error), then not for a `Duration`, in real time:
/// `error_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! error_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__say_throttle!($logger, Error, $pause, $($words)+)
    };
}

/// `fatal!(logger, "{}", …)`: says it at severity fatal.
#[macro_export]
macro_rules! fatal {
    ($logger:expr, $($words:tt)+) => { $crate::__say!($logger, Fatal, $($words)+) };
}

/// As [`fatal!`](crate::fatal), the first time it is reached only.
#[macro_export]
macro_rules! fatal_once {
    ($logger:expr, $($words:tt)+) => { $crate::__say_once!($logger, Fatal, $($words)+) };
}

/// As [`fatal!`](crate::fatal), but not the first time it is reached.
#[macro_export]
macro_rules! fatal_skip_first {
    ($logger:expr, $($words:tt)+) => { $crate::__say_skip_first!($logger, Fatal, $($words)+) };
}

/// As [`fatal!`](crate::fatal), then not for a `Duration`, in real time:
/// `fatal_throttle!(logger, pause, "…")`.
#[macro_export]
macro_rules! fatal_throttle {
    ($logger:expr, $pause:expr, $($words:tt)+) => {
        $crate::__say_throttle!($logger, Fatal, $pause, $($words)+)
    };
}
