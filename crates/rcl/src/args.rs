//! ROS arguments: `--ros-args … --` of a process or a node.
//!
//! [`Arguments::parse`] is a pure function from command-line words to settings.
//! [`resolve_name`] and [`node_identity`] apply remapping rules. The
//! `Context` applies the enclave, [`crate::parameter`] the
//! parameter overrides, loggers and the `tracing` subscriber ([`crate::log`]) the
//! log settings. Grammar: rcl `arguments.h`, ROS design articles "Static Remapping"
//! (141) and "ROS Command Line Arguments".

mod remap;

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use pteros_runtime::config::WireChoice;
use pteros_runtime::names;
use pteros_runtime::thread::{ThreadSettingError, ThreadSettings};

pub use crate::arguments_error::ArgumentsError;
use crate::log::{LogSettings, Severity};

pub use remap::{RemapKind, RemapRule, node_identity, resolve_name};

/// All arguments between `--ros-args` and `--`, in the given order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// `-r`, `--remap`: remapping rules; the first that matches applies.
    pub remaps: Vec<RemapRule>,
    /// `-p`, `--param` and `--params-file`; later ones override earlier ones.
    pub parameters: Vec<ParameterArgument>,
    /// `-e`, `--enclave`: the security enclave; the last one applies.
    pub enclave: Option<String>,
    /// `--busy-poll`: busy-polling time in microseconds; see
    /// `ContextOptions::busy_poll`.
    pub busy_poll: Option<Duration>,
    /// `--shared-memory on` or `off`; overrides `PTEROS_SHARED_MEMORY`.
    ///
    /// See `ContextOptions::shared_memory`.
    pub shared_memory: Option<bool>,
    /// `--wire rtps`, `zenoh` or `rtps,zenoh`; overrides `PTEROS_WIRE` and
    /// `RMW_IMPLEMENTATION`.
    ///
    /// The latter two need the feature `zenoh`.
    pub wire: Option<WireChoice>,
    /// `--trace`: the folder of the process's traces; overrides `PTEROS_TRACE`.
    ///
    /// See `ContextOptions::trace`.
    pub trace: Option<PathBuf>,
    /// `--thread-priority`, `--thread-cpus` and `--lock-memory`; see
    /// `ContextOptions::thread`.
    pub thread: ThreadSettings,
    /// `--log-level` and the other log settings.
    pub log: LogSettings,
}

/// One parameter argument of the command line.
///
/// As in rcl, all of them form one list of nodes, in the order in which their names
/// or patterns first occur. A repeated name replaces its earlier entry in place; so
/// does `/**`, the pattern of each `-p` without a node. Of the entries that match a
/// node, the last in that list applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterArgument {
    /// `-p`, `--param`.
    Value(ParameterSetting),
    /// `--params-file`: a YAML file, not yet read.
    File(PathBuf),
}

/// One parameter of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSetting {
    /// Its node, in the root namespace; `None` means every node of the process.
    pub node: Option<String>,
    /// The parameter's name.
    pub name: String,
    /// Its value as YAML, not yet parsed.
    pub value: String,
}

impl Arguments {
    /// Splits a command line into ROS arguments and the rest, which keeps its
    /// order.
    ///
    /// `--ros-args` may occur several times; each extends to `--` or the end. Does
    /// no I/O.
    pub fn parse<S: Into<String>>(
        words: impl IntoIterator<Item = S>,
    ) -> Result<(Arguments, Vec<String>), ArgumentsError> {
        let words = words.into_iter().map(|word| {
            let word: String = word.into();
            OsString::from(word)
        });
        let (arguments, rest) = Self::parse_os(words)?;
        Ok((arguments, rest.into_iter().map(lossy).collect()))
    }

    /// As [`parse`](Self::parse), and keeps words that are not UTF-8, such as paths. In
    /// ROS arguments other than `--params-file`, replacement characters stand for what is
    /// not UTF-8.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_os(
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<(Arguments, Vec<OsString>), ArgumentsError> {
        let mut arguments = Arguments::default();
        let mut rest = Vec::new();
        let mut words = words.into_iter();
        let mut inside = false;
        while let Some(word) = words.next() {
            match (inside, word.to_str()) {
                (_, Some("--ros-args")) => inside = true,
                (false, _) => rest.push(word),
                (true, Some("--")) => inside = false,
                (true, _) => arguments.take_flag(&lossy(word), || words.next())?,
            }
        }
        Ok((arguments, rest))
    }

