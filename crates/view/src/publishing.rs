//! Publishing of a viewer: topics that it advertises, and messages on them as CDR or JSON.
//! Each message is decoded first, so that no malformed one reaches a robot.

use std::collections::BTreeMap;

use bytes::Bytes;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::{NamedQosExt, Publisher, PublisherOptions};
use serde_json::Value;

use crate::protocol::{CDR, JSON, id};
use crate::server::Server;

/// Channels of one viewer.
const CHANNELS_MAX: usize = 64;
/// Messages that a publisher keeps for retransmission.
const DEPTH: usize = 10;

/// The channels of one viewer.
#[derive(Default)]
pub struct Publishing {
    channels: BTreeMap<u32, PublishedChannel>,
}

struct PublishedChannel {
    publisher: Publisher<DynamicMessage>,
    ty: DynamicType,
    is_json: bool,
}

impl Publishing {
    /// Creates publishers.
    ///
    /// # Errors
    /// Not allowed, unknown type or encoding, or too many.
    pub fn advertise(&mut self, server: &Server, channels: &Value) -> Result<(), String> {
        if !server.options.allowed.publish {
            return Err("publishing is not allowed; start pteros view with --allow publish".into());
        }
        for channel in channels.as_array().into_iter().flatten() {
            let text = |name: &str| channel[name].as_str().unwrap_or_default();
            let topic = text("topic");
            let refuse = |reason: String| format!("publishing on {topic}: {reason}");
            let id = id(&channel["id"]).ok_or_else(|| refuse("the id is no number".into()))?;
            if self.channels.len() >= CHANNELS_MAX || self.channels.contains_key(&id) {
                return Err(refuse(format!(
                    "the id {id} is in use, or there are {CHANNELS_MAX} channels"
                )));
            }
            if !topic.starts_with('/') || !(server.options.filter)(topic) {
                return Err(refuse("this topic is not served".into()));
            }
            let encoding = text("encoding");
            if ![CDR, JSON].contains(&encoding) {
                return Err(refuse(format!(
                    "the encoding is {encoding}; use {CDR} or {JSON}"
                )));
            }
            let name = full_name(text("schemaName"));
            let described = server.options.library.describe(&name);
            let described = described.map_err(|error| refuse(error.to_string()))?;
            let ty = DynamicType::new(&described).map_err(|error| refuse(error.to_string()))?;
            let options = PublisherOptions::of_type(&ty, topic.keep_last(DEPTH));
            let publisher = server.node.create_publisher(options);
            let publisher = publisher.map_err(|error| refuse(error.to_string()))?;
            let is_json = encoding == JSON;
            let published = PublishedChannel {
                publisher,
                ty,
                is_json,
            };
            self.channels.insert(id, published);
        }
        Ok(())
    }

    /// Ends a channel.
    pub fn unadvertise(&mut self, id: u32) {
        self.channels.remove(&id);
    }

    /// Publishes a message.
    ///
    /// # Errors
    /// Unknown channel, malformed message, or the publisher's error.
    pub fn publish(&self, channel: u32, payload: &Bytes) -> Result<(), String> {
        let channel = self.channels.get(&channel);
        let channel = channel.ok_or("a message of a channel that is not advertised")?;
        let topic = channel.publisher.topic();
        let message = if channel.is_json {
            let text = std::str::from_utf8(payload).map_err(|error| format!("{topic}: {error}"))?;
            DynamicMessage::from_yaml(&channel.ty, text)
                .map_err(|error| format!("{topic}: {error}"))?
        } else {
            let decoded = DynamicMessage::from_payload(&channel.ty, payload);
            decoded.map_err(|error| format!("{topic}: {error}"))?
        };
        channel
            .publisher
            .publish_owned(message)
            .map_err(|error| error.to_string())
    }
}

/// `std_msgs/String` is `std_msgs/msg/String`.
fn full_name(name: &str) -> String {
    match name.split('/').count() {
        2 => name.replacen('/', "/msg/", 1),
        _ => name.to_owned(),
    }
}
