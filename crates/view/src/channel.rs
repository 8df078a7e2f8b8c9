//! Channels: one for each topic and type, with an id that is never used again, and the
//! feeds of its viewers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros::Node;
use pteros::error::CreateError;
use pteros::graph::EndpointInfo;
use pteros::msg::hash::TypeHash;

use crate::client::Client;
use crate::feed::{Feed, Offer};

/// A topic and type with its definition.
pub struct Channel {
    pub id: u32,
    pub topic: String,
    pub type_name: String,
    /// The definition, or nothing if nobody describes the type.
    pub schema: String,
    pub type_hash: Option<TypeHash>,
    /// Living feeds: one for all viewers, or one for each if late viewers get history.
    feeds: Mutex<Vec<Weak<Feed>>>,
}

impl Channel {
    /// Subscribes a viewer: joins the feed of others, or begins one.
    ///
    /// # Errors
    /// The subscription cannot be created, such as for access control.
    pub fn subscribe(
        &self,
        node: &Node,
        publishers: &[EndpointInfo],
        client: &Arc<Client>,
        subscription: u32,
    ) -> Result<Arc<Feed>, CreateError> {
        let offer = Offer::of(publishers);
        client.outbox.open(subscription, offer.queue(self.id));
        let mut feeds = self.feeds.lock();
        feeds.retain(|feed| feed.strong_count() > 0);
        let mut living = feeds.iter().filter_map(Weak::upgrade);
        let feed = match living.find(|feed| !offer.is_latched && feed.is_shared()) {
            Some(feed) => feed,
            None => {
                let feed = Feed::new();
                feeds.push(Arc::downgrade(&feed));
                feed
            }
        };
        // Before the first message comes.
        feed.add(client.clone(), subscription);
        if let Err(error) = feed.follow(node, self, offer) {
            feed.remove(client, subscription);
            client.outbox.close(subscription);
            return Err(error);
        }
        Ok(feed)
    }

    /// The living feeds.
    pub fn feeds(&self) -> Vec<Arc<Feed>> {
        self.feeds.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// Topic and type of a channel.
pub type ChannelKey = (String, String);

/// The advertised channels.
#[derive(Default)]
pub struct Channels {
    by_key: BTreeMap<ChannelKey, Arc<Channel>>,
    last_id: u32,
}

/// The parts of a new channel.
pub struct NewChannel {
    pub key: ChannelKey,
    pub schema: String,
    pub type_hash: Option<TypeHash>,
}

impl Channels {
    /// Adds a channel.
    pub fn add(&mut self, new: NewChannel) -> Arc<Channel> {
        self.last_id += 1;
        let (topic, type_name) = new.key.clone();
        let channel = Arc::new(Channel {
            id: self.last_id,
            topic,
            type_name,
            schema: new.schema,
            type_hash: new.type_hash,
            feeds: Mutex::default(),
        });
        self.by_key.insert(new.key, channel.clone());
        channel
    }

    /// Removes the channels that are not among `living`, and returns them.
    pub fn retain(&mut self, living: &BTreeSet<ChannelKey>) -> Vec<Arc<Channel>> {
        let mut gone = Vec::new();
        self.by_key.retain(|key, channel| {
            let stays = living.contains(key);
            if !stays {
                gone.push(channel.clone());
            }
            stays
        });
        gone
    }

    /// Whether there is a channel of that topic and type.
    pub fn contains(&self, key: &ChannelKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// All channels.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.by_key.values()
    }

    /// The number of channels.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The channel with that id.
    pub fn find(&self, id: u32) -> Option<Arc<Channel>> {
        self.all().find(|channel| channel.id == id).cloned()
    }
}