    /// [`Arguments::parse`] on this process's command line, without the program's
    /// name.
    ///
    /// Replacement characters stand for what is not UTF-8.
    pub fn from_process() -> Result<(Arguments, Vec<String>), ArgumentsError> {
        let (arguments, rest) = Self::parse_os(std::env::args_os().skip(1))?;
        Ok((arguments, rest.into_iter().map(lossy).collect()))
    }

    fn take_flag(
        &mut self,
        flag: &str,
        next: impl FnOnce() -> Option<OsString>,
    ) -> Result<(), ArgumentsError> {
        let word = |expected| {
            next()
                .filter(|v| v != "--")
                .ok_or(ArgumentsError::MissingValue {
                    flag: flag.into(),
                    expected,
                })
        };
        if flag == "--params-file" {
            let file = word("a YAML file")?.into();
            self.parameters.push(ParameterArgument::File(file));
            return Ok(());
        }
        let value = |expected| word(expected).map(lossy);
        match flag {
            "-r" | "--remap" => {
                let text = value("[NODE:]FROM:=TO")?;
                self.remaps.push(RemapRule::parse(flag, &text)?);
            }
            "-p" | "--param" => {
                let text = value("[NODE:]NAME:=VALUE")?;
                let setting = parameter(flag, &text)?;
                self.parameters.push(ParameterArgument::Value(setting));
            }
            "-e" | "--enclave" => {
                let path = value("an enclave's path, as /arm")?;
                names::validate_enclave(&path).map_err(|source| ArgumentsError::InvalidName {
                    flag: flag.into(),
                    value: path.clone(),
                    source,
                })?;
                self.enclave = Some(path);
            }
            "--busy-poll" => {
                let text = value("microseconds")?;
                let micros = text.parse().map_err(|_| ArgumentsError::InvalidValue {
                    flag: flag.into(),
                    value: text.clone(),
                    reason: "not a number of microseconds".into(),
                    hint: "write --busy-poll 50".into(),
                })?;
                self.busy_poll = Some(Duration::from_micros(micros));
            }
            "--shared-memory" => {
                let text = value("on or off")?;
                self.shared_memory = Some(match text.as_str() {
                    "on" => true,
                    "off" => false,
                    _ => {
                        return Err(ArgumentsError::InvalidValue {
                            flag: flag.into(),
                            value: text,
                            reason: "neither on nor off".into(),
                            hint: "write --shared-memory off to use UDP alone".into(),
                        });
                    }
                });
            }
            "--wire" => {
                let text = value("rtps, zenoh or rtps,zenoh")?;
                let choice = WireChoice::from_name(&text);
                self.wire = Some(choice.ok_or_else(|| ArgumentsError::InvalidValue {
                    flag: flag.into(),
                    value: text,
                    reason: WireChoice::REASON.into(),
                    hint: WireChoice::HINT.into(),
                })?);
            }
            "--trace" => self.trace = Some(value("a folder")?.into()),
            "--thread-priority" => {
                let text = value("a number from 1 to 99")?;
                self.thread.priority = Some(setting(flag, &text)?);
            }
            "--thread-cpus" => {
                let text = value("CPUs, as 2 or 0,4-7")?;
                self.thread.cpus = Some(setting(flag, &text)?);
            }
            "--lock-memory" => self.thread.lock_memory = true,
            "--log-level" => {
                let text = value("[LOGGER:=]LEVEL")?;
                self.set_log_level(flag, &text)?;
            }
            "--log-config-file" => self.log.config_file = Some(value("a file")?.into()),
            "--log-file-name" => {
                let prefix = value("the beginning of log file names")?;
                if prefix.is_empty() || prefix.contains('/') {
                    return Err(ArgumentsError::InvalidValue {
                        flag: flag.into(),
                        value: prefix,
                        reason: "not valid as the beginning of a file name".into(),
                        hint: "write --log-file-name arm; the folder is ROS_LOG_DIR".into(),
                    });
                }
                self.log.file_name = Some(prefix);
            }
            "--enable-rosout-logs" => self.log.rosout = Some(true),
            "--disable-rosout-logs" => self.log.rosout = Some(false),
            "--enable-stdout-logs" => self.log.console = Some(true),
            "--disable-stdout-logs" => self.log.console = Some(false),
            "--enable-external-lib-logs" => self.log.external = Some(true),
            "--disable-external-lib-logs" => self.log.external = Some(false),
            _ => return Err(unknown(flag)),
        }
        Ok(())
    }

