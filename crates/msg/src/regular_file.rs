//! Regular files: opens and reads a file that a person named, without blocking.
//!
//! A FIFO, socket or device in its place is refused. Opening or reading one may
//! block for ever, or never end. The error of a missing file names a close one of the
//! same folder. Feature `std`.

use crate::suggest::close_names;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Linux's `O_NONBLOCK`: a FIFO without a writer opens at once. It has no effect on
/// a regular file.
const NONBLOCK: i32 = 0o4000;

/// Opens a regular file, or a link to one, for reading. Never blocks for a writer.
///
/// # Errors
/// Those of the operating system, and one that names what else the file is.
pub fn open(path: &Path) -> io::Result<File> {
    // A socket or some devices fail to open, with an error that does not say why.
    let metadata = std::fs::metadata(path).map_err(|error| named(path, error))?;
    refuse_other(&metadata)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(NONBLOCK)
        .open(path)?;
    // The path may name another file by now.
    refuse_other(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `bytes_max` bytes as text. Blocks for the disk.
///
/// # Errors
/// See [`open`]; also for a larger file, and for text that is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_of(open(path)?, bytes_max)
}

/// As [`read_text`], for a path of the command line: a FIFO is read to its end, since a
/// shell passes one for `<(COMMAND)`. Blocks until it has a writer.
///
/// # Errors
/// Those of the operating system; also for a larger file, and for text that is not UTF-8.
pub fn read_text_or_pipe(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = File::open(path).map_err(|error| named(path, error))?;
    text_of(file, bytes_max)
}

/// Reads a regular file of at most `bytes_max` bytes. Blocks for the disk.
///
/// # Errors
/// See [`open`]; also for a larger file.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    bytes_of(open(path)?, bytes_max)
}

/// ` (did you mean PATH?)` for a path that is not there, with the closest name of its
/// folder; empty if no name is close, or if the folder cannot be read. Blocks for the
/// disk, and reads at most a thousand names.
pub fn close_name_hint(path: &Path) -> String {
    let close = close_path(path);
    let hint = close.map(|path| alloc::format!(" (did you mean {}?)", path.display()));
    hint.unwrap_or_default()
}

fn close_path(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|parent| *parent != Path::new(""));
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let entries = entries.take(SIBLINGS_MAX).filter_map(Result::ok);
    let names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != wanted)
        .collect();
    let close = close_names(wanted, names.iter().map(String::as_str));
    Some(path.with_file_name(close.first()?))
}

/// Names of a folder that are compared with a missing one.
const SIBLINGS_MAX: usize = 1_000;

/// The error of opening `path`. That of a missing file gets a close name.
fn named(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let missing = MissingFile(path.into());
    io::Error::new(io::ErrorKind::NotFound, missing)
}

/// A file that is not there. Its text is made when it is shown, because most searches
/// for files try many that are not there.
#[derive(Debug)]
struct MissingFile(PathBuf);

impl fmt::Display for MissingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = close_name_hint(&self.0);
        write!(f, "No such file or directory{hint}")
    }
}

impl core::error::Error for MissingFile {}

fn bytes_of(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = file.take(bytes_max.saturating_add(1));
    limited.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = alloc::format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn text_of(file: File, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(bytes_of(file, bytes_max)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = alloc::format!("it is not text: byte {at} is not UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn refuse_other(metadata: &std::fs::Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let found = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "folder"
    } else if kind.is_fifo() {
        "FIFO"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    };
    let message = alloc::format!("it is a {found}, not a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_missing_file_names_a_close_one_of_its_folder() {
        let folder =
            std::env::temp_dir().join(alloc::format!("pteros-close-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["robot.launch.xml", "params.yaml"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let error = |name: &str| open(&folder.join(name)).unwrap_err();
        for (wrong, right) in [
            ("robot.lanch.xml", "robot.launch.xml"),
            ("robots.launch.xml", "robot.launch.xml"),
            ("parms.yaml", "params.yaml"),
            ("params.yml", "params.yaml"),
        ] {
            let right = folder.join(right);
            let says = alloc::format!(
                "No such file or directory (did you mean {}?)",
                right.display()
            );
            assert_eq!(error(wrong).to_string(), says);
            assert_eq!(error(wrong).kind(), io::ErrorKind::NotFound);
            let read = read_text_or_pipe(&folder.join(wrong), 9).unwrap_err();
            assert_eq!(read.to_string(), says);
        }
        let strange = error("battery.urdf").to_string();
        assert_eq!(strange, "No such file or directory");
        let nowhere = open(&folder.join("no/robot.launch.xml")).unwrap_err();
        assert_eq!(nowhere.to_string(), "No such file or directory");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = Folder::new("file");
        let fifo = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let text = folder.join("text");
        std::fs::write(&text, "abc").unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(&text, &link).unwrap();
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(read_text(&link, 3).unwrap(), "abc");
        for (path, says) in [
            (fifo.as_path(), "a FIFO"),
            (folder.path(), "a folder"),
            (socket.as_path(), "a socket"),
            (Path::new("/dev/zero"), "a device"),
            (text.as_path(), "more than 2 bytes"),
        ] {
            let error = read_text(path, 2).unwrap_err().to_string();
            assert!(error.contains(says), "{}: {error}", path.display());
        }
        std::fs::write(&text, [b'a', 0xff]).unwrap();
        let error = read_text(&text, 9).unwrap_err().to_string();
        assert!(error.contains("byte 1 is not UTF-8"), "{error}");
    }
}
