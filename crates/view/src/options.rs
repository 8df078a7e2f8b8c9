//! Options of a server, and its limits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use pteros::msg::library::InterfaceLibrary;

/// Connections at a time, those of the page's files included. Further ones get 503.
pub(crate) const CONNECTIONS_MAX: usize = 64;
/// Channels that are advertised. Further topics are left out.
pub(crate) const CHANNELS_MAX: usize = 4096;
/// Subscriptions of one viewer.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 1024;
/// Largest message of a viewer that may not publish or call.
pub(crate) const READ_ONLY_MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Largest message of a viewer that may.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Whether a topic or service is shown, by its full name.
pub type NameFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The share folder of a package, by its name.
pub type PackageFinder = Arc<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// The changes that viewers may make. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Viewers may publish.
    pub publish: bool,
    /// Viewers may set parameters.
    pub parameters: bool,
    /// Viewers may call services.
    pub services: bool,
}

/// Where a server listens, what it shows and what it allows.
#[derive(Clone)]
pub struct ViewOptions {
    /// The address to listen at; port 0 means a free one. 127.0.0.1:8765 by default.
    pub address: SocketAddr,
    /// The changes that viewers may make.
    pub allowed: Allowed,
    /// Shown topics and services.
    pub filter: NameFilter,
    /// Origins of pages that may connect, beside the own one: `https://app.foxglove.dev`.
    pub origins: Vec<String>,
    /// Definitions of types. Publishers describe types that it lacks.
    pub library: InterfaceLibrary,
    /// The share folder of a package, for meshes by `package://`. No package by default.
    pub find_package: PackageFinder,
    /// A file of displays that rviz2 has saved, for the page. None by default.
    pub rviz: Option<PathBuf>,
    /// The server's name for viewers.
    pub name: String,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8765),
            allowed: Allowed::default(),
            filter: Arc::new(|_| true),
            origins: Vec::new(),
            library: pteros::interfaces::library().clone(),
            find_package: Arc::new(|_| None),
            rviz: None,
            name: "pteros view".into(),
        }
    }
}

impl fmt::Debug for ViewOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewOptions")
            .field("address", &self.address)
            .field("allowed", &self.allowed)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}
