//! Server: what the threads of all viewers share.
//!
//! Locks, outermost first: channels, viewers, then those of a channel, of a feed and of an
//! outbox. No lock of the server is held while the graph is asked or a socket is written.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use pteros::{Graph, Node};
use pteros_net::Waker;
use serde_json::{Value, json};
use tungstenite::Message;

use crate::channel::Channels;
use crate::client::Client;
use crate::connection_graph::ConnectionGraph;
use crate::graph_snapshot::GraphSnapshot;
use crate::options::ViewOptions;
use crate::outbox::Skipped;
use crate::parameter_updates::ParameterUpdates;
use crate::protocol::{self, CDR, JSON, Level};
use crate::services::Services;
use crate::token::Token;

/// The state that all threads of a server share.
pub struct Server {
    pub node: Node,
    pub graph: Graph,
    pub options: ViewOptions,
    pub address: SocketAddr,
    pub token: Token,
    /// The `.rviz` file of the command line.
    pub rviz: Option<Value>,
    pub parameter_updates: ParameterUpdates,
    session_id: Token,
    channels: Mutex<Channels>,
    viewers: Mutex<Viewers>,
    /// A viewer has come, or the server ends.
    changed: Condvar,
    snapshot: Mutex<Arc<GraphSnapshot>>,
    is_stopped: AtomicBool,
    pub stop_waker: Waker,
    /// Open connections, and those that were refused.
    pub connections: AtomicUsize,
    pub refused: AtomicU64,
    last_client: AtomicU64,
}

/// The viewers, and the graph that all of them were told of.
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
    /// A server without threads.
    ///
    /// # Errors
    /// The system has no random numbers or descriptors left.
    pub fn new(
        node: &Node,
        options: ViewOptions,
        address: SocketAddr,
        rviz: Option<Value>,
    ) -> io::Result<Self> {
        Ok(Self {
            graph: node.context().graph(),
            node: node.clone(),
            options,
            address,
            token: Token::random()?,
            rviz,
            parameter_updates: ParameterUpdates::default(),
            session_id: Token::random()?,
            channels: Mutex::default(),
            viewers: Mutex::default(),
            changed: Condvar::new(),
            snapshot: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            stop_waker: Waker::new()?,
            connections: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            last_client: AtomicU64::new(0),
        })
    }

    /// Whether the server ends.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Ends the server.
    pub fn stop(&self) {
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
        let mut capabilities = vec![
            "connectionGraph",
            "parameters",
            "parametersSubscribe",
            "assets",
        ];
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
        let mut metadata = json!({ "pteros": env!("CARGO_PKG_VERSION"), "allow": words.join(",") });
        if let Some(file) = &self.rviz {
            metadata["rviz"] = file["name"].clone();
        }
        json!({
            "op": "serverInfo",
            "name": self.options.name,
            "capabilities": capabilities,
            "supportedEncodings": encodings,
            "metadata": metadata,
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
