//! `--ros-args … --`: what the command line says to every node of a process.
//!
//! [`Arguments::parse`] is a pure function from words to settings; remap rules
//! are applied by [`resolve_name`] and [`node_identity`], the enclave by
//! [`Context`](crate::Context), parameters by [`crate::parameter`], what is said of logs by loggers of nodes
//! and by whoever installs a subscriber ([`crate::log`]). Grammar: rcl `arguments.h`, design articles 141 (static remapping) and "ROS command line
//! arguments".

mod remap;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use pteros_rmw::names::{self, NameError};
use pteros_rmw::thread::{SettingError, ThreadSettings};

use crate::log::{LogSettings, Severity};

pub use remap::{RemapKind, RemapRule, node_identity, resolve_name};

/// Everything said between `--ros-args` and `--`, in the order given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// `-r`, `--remap`: rules; the first that matches wins.
    pub remaps: Vec<RemapRule>,
    /// `-p`, `--param` and `--params-file`; later ones override earlier ones.
    pub parameters: Vec<ParameterArgument>,
    /// `-e`, `--enclave`: the security enclave; the last one counts.
    pub enclave: Option<String>,
    /// `--spin`: how long threads poll before they sleep; see
    /// [`ContextOptions::spin`](crate::ContextOptions::spin).
    pub spin: Option<Duration>,
    /// `--shared-memory on` or `off`, as `PTEROS_SHARED_MEMORY` says it, which it
    /// overrides; see
    /// [`ContextOptions::shared_memory`](crate::ContextOptions::shared_memory).
    pub shared_memory: Option<bool>,
    /// `--trace`: the folder that gets the process's traces, as `PTEROS_TRACE` says
    /// it, which it overrides; see
    /// [`ContextOptions::trace`](crate::ContextOptions::trace).
    pub trace: Option<PathBuf>,
    /// `--thread-priority`, `--thread-cpus` and `--lock-memory`; see
    /// [`ContextOptions::thread`](crate::ContextOptions::thread).
    pub thread: ThreadSettings,
    /// `--log-level` and its kin.
    pub log: LogSettings,
}

/// What the command line says of parameters at one place.
///
/// As rcl has it, all of it is one list of nodes, in the order in which their names
/// or patterns first came up: what is said again of a name, as `/**` by each `-p`
/// without a node, replaces what it was, in its place. Of the entries that a node
/// matches the last one in that list counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterArgument {
    /// `-p`, `--param`.
    Value(ParameterSetting),
    /// `--params-file`: a YAML file, not yet read.
    File(PathBuf),
}

/// One parameter from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSetting {
    /// The node it is for, one in the root namespace; `None` means every node of the
    /// process.
    pub node: Option<String>,
    /// The parameter's name.
    pub name: String,
    /// Its value as YAML, not yet parsed.
    pub value: String,
}

/// What is wrong after `--ros-args`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// A word that is no ROS argument.
    #[error("--ros-args: {word:?} is not a ROS argument; {way_out}")]
    Unknown {
        /// The word.
        word: String,
        /// What to write instead.
        way_out: String,
    },
    /// A flag at the end, without what it needs.
    #[error("--ros-args: {flag} needs a value after it: {expected}")]
    MissingValue {
        /// The flag.
        flag: String,
        /// The form of the value.
        expected: &'static str,
    },
    /// A value that its flag does not understand.
    #[error("--ros-args: {flag} {value:?}: {reason}; {way_out}")]
    BadValue {
        /// The flag.
        flag: String,
        /// The value as given.
        value: String,
        /// What is wrong with it.
        reason: String,
        /// What to write instead.
        way_out: String,
    },
    /// A priority or CPUs that there are not.
    #[error("--ros-args: {flag}: {source}")]
    BadSetting {
        /// The flag.
        flag: String,
        /// The value, and what is wrong with it.
        source: SettingError,
    },
    /// A name in a value that can be no name.
    #[error("--ros-args: {flag} {value:?}: {source}")]
    BadName {
        /// The flag.
        flag: String,
        /// The value as given.
        value: String,
        /// The name and its fault.
        source: NameError,
    },
}

impl Arguments {
    /// Splits a command line into ROS arguments and the rest, which keeps its
    /// order. `--ros-args` may come several times; each lasts until `--` or
    /// the end. Does no IO.
    pub fn parse<S: Into<String>>(
        words: impl IntoIterator<Item = S>,
    ) -> Result<(Arguments, Vec<String>), ArgumentsError> {
        let mut arguments = Arguments::default();
        let mut rest = Vec::new();
        let mut words = words.into_iter().map(Into::into);
        let mut inside = false;
        while let Some(word) = words.next() {
            match (inside, word.as_str()) {
                (_, "--ros-args") => inside = true,
                (false, _) => rest.push(word),
                (true, "--") => inside = false,
                (true, _) => arguments.take_flag(&word, || words.next())?,
            }
        }
        Ok((arguments, rest))
    }

