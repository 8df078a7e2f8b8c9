//! What fills a buffer: `/tf` and `/tf_static`, heard once for all nodes of a process.
//!
//! Messages are read on whichever thread brings them, there and then
//! ([`Attendant`](pteros_rmw::reader::Attendant)), while others may be busy in user
//! code: a callback can wait for a transform.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_interfaces::tf2_msgs::msg::TFMessage;
use pteros_msg::from_payload;
use pteros_rmw::Core;
use pteros_rmw::env::Instant;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::names::{NameKind, node_path};
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::sample::{Body, Item};

use super::buffer::{TransformBuffer, TransformBufferOptions, TransformWait, nameless};
use super::error::LookupError;
use super::transformable::Transformable;
use super::tree::Authority;
use crate::clock::{JumpKind, Time, TimeJump, TimeWatch};
use crate::error::CreateError;
use crate::node::{Node, NodeCore, TypeFacts, spec};
use crate::qos::QosProfile;

/// Hears `/tf` and `/tf_static` and keeps what they say in a [`TransformBuffer`].
///
/// All listeners of a context with the same topics, after remapping, share one
/// buffer and one pair of subscriptions, which end with the last of them. It needs
/// no executor: a look-up that waits drives the network itself. When the ROS time
/// of one of its nodes goes back, or `use_sim_time` changes, all but the static
/// transforms are forgotten. Cheap to clone, thread-safe.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
/// use pteros::tf::{LATEST, TransformListener};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("where_am_i")?;
/// let transforms = TransformListener::new(&node)?;
/// let second = Duration::from_secs(1);
/// let robot = transforms.lookup_within("map", "base_link", LATEST, second)?;
/// println!("{} {}", robot.transform.translation.x, robot.transform.translation.y);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TransformListener {
    node: Arc<NodeCore>,
    ears: Arc<Ears>,
}

/// The subscriptions of a context's listeners, by their topics.
pub(crate) type TransformEars = Mutex<Vec<Weak<Ears>>>;

/// Both subscriptions and what they fill.
pub(crate) struct Ears {
    topics: [String; 2],
    buffer: TransformBuffer,
    core: Arc<Core>,
    readers: [Arc<ReaderEndpoint>; 2],
    nodes: Mutex<Vec<NodeKey>>,
}

