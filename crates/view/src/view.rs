//! View: the port with its threads. One listens, one follows the graph, and each connection
//! has one.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use pteros::Node;
use rustix::event::{PollFd, PollFlags, poll};

use crate::connection;
use crate::error::ViewError;
use crate::graph_watch;
use crate::http::{Refusal, send_refusal};
use crate::options::{CONNECTIONS_MAX, ViewOptions};
use crate::rviz;
use crate::server::Server;

/// How long a refused connection may take to read why.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(50);

/// A served port. Dropping it closes the port and all connections.
///
/// The caller spins the node: messages arrive in its executor.
pub struct View {
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
}

/// Connections of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewCounts {
    /// Open connections.
    pub connections: usize,
    /// Connections with a viewer.
    pub viewers: usize,
    /// Connections that were refused because there were too many.
    pub refused: u64,
}

impl View {
    /// Opens the port.
    ///
    /// # Errors
    /// The address cannot be listened at, the `.rviz` file is wrong, or the system has no threads left.
    pub fn start(node: &Node, options: ViewOptions) -> Result<Self, ViewError> {
        let wanted = options.address;
        let listen = |source| ViewError::Listen {
            address: wanted,
            source,
        };
        let listener = TcpListener::bind(wanted).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let system = |verb| move |source| ViewError::System { verb, source };
        let rviz = options.rviz.as_deref().map(rviz::read).transpose()?;
        let server = Server::new(node, options, address, rviz);
        let server = server.map_err(system("preparing a server"))?;
        let server = Arc::new(server);
        let mut view = Self {
            server: server.clone(),
            threads: Vec::new(),
        };
        let watch = server.clone();
        view.spawn("pteros-view-graph", move || graph_watch::run(&watch))?;
        view.spawn("pteros-view", move || {
            listen_until_stopped(&server, &listener)
        })?;
        Ok(view)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ViewError> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(work);
        self.threads
            .push(thread.map_err(|source| ViewError::System {
                verb: "starting a thread",
                source,
            })?);
        Ok(())
    }

    /// The address that is listened at.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The secret of this server.
    pub fn token(&self) -> &str {
        self.server.token.text()
    }

    /// The address of the page, with the token.
    pub fn url(&self) -> String {
        let mut address = self.server.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}/?token={}", self.token())
    }

    /// Connections now, and those that were refused.
    pub fn counts(&self) -> ViewCounts {
        ViewCounts {
            connections: self.server.connections.load(Ordering::Relaxed),
            viewers: self.server.with_viewers(|viewers| viewers.clients.len()),
            refused: self.server.refused.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("address", &self.address())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.server.stop();
        for thread in self.threads.drain(..) {
            // A panic of a thread was printed.
            let _ = thread.join();
        }
    }
}

/// Accepts connections until the server ends, and waits for the end of all of them.
fn listen_until_stopped(server: &Arc<Server>, listener: &TcpListener) {
    std::thread::scope(|scope| {
        while !server.is_stopped() {
            let mut ready = [
                PollFd::new(listener, PollFlags::IN),
                PollFd::new(&server.stop_waker, PollFlags::IN),
            ];
            if let Err(error) = poll(&mut ready, None)
                && error != rustix::io::Errno::INTR
            {
                tracing::error!("waiting for connections at {}: {error}", server.address);
                return;
            }
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        // Such as too many descriptors: not again at once.
                        tracing::warn!("accepting a connection: {error}");
                        server.pause(REFUSAL_TIMEOUT);
                    }
                    continue;
                }
            };
            // Accepted sockets do not inherit it on Linux, and may elsewhere.
            let prepared = stream.set_nonblocking(false).and(stream.set_nodelay(true));
            if prepared.is_err() {
                continue;
            }
            if server.connections.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                server.refused.fetch_add(1, Ordering::Relaxed);
                refuse_at_once(stream);
                continue;
            }
            server.connections.fetch_add(1, Ordering::Relaxed);
            let work = || {
                connection::serve(server, stream);
                server.connections.fetch_sub(1, Ordering::Relaxed);
            };
            let thread = std::thread::Builder::new().name("pteros-viewer".into());
            if let Err(error) = thread.spawn_scoped(scope, work) {
                server.connections.fetch_sub(1, Ordering::Relaxed);
                tracing::warn!("starting a thread for a connection: {error}");
            }
        }
    });
}

/// Tells a connection that there are too many.
fn refuse_at_once(mut stream: TcpStream) {
    let reason = format!("there are {CONNECTIONS_MAX} connections, close one");
    let refusal = Refusal::new("503 Service Unavailable", reason);
    let _ = stream.set_write_timeout(Some(REFUSAL_TIMEOUT));
    let _ = stream.set_read_timeout(Some(REFUSAL_TIMEOUT));
    if send_refusal(&mut stream, &refusal).is_ok() && stream.shutdown(Shutdown::Write).is_ok() {
        // Unread bytes at the close would reset the connection before the text is read.
        let _ = stream.read(&mut [0; 4096]);
    }
    let _ = stream.flush();
}
