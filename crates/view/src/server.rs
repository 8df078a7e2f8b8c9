//! Server: the port, its threads, and what all viewers share.
//!
//! One thread listens, one follows the graph, and each connection has one. Locks, outermost
//! first: channels, viewers, then those of a channel, of a feed and of an outbox. No lock of
//! the server is held while the graph is asked or a socket is written.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use pteros::{Graph, Node};
use pteros_net::Waker;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use tungstenite::Message;

use crate::channel::Channels;
use crate::client::Client;
use crate::connection;
use crate::connection_graph::ConnectionGraph;
use crate::error::ViewError;
use crate::graph_snapshot::GraphSnapshot;
use crate::graph_watch;
use crate::http::{Refusal, send_refusal};
use crate::options::{CONNECTIONS_MAX, ViewOptions};
use crate::outbox::Skipped;
use crate::protocol::{self, CDR, JSON, Level};
use crate::services::Services;
use crate::token::Token;

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
    /// The address cannot be listened at, or the system has no threads left.
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
        let random = system("reading random numbers");
        let server = Arc::new(Server {
            graph: node.context().graph(),
            node: node.clone(),
            options,
            address,
            token: Token::random().map_err(random)?,
            session_id: Token::random().map_err(random)?,
            channels: Mutex::default(),
            viewers: Mutex::default(),
            changed: Condvar::new(),
            snapshot: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            stop_waker: Waker::new().map_err(system("creating an eventfd"))?,
            connections: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            last_client: AtomicU64::new(0),
        });
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
            viewers: self.server.viewers.lock().clients.len(),
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

/// What all threads of a server share.
pub struct Server {
    pub node: Node,
    pub graph: Graph,
    pub options: ViewOptions,
    pub address: SocketAddr,
    pub token: Token,
    session_id: Token,
    channels: Mutex<Channels>,
    viewers: Mutex<Viewers>,
    /// A viewer has come, or the server ends.
    changed: Condvar,
    snapshot: Mutex<Arc<GraphSnapshot>>,
    is_stopped: AtomicBool,
    stop_waker: Waker,
    connections: AtomicUsize,
    refused: AtomicU64,
    last_client: AtomicU64,
}

/// The viewers, and what all of them were told.
#[derive(Default)]
pub struct Viewers {
    pub clients: BTreeMap<u64, Arc<Client>>,
    pub connections: ConnectionGraph,
    pub services: Services,
}

impl Viewers {
    /// Sends a message to every viewer.
    pub fn broadcast(&self, message: &Message) {
        for client in self.clients.values() {
            client.outbox.send(message.clone());
        }
    }
}

impl Server {
    /// Whether the server ends.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.stop_waker.wake();
        let viewers = self.viewers.lock();
        self.changed.notify_all();
        viewers
            .clients
            .values()
            .for_each(|client| client.outbox.wake());
    }

    /// Whether a viewer is connected.
    pub fn has_viewers(&self) -> bool {
        !self.viewers.lock().clients.is_empty()
    }

    /// Blocks while there is no viewer; false when the server ends.
    pub fn wait_for_viewers(&self) -> bool {
        let mut viewers = self.viewers.lock();
        while viewers.clients.is_empty() && !self.is_stopped() {
            self.changed.wait(&mut viewers);
        }
        !self.is_stopped()
    }

    /// Blocks for that long, until a viewer comes, or until the server ends.
    pub fn pause(&self, time: Duration) {
        let mut viewers = self.viewers.lock();
        if !self.is_stopped() {
            self.changed.wait_for(&mut viewers, time);
        }
    }

    /// Reads or changes the channels, and tells the viewers in the same order.
    pub fn with_channels<T>(&self, work: impl FnOnce(&mut Channels, &mut Viewers) -> T) -> T {
        let mut channels = self.channels.lock();
        work(&mut channels, &mut self.viewers.lock())
    }

    /// Reads or changes what viewers were told.
    pub fn with_viewers<T>(&self, work: impl FnOnce(&mut Viewers) -> T) -> T {
        work(&mut self.viewers.lock())
    }

    /// The graph as it was last read.
    pub fn snapshot(&self) -> Arc<GraphSnapshot> {
        self.snapshot.lock().clone()
    }

    /// Replaces the graph that was last read.
    pub fn set_snapshot(&self, snapshot: Arc<GraphSnapshot>) {
        *self.snapshot.lock() = snapshot;
    }

    /// Adds a viewer and tells it what there is.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn add_client(&self) -> io::Result<Arc<Client>> {
        let id = self.last_client.fetch_add(1, Ordering::Relaxed);
        let client = Client::new(id)?;
        client.outbox.send(protocol::text(&self.info()));
        self.with_channels(|channels, viewers| {
            for message in protocol::advertise(channels.all().map(|channel| &**channel)) {
                client.outbox.send(message);
            }
            if let Some(message) = viewers.services.advertise_all() {
                client.outbox.send(message);
            }
            viewers.clients.insert(id, client.clone());
        });
        self.changed.notify_all();
        Ok(client)
    }

    /// Removes a viewer.
    pub fn remove_client(&self, client: &Client) {
        self.viewers.lock().clients.remove(&client.id);
    }

    /// The server's first message.
    fn info(&self) -> Value {
        let allowed = self.options.allowed;
        let mut capabilities = vec!["connectionGraph", "parameters", "assets"];
        let mut encodings = Vec::new();
        if allowed.publish {
            capabilities.push("clientPublish");
            encodings = vec![CDR, JSON];
        }
        if allowed.services {
            capabilities.push("services");
            encodings = vec![CDR, JSON];
        }
        if !self.graph.publishers("/clock").is_empty() {
            capabilities.push("time");
        }
        let words = [
            (allowed.publish, "publish"),
            (allowed.parameters, "params"),
            (allowed.services, "services"),
        ];
        let words = words.iter().filter(|(is_allowed, _)| *is_allowed);
        let words: Vec<_> = words.map(|(_, word)| *word).collect();
        json!({
            "op": "serverInfo",
            "name": self.options.name,
            "capabilities": capabilities,
            "supportedEncodings": encodings,
            "metadata": { "pteros": env!("CARGO_PKG_VERSION"), "allow": words.join(",") },
            "sessionId": self.session_id.text(),
        })
    }

    /// Tells each viewer what it skipped most, and how many.
    pub fn report_skipped(&self) {
        self.with_channels(|channels, viewers| {
            for client in viewers.clients.values() {
                let Some(Skipped { channel, count }) = client.next_report() else {
                    continue;
                };
                let Some(channel) = channels.find(channel) else {
                    continue;
                };
                let topic = &channel.topic;
                let id = format!("skipped/{topic}");
                let text =
                    format!("{topic}: this connection is too slow, {count} messages were skipped");
                let status = protocol::status(Level::Warning, Some(&id), &text);
                client.outbox.send(status);
            }
        });
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
