//! Requests of a viewer: JSON texts with an `op`, and binary frames. A request that is
//! malformed or not allowed gets a status, and unknown ones are ignored.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use crate::channel::Channel;
use crate::client::Client;
use crate::connection_graph::ConnectionGraph;
use crate::feed::Feed;
use crate::options::SUBSCRIPTIONS_MAX;
use crate::protocol::{self, ClientFrame, Level, id, parse_client_frame};
use crate::publishing::Publishing;
use crate::requests::Requests;
use crate::server::Server;
use crate::service_calls::Calls;
use crate::{assets, parameters, rviz};

/// The requests of a viewer. Its end ends the subscriptions.
pub struct Session {
    server: Arc<Server>,
    client: Arc<Client>,
    subscriptions: BTreeMap<u32, Subscribed>,
    publishing: Publishing,
    calls: Calls,
    requests: Requests,
}

struct Subscribed {
    feed: Arc<Feed>,
    _channel: Arc<Channel>,
}

impl Session {
    /// Adds a viewer to the server.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn open(server: &Arc<Server>) -> io::Result<Self> {
        let client = server.add_client()?;
        Ok(Self {
            server: server.clone(),
            calls: Calls::new(&client),
            requests: Requests::new(&client),
            client,
            subscriptions: BTreeMap::new(),
            publishing: Publishing::default(),
        })
    }

    /// The viewer.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// When [`Self::tick`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let deadlines = [self.calls.deadline(), self.publishing.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Ends what has taken too long.
    pub fn tick(&mut self) {
        self.calls.expire();
        self.publishing.tick();
    }

    /// Handles a JSON text.
    pub fn handle_text(&mut self, text: &str) {
        let message: Value = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => return self.refuse(&format!("a message is no JSON: {error}")),
        };
        let op = message["op"].as_str().unwrap_or_default();
        let handled = match op {
            "subscribe" => self.subscribe(&message),
            "unsubscribe" => {
                ids(&message["subscriptionIds"]).for_each(|id| self.unsubscribe(id));
                Ok(())
            }
            "advertise" => self
                .publishing
                .advertise(&self.server, &message["channels"]),
            "unadvertise" => {
                ids(&message["channelIds"]).for_each(|id| self.publishing.unadvertise(id));
                Ok(())
            }
            "getParameters" => self.parameters(parameters::get, message),
            "setParameters" => self.parameters(parameters::set, message),
            "subscribeParameterUpdates" => self.want_parameters(&message, true),
            "unsubscribeParameterUpdates" => self.want_parameters(&message, false),
            "subscribeConnectionGraph" => {
                self.subscribe_graph();
                Ok(())
            }
            "unsubscribeConnectionGraph" => {
                self.client.wants_graph.store(false, Ordering::Relaxed);
                Ok(())
            }
            "fetchAsset" => {
                let (server, client) = (self.server.clone(), self.client.clone());
                self.requests
                    .run(move || assets::fetch(&server, &client, &message))
            }
            "pteros.rviz" => {
                let (server, client) = (self.server.clone(), self.client.clone());
                self.requests.run(move || {
                    rviz::answer(&server, &client, &message);
                    Ok(())
                })
            }
            "pteros.hello" => {
                self.client.wants_statistics.store(true, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(reason) = handled {
            self.refuse(&reason);
        }
    }

    /// Handles a binary frame.
    pub fn handle_frame(&mut self, frame: &Bytes) {
        let handled = match parse_client_frame(frame) {
            Some(ClientFrame::Message { channel, payload }) => {
                self.publishing.publish(channel, &payload)
            }
            Some(ClientFrame::Call {
                service,
                call,
                encoding,
                payload,
            }) => {
                let server = &self.server;
                self.calls
                    .call(server, &mut self.requests, service, call, encoding, payload);
                Ok(())
            }
            None => Err("a binary frame is malformed or of an unknown kind".into()),
        };
        if let Err(reason) = handled {
            self.refuse(&reason);
        }
    }

    fn refuse(&self, reason: &str) {
        let status = protocol::status(Level::Error, None, reason);
        self.client.outbox.send(status);
    }

    fn subscribe(&mut self, message: &Value) -> Result<(), String> {
        // Of channels that have gone.
        self.subscriptions
            .retain(|_, subscribed| !subscribed.feed.has_ended());
        let wanted = message["subscriptions"].as_array();
        for one in wanted.into_iter().flatten() {
            let (Some(id), Some(channel)) = (id(&one["id"]), id(&one["channelId"])) else {
                return Err("subscribe: id and channelId are numbers".into());
            };
            if self.subscriptions.contains_key(&id) {
                return Err(format!("subscribe: id {id} is in use"));
            }
            if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
                return Err(format!(
                    "subscribe: a viewer has at most {SUBSCRIPTIONS_MAX} subscriptions"
                ));
            }
            let channel = self
                .server
                .with_channels(|channels, _| channels.find(channel));
            // It may have gone while the request was on its way.
            let channel = channel.ok_or("subscribe: this channel has gone")?;
            let snapshot = self.server.snapshot();
            let publishers = snapshot.publishers(&channel.topic);
            let feed = channel
                .subscribe(&self.server.node, publishers, &self.client, id)
                .map_err(|error| format!("subscribe: {error}"))?;
            let subscribed = Subscribed {
                feed,
                _channel: channel,
            };
            self.subscriptions.insert(id, subscribed);
        }
        Ok(())
    }

    fn unsubscribe(&mut self, id: u32) {
        if let Some(subscribed) = self.subscriptions.remove(&id) {
            subscribed.feed.remove(&self.client, id);
            self.client.outbox.close(id);
        }
    }

    fn subscribe_graph(&self) {
        self.server.with_viewers(|viewers| {
            self.client.wants_graph.store(true, Ordering::Relaxed);
            let all = viewers
                .connections
                .update_since(&ConnectionGraph::default());
            self.client.outbox.send(all);
        });
    }

    fn want_parameters(&self, message: &Value, is_wanted: bool) -> Result<(), String> {
        let names = message["parameterNames"].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        let mut wanted = self.client.wanted_parameters.lock();
        let added = if is_wanted {
            wanted.add(&names)
        } else {
            wanted.remove(&names);
            Ok(())
        };
        drop(wanted);
        let followed = self.server.parameter_updates.follow(&self.server);
        added.and(followed.map_err(|error| format!("subscribeParameterUpdates: {error}")))
    }

    fn parameters(
        &mut self,
        work: fn(&Server, &Client, &Value) -> Result<(), String>,
        message: Value,
    ) -> Result<(), String> {
        let (server, client) = (self.server.clone(), self.client.clone());
        self.requests.run(move || work(&server, &client, &message))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The robot stops first.
        self.publishing = Publishing::default();
        let ids: Vec<u32> = self.subscriptions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.unsubscribe(id));
        self.server.remove_client(&self.client);
        // Ends the subscription of the last viewer; ending one does not fail.
        let _ = self.server.parameter_updates.follow(&self.server);
    }
}

fn ids(value: &Value) -> impl Iterator<Item = u32> {
    value.as_array().into_iter().flatten().filter_map(id)
}
