//! Regular files: opens and reads a file that a person named, without blocking.
//!
//! A FIFO, socket or device in its place is refused. Opening or reading one may
//! block for ever, or never end. Feature `std`.

use alloc::string::String;
use alloc::vec::Vec;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Linux's `O_NONBLOCK`: a FIFO without a writer opens at once. It has no effect on
/// a regular file.
const NONBLOCK: i32 = 0o4000;

/// Opens a regular file, or a link to one, for reading. Never blocks for a writer.
///
/// # Errors
/// Those of the operating system, and one that names what else the file is.
pub fn open(path: &Path) -> io::Result<File> {
    // A socket or some devices fail to open, with an error that does not say why.
    refuse_other(&std::fs::metadata(path)?)?;
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
    text_of(File::open(path)?, bytes_max)
}

/// Reads a regular file of at most `bytes_max` bytes. Blocks for the disk.
///
/// # Errors
/// See [`open`]; also for a larger file.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    bytes_of(open(path)?, bytes_max)
}

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
