//! Errors of the server. Each names the thing, the value and the way out.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why no port could be served.
#[derive(Error)]
pub enum ViewError {
    /// The address is in use, or is none of this host.
    #[error("listening at {address}: {source}; choose another one with --port or --address")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The file of displays cannot be read, or is none.
    #[error("{}: {reason}; --rviz takes a file that rviz2 has saved", path.display())]
    Rviz {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// The system has no random numbers, threads or descriptors left.
    #[error("{verb}: {source}")]
    System {
        /// The operation.
        verb: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

pteros::msg::debug_as_display!(ViewError);