    fn set_log_level(&mut self, flag: &str, text: &str) -> Result<(), ArgumentsError> {
        let (logger, level) = match text.split_once(":=") {
            Some((logger, level)) => (Some(logger), level),
            None => (None, text),
        };
        let wrong = |reason: String, hint: &str| ArgumentsError::InvalidValue {
            flag: flag.into(),
            value: text.into(),
            reason,
            hint: hint.into(),
        };
        // rcutils's level of a logger without an explicit one.
        let severity: Option<Severity> = if level.eq_ignore_ascii_case("unset") {
            None
        } else {
            Some(level.parse().map_err(|_| {
                wrong(
                    format!("{level:?} is not a log level"),
                    "use debug, info, warn, error or fatal, or unset",
                )
            })?)
        };
        match logger {
            None => self.log.level = severity,
            Some("") => {
                return Err(wrong(
                    "no logger before :=".into(),
                    "name the logger, or leave := out to mean all",
                ));
            }
            Some(logger) => {
                self.log.loggers.retain(|(before, _)| before != logger);
                let own = severity.map(|severity| (logger.into(), severity));
                self.log.loggers.extend(own);
            }
        }
        Ok(())
    }
}

fn setting<T: FromStr<Err = ThreadSettingError>>(
    flag: &str,
    text: &str,
) -> Result<T, ArgumentsError> {
    text.parse()
        .map_err(|source| ArgumentsError::InvalidThreadSetting {
            flag: flag.into(),
            source,
        })
}

fn unknown(word: &str) -> ArgumentsError {
    let hint = if word.starts_with("__") || word.contains(":=") {
        format!("write -r {word} to remap or -p {word} to set a parameter")
    } else if let Some((flag, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        format!("write {flag} {value}, with a space")
    } else if word.starts_with('-') {
        "known are -r, -p, --params-file, -e, --log-level, --log-config-file, --log-file-name, \
         --{enable,disable}-{rosout,stdout,external-lib}-logs, --busy-poll, \
         --shared-memory, --wire, --trace, --thread-priority, --thread-cpus and --lock-memory"
            .into()
    } else {
        "end the ROS arguments with -- before it".into()
    };
    ArgumentsError::Unknown {
        argument: word.into(),
        hint,
    }
}

fn parameter(flag: &str, text: &str) -> Result<ParameterSetting, ArgumentsError> {
    let wrong = |reason: &str| ArgumentsError::InvalidValue {
        flag: flag.into(),
        value: text.into(),
        reason: reason.into(),
        hint: "write NAME:=VALUE or NODE:NAME:=VALUE".into(),
    };
    let (target, value) = text.split_once(":=").ok_or_else(|| wrong("no := in it"))?;
    let (node, name) = match target.split_once(':') {
        Some((node, name)) => (Some(node), name),
        None => (None, target),
    };
    if let Some(node) = node {
        names::validate_node(node).map_err(|source| ArgumentsError::InvalidName {
            flag: flag.into(),
            value: text.into(),
            source,
        })?;
    }
    if name.is_empty() {
        return Err(wrong("no parameter name before :="));
    }
    if name.contains(':') {
        return Err(wrong("a second colon before :="));
    }
    if value.trim().is_empty() {
        return Err(wrong(
            "no value after := (write '' in quotes for an empty text)",
        ));
    }
    Ok(ParameterSetting {
        node: node.map(Into::into),
        name: name.into(),
        value: value.into(),
    })
}

/// The text of a word, with replacement characters for what is not UTF-8.
fn lossy(word: OsString) -> String {
    let text = word.into_string();
    text.unwrap_or_else(|word| word.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