impl TransformListener {
    /// One with the buffer that all listeners of the process share.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        let topics = topics(node)?;
        let mut all = node.context().inner.transforms.lock();
        all.retain(|ears| ears.strong_count() > 0);
        let shared = all.iter().filter_map(Weak::upgrade);
        let known = shared.into_iter().find(|ears| ears.topics == topics);
        let ears = match known {
            Some(ears) => ears,
            None => {
                let ears = Ears::open(node, topics, TransformBufferOptions::default())?;
                all.push(Arc::downgrade(&ears));
                ears
            }
        };
        drop(all);
        Ok(Self::of(node, ears))
    }

    /// One with a buffer and subscriptions of its own, kept as `options` say.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn with_options(node: &Node, options: TransformBufferOptions) -> Result<Self, CreateError> {
        let ears = Ears::open(node, topics(node)?, options)?;
        Ok(Self::of(node, ears))
    }

    fn of(node: &Node, ears: Arc<Ears>) -> Self {
        let core = node.core();
        let mut nodes = ears.nodes.lock();
        if !nodes.contains(&core.key) {
            nodes.push(core.key);
            for reader in &ears.readers {
                core.attach_endpoint(&reader.announced());
            }
        }
        drop(nodes);
        let watch: Arc<dyn TimeWatch> = ears.clone();
        core.time.add_watch(&watch);
        Self {
            node: core.clone(),
            ears,
        }
    }

    /// The buffer it fills.
    pub fn buffer(&self) -> &TransformBuffer {
        &self.ears.buffer
    }

    /// See [`TransformBuffer::lookup`].
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup(
        &self,
        target: &str,
        source: &str,
        time: Time,
    ) -> Result<TransformStamped, LookupError> {
        self.buffer().lookup(target, source, time)
    }

    /// As [`TransformBuffer::lookup`]; waits for the transform for at most `timeout`
    /// of ROS time. Blocks, also in a callback: it drives the network itself and runs
    /// no callbacks. While simulated time stands, so does it.
    ///
    /// # Errors
    /// [`LookupError::TimedOut`] with the reason why there is none yet,
    /// [`LookupError::Interrupted`] when the context shuts down or ROS time goes back.
    pub fn lookup_within(
        &self,
        target: &str,
        source: &str,
        time: Time,
        timeout: Duration,
    ) -> Result<TransformStamped, LookupError> {
        if let Some(mistake) = nameless(target, source) {
            return Err(mistake);
        }
        let mut found = None;
        let waited = self.wait(timeout, || {
            found = self.buffer().find(target, source, time);
            found.is_some()
        });
        if let Some(found) = found {
            return Ok(found);
        }
        match (self.lookup(target, source, time), waited) {
            (Ok(found), _) => Ok(found),
            (Err(reason), _) if timeout.is_zero() => Err(reason),
            (Err(reason), Ok(waited)) => Err(LookupError::TimedOut {
                waited,
                reason: Box::new(reason),
            }),
            (Err(reason), Err(why)) => Err(LookupError::Interrupted {
                why,
                reason: Box::new(reason),
            }),
        }
    }

    /// Waits until `done` or that much ROS time is over; how long that was, or what
    /// ended it before.
    fn wait(
        &self,
        timeout: Duration,
        mut done: impl FnMut() -> bool,
    ) -> Result<Duration, &'static str> {
        let (core, time) = (self.node.core(), &self.node.time);
        let (start, simulated) = (time.now(), time.is_simulated());
        // Simulated time wakes the waiters when it goes on.
        let until = match simulated {
            true => Instant::FAR_FUTURE,
            false => core.env.now().after(timeout.into()),
        };
        let mut why = None;
        core.wait_until(until, || {
            if done() {
                return true;
            }
            why = match (time.is_simulated() == simulated, simulated) {
                _ if core.is_shut_down() => Some("the context was shut down"),
                (false, _) => Some("use_sim_time changed"),
                (true, true) if time.now() < start => Some("ROS time went back"),
                _ => None,
            };
            why.is_some() || (simulated && time.now() >= start + timeout)
        });
        match why {
            Some(why) => Err(why),
            None => Ok(timeout.min(match simulated {
                true => time.now().since(start),
                false => timeout,
            })),
        }
    }

    /// A future of the transform; see [`TransformBuffer::wait_for`].
    pub fn wait_for(&self, target: &str, source: &str, time: Time) -> TransformWait {
        self.buffer().wait_for(target, source, time)
    }

    /// What has a header, in another frame, once the transform of its time is there;
    /// otherwise as [`TransformListener::lookup_within`].
    ///
    /// # Errors
    /// See there.
    pub fn transform_within<T: Transformable>(
        &self,
        it: &T,
        target: &str,
        timeout: Duration,
    ) -> Result<T, LookupError> {
        let header = it.header();
        let time = Time::from(&header.stamp);
        let by = self.lookup_within(target, &header.frame_id, time, timeout)?;
        Ok(it.transformed(&by))
    }

    /// Publishers of `/tf` and `/tf_static` matched now.
    pub fn matched_count(&self) -> usize {
        let counts = self
            .ears
            .readers
            .iter()
            .map(|reader| reader.matched_count());
        counts.sum()
    }
}

impl fmt::Debug for TransformListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformListener")
            .field("node", &self.node.path())
            .field("topics", &self.ears.topics)
            .field("buffer", self.buffer())
            .finish()
    }
}

fn topics(node: &Node) -> Result<[String; 2], CreateError> {
    let resolve = |topic| node.core().resolve_as(NameKind::Topic, topic);
    Ok([resolve("/tf")?, resolve("/tf_static")?])
}