    /// [`Arguments::parse`] on this process's own words, its name excluded.
    /// A word that is no UTF-8 is read with replacement characters.
    pub fn from_process() -> Result<(Arguments, Vec<String>), ArgumentsError> {
        Self::parse(
            std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned()),
        )
    }

    fn take_flag(
        &mut self,
        flag: &str,
        next: impl FnOnce() -> Option<String>,
    ) -> Result<(), ArgumentsError> {
        let value = |expected| {
            next()
                .filter(|v| v != "--")
                .ok_or(ArgumentsError::MissingValue {
                    flag: flag.into(),
                    expected,
                })
        };
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
            "--params-file" => {
                let file = value("a YAML file")?.into();
                self.parameters.push(ParameterArgument::File(file));
            }
            "-e" | "--enclave" => {
                let path = value("an enclave's path, as /arm")?;
                names::validate_enclave(&path).map_err(|source| ArgumentsError::BadName {
                    flag: flag.into(),
                    value: path.clone(),
                    source,
                })?;
                self.enclave = Some(path);
            }
            "--spin" => {
                let text = value("microseconds")?;
                let micros = text.parse().map_err(|_| ArgumentsError::BadValue {
                    flag: flag.into(),
                    value: text.clone(),
                    reason: "no number of microseconds".into(),
                    way_out: "write --spin 50".into(),
                })?;
                self.spin = Some(Duration::from_micros(micros));
            }
            "--shared-memory" => {
                let text = value("on or off")?;
                self.shared_memory = Some(match text.as_str() {
                    "on" => true,
                    "off" => false,
                    _ => {
                        return Err(ArgumentsError::BadValue {
                            flag: flag.into(),
                            value: text,
                            reason: "neither on nor off".into(),
                            way_out: "write --shared-memory off to use UDP alone".into(),
                        });
                    }
                });
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
                let prefix = value("what log files are named by")?;
                if prefix.is_empty() || prefix.contains('/') {
                    return Err(ArgumentsError::BadValue {
                        flag: flag.into(),
                        value: prefix,
                        reason: "no beginning of a file's name".into(),
                        way_out: "write --log-file-name arm; the folder is ROS_LOG_DIR".into(),
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
        let wrong = |reason: String, way_out: &str| ArgumentsError::BadValue {
            flag: flag.into(),
            value: text.into(),
            reason,
            way_out: way_out.into(),
        };
        // In rcutils the level of a logger that has none of its own.
        let severity: Option<Severity> = match level.eq_ignore_ascii_case("unset") {
            true => None,
            false => Some(level.parse().map_err(|_| {
                wrong(
                    format!("{level:?} is no log level"),
                    "use debug, info, warn, error or fatal, or unset",
                )
            })?),
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

fn setting<T: FromStr<Err = SettingError>>(flag: &str, text: &str) -> Result<T, ArgumentsError> {
    text.parse().map_err(|source| ArgumentsError::BadSetting {
        flag: flag.into(),
        source,
    })
}

fn unknown(word: &str) -> ArgumentsError {
    let way_out = if word.starts_with("__") || word.contains(":=") {
        format!("write -r {word} to remap or -p {word} to set a parameter")
    } else if let Some((flag, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        format!("write {flag} {value}, with a blank")
    } else if word.starts_with('-') {
        "known are -r, -p, --params-file, -e, --log-level, --log-config-file, --log-file-name, \
         --{enable,disable}-{rosout,stdout,external-lib}-logs, --spin, \
         --shared-memory, --trace, --thread-priority, --thread-cpus and --lock-memory"
            .into()
    } else {
        "end the ROS arguments with -- before it".into()
    };
    ArgumentsError::Unknown {
        word: word.into(),
        way_out,
    }
}

fn parameter(flag: &str, text: &str) -> Result<ParameterSetting, ArgumentsError> {
    let wrong = |reason: &str| ArgumentsError::BadValue {
        flag: flag.into(),
        value: text.into(),
        reason: reason.into(),
        way_out: "write NAME:=VALUE or NODE:NAME:=VALUE".into(),
    };
    let (target, value) = text.split_once(":=").ok_or_else(|| wrong("no := in it"))?;
    let (node, name) = match target.split_once(':') {
        Some((node, name)) => (Some(node), name),
        None => (None, target),
    };
    if let Some(node) = node {
        names::validate_node(node).map_err(|source| ArgumentsError::BadName {
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

#[cfg(test)]
mod tests;
