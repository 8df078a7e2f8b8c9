//! Log file options: folder, size, count and format, and the YAML file of
//! `--log-config-file`.
//!
//! ```yaml
//! format: json        # or text
//! folder: /var/log/robot
//! file_bytes_max: 16M
//! files_max: 8
//! ```
//!
//! In ROS 2 the content of that file is up to the logging backend, and the default
//! one takes none.

use std::path::{Path, PathBuf};

use pteros_msg::yaml::{YamlContent, YamlNode, YamlPosition};

use crate::arguments_error::ArgumentsError;

/// Largest file of `--log-config-file` in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// How log files are written.
///
/// Unset fields take the value of the `--log-config-file` file, else the default
/// given here.
///
/// ```
/// use pteros::ContextOptions;
/// use pteros::log::{LogFileFormat, LogFileOptions};
///
/// let options = ContextOptions {
///     log_files: LogFileOptions {
///         folder: Some("/var/log/robot".into()),
///         format: Some(LogFileFormat::Json),
///         ..LogFileOptions::default()
///     },
///     ..ContextOptions::default()
/// };
/// # assert!(options.log_files.files_max.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFileOptions {
    /// The folder, created with the first message.
    ///
    /// If unset and the context reads the environment: ROS_LOG_DIR, else `log` in
    /// ROS_HOME, else `~/.ros/log`. Otherwise there are no files.
    pub folder: Option<PathBuf>,
    /// The format of a line. Text unless set.
    pub format: Option<LogFileFormat>,
    /// The size in bytes at which a file is rotated.
    ///
    /// At least 4 KiB, 64 MiB unless set.
    pub file_bytes_max: Option<u64>,
    /// The number of files kept, including the current one; beyond it the oldest is
    /// deleted.
    ///
    /// 1 to 100, 4 unless set.
    pub files_max: Option<u32>,
}

/// Format of a line in a log file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFileFormat {
    /// The console's line without colours (RCUTILS_CONSOLE_OUTPUT_FORMAT).
    #[default]
    Text,
    /// A JSON object with the fields of `rcl_interfaces/msg/Log` and `severity`,
    /// the level's name.
    Json,
}

/// Two files of 64 MiB hold a million lines, and four bound what a process can
/// write to the flash of a robot.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: u32 = 4;
const FILE_BYTES: std::ops::RangeInclusive<u64> = 4_096..=1 << 40;
const FILES: std::ops::RangeInclusive<u32> = 1..=100;

/// Log file options with all fields resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct LogFileSettings {
    /// `None` writes no file.
    pub folder: Option<PathBuf>,
    /// Text lines or JSON lines.
    pub format: LogFileFormat,
    /// Size in bytes from which a further file begins.
    pub file_bytes_max: u64,
    /// Number of files; the oldest is deleted beyond it.
    pub files_max: u32,
}

impl LogFileOptions {
    /// These options, then those of the file, then the defaults.
    pub fn resolve(
        &self,
        file: Option<&Path>,
        folder: Option<PathBuf>,
    ) -> Result<LogFileSettings, ArgumentsError> {
        let from_file = file.map(Self::read).transpose()?.unwrap_or_default();
        let bytes = self.file_bytes_max.or(from_file.file_bytes_max);
        let files = self.files_max.or(from_file.files_max);
        let settled = LogFileSettings {
            folder: self.folder.clone().or(from_file.folder).or(folder),
            format: self.format.or(from_file.format).unwrap_or_default(),
            file_bytes_max: bytes.unwrap_or(FILE_BYTES_MAX),
            files_max: files.unwrap_or(FILES_MAX),
        };
        let out_of_range = |field: &str, value: u64, range| ArgumentsError::Invalid {
            location: "log files".into(),
            problem: format!("{field} is {value}"),
            hint: range,
        };
        if !FILE_BYTES.contains(&settled.file_bytes_max) {
            let bytes = settled.file_bytes_max;
            return Err(out_of_range("file_bytes_max", bytes, BYTES_RANGE));
        }
        if !FILES.contains(&settled.files_max) {
            let files = u64::from(settled.files_max);
            return Err(out_of_range("files_max", files, FILES_RANGE));
        }
        Ok(settled)
    }