impl Ears {
    fn open(
        node: &Node,
        topics: [String; 2],
        options: TransformBufferOptions,
    ) -> Result<Arc<Self>, CreateError> {
        let core = node.core().core();
        let buffer = TransformBuffer::new(options);
        let graph = Arc::downgrade(core);
        buffer.name_publishers_by(Box::new(move |gid| node_of(&*graph.upgrade()?, gid)));
        let [moving, fixed] = &topics;
        let read = |topic: &String, is_static| {
            let qos = match is_static {
                true => QosProfile::tf_static_listener(),
                false => QosProfile::tf(),
            };
            let spec = spec(topic, TypeFacts::of::<TFMessage>(), &qos, |qos| {
                qos.to_reader()
            })?;
            let wants = Wants::Type(std::any::TypeId::of::<TFMessage>());
            let ear = Ear {
                topic: topic.clone(),
                is_static,
                buffer: buffer.clone(),
                core: Arc::downgrade(core),
                said: AtomicU64::new(0),
            };
            let attendant = Box::new(move |item: &Item| ear.hear(item));
            let made = core.create_attended_reader(spec, wants, attendant);
            made.map_err(|source| CreateError::Endpoint {
                topic: topic.clone(),
                source,
            })
        };
        let moving = read(moving, false)?;
        let fixed = read(fixed, true).inspect_err(|_| core.remove_reader(&moving))?;
        Ok(Arc::new(Self {
            readers: [moving, fixed],
            topics,
            buffer,
            core: core.clone(),
            nodes: Mutex::default(),
        }))
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        for reader in &self.readers {
            for node in self.nodes.get_mut().iter() {
                self.core.detach_endpoint(*node, reader.data.guid);
            }
            self.core.remove_reader(reader);
        }
    }
}

impl TimeWatch for Ears {
    fn note_jump(&self, jump: TimeJump) {
        if jump.kind != JumpKind::Moved || jump.delta < 0 {
            self.buffer.clear();
        }
    }
}

/// The name of the node that has an endpoint, if the graph knows it.
fn node_of(core: &Core, endpoint: Guid) -> Option<String> {
    let nodes = core.graph().nodes();
    let owner = nodes.iter().find(|node| node.writers.contains(&endpoint))?;
    Some(node_path(&owner.namespace, &owner.name))
}

/// One of the two subscriptions.
struct Ear {
    topic: String,
    is_static: bool,
    buffer: TransformBuffer,
    core: Weak<Core>,
    /// When it last complained, and of how many refusals it told.
    said: AtomicU64,
}

/// Complaints about transforms that are refused come at most so often.
const COMPLAINTS: Duration = Duration::from_secs(10);

impl Ear {
    fn hear(&self, item: &Item) {
        let authority = Authority::Publisher(item.meta.publisher);
        let decoded;
        let message = match &item.body {
            Body::Shared(value) => value.downcast_ref::<TFMessage>(),
            Body::Serialized(payload) => {
                decoded = from_payload::<TFMessage>(payload);
                match &decoded {
                    Ok(message) => Some(message),
                    Err(error) => {
                        tracing::debug!("{}: {error}", self.topic);
                        None
                    }
                }
            }
        };
        let (Some(message), Some(core)) = (message, self.core.upgrade()) else {
            return;
        };
        let refused = self
            .buffer
            .take(&message.transforms, &authority, self.is_static);
        if let Some(first) = refused.first() {
            let now = core.env.now().as_nanos();
            let last = self.said.load(Ordering::Relaxed);
            let pause = u64::try_from(COMPLAINTS.as_nanos()).unwrap_or(u64::MAX);
            if last == 0 || now.saturating_sub(last) >= pause {
                self.said.store(now.max(1), Ordering::Relaxed);
                let (topic, total) = (&self.topic, self.buffer.refused());
                let gid = item.meta.publisher;
                tracing::warn!(
                    "{topic}: publisher {gid}: {first} ({total} transforms refused so far)"
                );
            }
        }
        core.wake_waiters();
    }
}
