//! Publishing of a viewer: topics that it advertises, and messages on them as CDR or JSON.
//! Each message is decoded first, so that no malformed one reaches a robot.
//!
//! A viewer that vanishes leaves no robot in motion: a channel of velocities publishes zero
//! when it ends, or when its viewer repeats no velocity in time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::{NamedQosExt, Node, Publisher, PublisherOptions};
use serde_json::Value;

use crate::protocol::{CDR, JSON, id};
use crate::server::Server;

/// Channels of one viewer.
const CHANNELS_MAX: usize = 64;
/// Messages that a publisher keeps for retransmission.
const DEPTH: usize = 10;
/// A velocity that is not repeated for so long ends. Panels of other viewers repeat it once a
/// second.
const VELOCITY_AGE_MAX: Duration = Duration::from_millis(1500);
const NANOS: i64 = 1_000_000_000;
/// How long the end of a channel waits for the robot to have the zero.
const ZERO_TIMEOUT: Duration = Duration::from_millis(500);

/// The channels of one viewer.
#[derive(Default)]
pub struct Publishing {
    channels: BTreeMap<u32, PublishedChannel>,
}

struct PublishedChannel {
    node: Node,
    publisher: Publisher<DynamicMessage>,
    ty: DynamicType,
    is_json: bool,
    /// While the last message is a velocity that is not zero.
    motion: Option<Motion>,
}

/// A robot may be driving.
struct Motion {
    zero: DynamicMessage,
    until: Instant,
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
                node: server.node.clone(),
                publisher,
                ty,
                is_json,
                motion: None,
            };
            self.channels.insert(id, published);
        }
        Ok(())
    }

    /// Ends a channel.
    pub fn unadvertise(&mut self, id: u32) {
        end(self.channels.remove(&id).into_iter());
    }

    /// Publishes a message.
    ///
    /// # Errors
    /// Unknown channel, malformed message, or the publisher's error.
    pub fn publish(&mut self, channel: u32, payload: &Bytes) -> Result<(), String> {
        let channel = self.channels.get_mut(&channel);
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
        channel.motion = zero_after(&message).map(|zero| Motion {
            zero,
            until: Instant::now() + VELOCITY_AGE_MAX,
        });
        channel
            .publisher
            .publish_owned(message)
            .map_err(|error| error.to_string())
    }

    /// When [`Self::tick`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let motions = self.channels.values().filter_map(|one| one.motion.as_ref());
        motions.map(|motion| motion.until).min()
    }

    /// Ends velocities that were not repeated.
    pub fn tick(&mut self) {
        let now = Instant::now();
        for channel in self.channels.values_mut() {
            if channel
                .motion
                .as_ref()
                .is_some_and(|motion| motion.until <= now)
            {
                channel.stop();
            }
        }
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        end(std::mem::take(&mut self.channels).into_values());
    }
}

/// Ends channels, after the robot has the zeros.
fn end(channels: impl Iterator<Item = PublishedChannel>) {
    let driving = channels.filter(|channel| channel.motion.is_some());
    let mut driving: Vec<PublishedChannel> = driving.collect();
    driving.iter_mut().for_each(PublishedChannel::stop);
    let until = Instant::now() + ZERO_TIMEOUT;
    for channel in driving {
        let left = until.saturating_duration_since(Instant::now());
        if !channel.publisher.wait_for_all_acked(left) {
            let topic = channel.publisher.topic();
            tracing::warn!("{topic}: a viewer has left, and no robot confirms the zero velocity");
        }
    }
}

impl PublishedChannel {
    /// Publishes zero if the robot may be driving.
    fn stop(&mut self) {
        let Some(Motion { mut zero, .. }) = self.motion.take() else {
            return;
        };
        let now = self.node.now().as_nanos();
        let (sec, nanosec) = (now.div_euclid(NANOS), now.rem_euclid(NANOS));
        // A Twist has no stamp. Controllers refuse old ones.
        let _ = zero.set_stamp("header.stamp", sec as i32, nanosec as u32);
        if let Err(error) = self.publisher.publish_owned(zero) {
            tracing::warn!("{}: stopping the robot: {error}", self.publisher.topic());
        }
    }
}

/// The zero that ends a velocity; none if the message is zero or no velocity.
fn zero_after(message: &DynamicMessage) -> Option<DynamicMessage> {
    let mut zero = DynamicMessage::new(message.ty());
    let is_zero = match message.ty().name() {
        "geometry_msgs/msg/Twist" => *message == zero,
        "geometry_msgs/msg/TwistStamped" => message.field("twist") == zero.field("twist"),
        _ => true,
    };
    if is_zero {
        return None;
    }
    if let Ok(frame) = message.get("header.frame_id") {
        // A TwistStamped has a frame.
        let _ = zero.set("header.frame_id", frame.into_owned());
    }
    Some(zero)
}

/// `std_msgs/String` is `std_msgs/msg/String`.
fn full_name(name: &str) -> String {
    match name.split('/').count() {
        2 => name.replacen('/', "/msg/", 1),
        _ => name.to_owned(),
    }
}