    /// Reads the file of `--log-config-file`. Blocks for the disk.
    fn read(path: &Path) -> Result<Self, ArgumentsError> {
        let text =
            pteros_msg::regular_file::read_text(path, CONFIG_BYTES_MAX).map_err(|error| {
                ArgumentsError::Invalid {
                    location: format!("--log-config-file {path:?}"),
                    problem: format!("cannot be read: {error}"),
                    hint: "name a file that exists, or leave the flag out",
                }
            })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ArgumentsError> {
        let wrong = |place: YamlPosition, problem: String, hint| ArgumentsError::Invalid {
            location: format!("--log-config-file {path:?}, line {}", place.line),
            problem,
            hint,
        };
        let root = YamlNode::read(text)
            .map_err(|error| wrong(error.place, error.message, "write lines of KEY: VALUE"))?;
        let mut options = Self::default();
        let entries = match &root.content {
            _ if root.is_null() => return Ok(options),
            YamlContent::Mapping(entries) => entries,
            _ => {
                let problem = format!("{} where keys should be", root.found_text());
                return Err(wrong(root.place, problem, KEYS));
            }
        };
        for entry in entries {
            let value = match &entry.value.content {
                YamlContent::Scalar { text, .. } => text.as_str(),
                _ => {
                    let problem = format!("{} is {}", entry.key, entry.value.found_text());
                    return Err(wrong(entry.value.place, problem, KEYS));
                }
            };
            let refuse = |hint| {
                let problem = format!("{} is {value:?}", entry.key);
                wrong(entry.value.place, problem, hint)
            };
            match entry.key.as_str() {
                "folder" if value.is_empty() => return Err(refuse("name a folder")),
                "folder" => options.folder = Some(value.into()),
                "format" => {
                    options.format = Some(match value {
                        "text" => LogFileFormat::Text,
                        "json" => LogFileFormat::Json,
                        _ => return Err(refuse("write text or json")),
                    });
                }
                "file_bytes_max" => {
                    let bytes = bytes(value).filter(|bytes| FILE_BYTES.contains(bytes));
                    options.file_bytes_max = Some(bytes.ok_or_else(|| refuse(BYTES_RANGE))?);
                }
                "files_max" => {
                    let files = value.parse().ok().filter(|files| FILES.contains(files));
                    options.files_max = Some(files.ok_or_else(|| refuse(FILES_RANGE))?);
                }
                key => {
                    let problem = format!("{key:?} is not a key of log files");
                    return Err(wrong(entry.place, problem, KEYS));
                }
            }
        }
        Ok(options)
    }
}

const KEYS: &str = "write format, folder, file_bytes_max or files_max, each with a value";
const BYTES_RANGE: &str =
    "use a number of bytes from 4096 to 1024 G, with k, M or G for powers of 1024";
const FILES_RANGE: &str = "use a number from 1 to 100";

fn bytes(text: &str) -> Option<u64> {
    let (number, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (text.get(..text.len() - 1)?, 1 << 10),
        b'M' => (text.get(..text.len() - 1)?, 1 << 20),
        b'G' => (text.get(..text.len() - 1)?, 1 << 30),
        _ => (text, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<LogFileOptions, ArgumentsError> {
        LogFileOptions::parse(Path::new("log.yaml"), text)
    }

    #[test]
    fn the_program_precedes_the_file_and_the_file_the_environment() {
        let text = "format: json\nfolder: /var/log/robot\nfile_bytes_max: 16k\nfiles_max: 2\n";
        let from_file = parse(text).unwrap();
        assert_eq!(from_file.format, Some(LogFileFormat::Json));
        assert_eq!(from_file.file_bytes_max, Some(16 << 10));
        let settled = from_file.resolve(None, Some("/ros/log".into())).unwrap();
        assert_eq!(settled.folder, Some("/var/log/robot".into()));
        assert_eq!(settled.files_max, 2);
        let settled = LogFileOptions::default().resolve(None, Some("/ros/log".into()));
        assert_eq!(settled.unwrap().folder, Some("/ros/log".into()));
        assert_eq!(parse("# nothing\n").unwrap(), LogFileOptions::default());
    }

    #[test]
    fn an_invalid_entry_is_named_with_its_line() {
        for (text, line, part) in [
            (
                "format: json\nlevel: 3\n",
                2,
                "\"level\" is not a key of log files",
            ),
            ("format: xml", 1, "format is \"xml\"; write text or json"),
            (
                "\n\nfile_bytes_max: 1",
                3,
                "file_bytes_max is \"1\"; use a number of bytes",
            ),
            (
                "files_max: many",
                1,
                "files_max is \"many\"; use a number from 1 to 100",
            ),
            ("- a\n", 1, "where keys should be"),
            ("folder: [a]", 1, "folder is"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            let begin = format!("--log-config-file \"log.yaml\", line {line}: ");
            assert!(error.starts_with(&begin) && error.contains(part), "{error}");
        }
        let few = LogFileOptions {
            files_max: Some(0),
            ..LogFileOptions::default()
        };
        let error = few.resolve(None, None).unwrap_err().to_string();
        assert_eq!(
            error,
            "log files: files_max is 0; use a number from 1 to 100"
        );
        let missing = LogFileOptions::default().resolve(Some(Path::new("/no/such")), None);
        assert!(missing.unwrap_err().to_string().contains("cannot be read"));
    }
}
