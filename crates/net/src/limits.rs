//! Limits of the process (getrlimit): descriptors (RLIMIT_NOFILE) and file sizes
//! (RLIMIT_FSIZE).
//!
//! A file that grows beyond its limit is not an error but a signal (SIGXFSZ), which
//! ends a process that does not handle it. A library must not change how signals
//! are handled, so every writer of files asks first. Nothing here changes a limit.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys;

/// The folder in which the kernel lists the descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Descriptors of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Open now.
    pub open: usize,
    /// The soft limit.
    pub limit: usize,
}

impl Descriptors {
    /// Whether less than a tenth of the limit is free.
    pub fn is_scarce(&self) -> bool {
        self.limit.saturating_sub(self.open) < self.limit.div_ceil(10)
    }
}

/// Counts the open descriptors: one system call for some hundred of them.
///
/// `None` without a limit, or where /proc is not mounted. At the limit itself the
/// folder cannot be opened, and all count as open.
pub fn descriptors() -> Option<Descriptors> {
    let limit = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    let open = match std::fs::read_dir(DESCRIPTORS) {
        // One is the folder itself.
        Ok(entries) => entries.count().saturating_sub(1),
        Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => limit,
        Err(_) => return None,
    };
    Some(Descriptors { open, limit })
}

/// The descriptors of this process, if they are scarce.
///
/// Two system calls while there are plenty: a new descriptor has the lowest free
/// number, so they are counted only if half of the numbers are taken.
pub fn scarce_descriptors() -> Option<Descriptors> {
    let limit = getrlimit(Resource::Nofile).current?;
    let lowest = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 0);
    let is_plenty = |fd: &OwnedFd| (fd.as_raw_fd().unsigned_abs() as u64) < limit / 2;
    match lowest {
        Ok(fd) if is_plenty(&fd) => None,
        // Without a standard error there is nothing to learn from it.
        Err(error) if error != Errno::MFILE => None,
        _ => descriptors().filter(Descriptors::is_scarce),
    }
}

/// The largest size of a file that this process may write; [`u64::MAX`] without a
/// limit.
pub fn file_size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Checks that a file may have so many bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`], where writing would raise SIGXFSZ.
pub fn check_file_size(bytes: u64) -> io::Result<()> {
    let limit = file_size_limit();
    if bytes <= limit {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!(
            "{bytes} bytes are more than this process may write into a file, {limit} (RLIMIT_FSIZE); raise it with ulimit -f"
        ),
    ))
}

/// Makes a write beyond the limit of a file's size an error (EFBIG) instead of a signal
/// that ends the process (SIGXFSZ). For programs, not for libraries.
///
/// A handler that is installed already stays. A process that this one starts has the
/// default action again. Thread-safe, does not block.
///
/// # Errors
/// From the operating system.
pub fn report_file_size_errors() -> io::Result<()> {
    sys::handle_file_size_signal()
}

/// Allocates the blocks of a file, which gets so many zero bytes at its end. Blocks
/// for the disk. A later write to them cannot fail with a full disk.
///
/// # Errors
/// From [`check_file_size`] and the operating system.
pub fn allocate_file(file: &File, bytes: u64) -> io::Result<()> {
    check_file_size(bytes)?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        // Some file systems cannot allocate ahead.
        Err(Errno::OPNOTSUPP) => file.set_len(bytes),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_scarce_when_less_than_a_tenth_is_free() {
        let of = |open, limit| Descriptors { open, limit };
        assert!(!of(921, 1_024).is_scarce());
        assert!(of(922, 1_024).is_scarce());
        assert!(of(1_024, 1_024).is_scarce());
        assert!(!of(3, 16).is_scarce());
        assert!(of(15, 16).is_scarce());
    }

    #[test]
    fn open_descriptors_are_counted() {
        let before = descriptors().unwrap();
        let files: Vec<_> = (0..40).map(|_| File::open("/dev/null").unwrap()).collect();
        let after = descriptors().unwrap();
        // Other tests of this process open and close theirs meanwhile.
        assert!(after.open >= files.len() && after.open > before.open.saturating_sub(20));
        assert!(after.limit >= after.open);
    }
}
