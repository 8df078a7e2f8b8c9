//! Transform listener: subscribes to `/tf` and `/tf_static` once for all nodes of a
//! process, and fills the tf buffer.
//!
//! Messages are read at once by the thread that receives them (an inline listener,
//! [`InlineListener`](pteros_runtime::reader::InlineListener)). They need no
//! executor, so a callback can wait for a transform.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_interfaces::tf2_msgs::msg::TFMessage;
use pteros_msg::cdr::DecodeError;
use pteros_msg::from_payload;
use pteros_runtime::Core;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::names::{NameKind, node_path};
use pteros_runtime::platform::Instant;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::sample::{QueuedSample, SampleBody};

use pteros_rcl::tf::{
    Authority, LookupError, TransformBuffer, TransformBufferOptions, TransformFuture,
    Transformable, empty_frame_id_error,
};

use crate::error::CreateError;
use crate::message_type_info::{MessageTypeInfo, endpoint_spec};
use crate::node::{Node, NodeCore};
use crate::qos::QosProfile;
use crate::ros_clock::{JumpThreshold, TimeJump};
use crate::time::Time;
use crate::time_source::TimeJumpObserver;

/// Subscribes to `/tf` and `/tf_static` and fills a [`TransformBuffer`].
///
/// All listeners of a context with the same topics, after remapping, share one
/// buffer and one pair of subscriptions, which end with the last of them. It needs
/// no executor: a look-up that waits drives the network itself. Transforms except
/// static ones are removed when the ROS time of one of its nodes jumps back, or
/// `use_sim_time` changes. Cheap to clone, thread-safe.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
/// use pteros::tf::{LATEST, TransformListener};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("where_am_i")?;
/// let transforms = TransformListener::new(&node)?;
/// let second = Duration::from_secs(1);
/// let robot = transforms.lookup_transform_within("map", "base_link", LATEST, second)?;
/// println!("{} {}", robot.transform.translation.x, robot.transform.translation.y);
/// # Ok(())
/// # }
/// ```
#[must_use = "a transform listener ends when its last handle is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct TransformListener {
    node: Arc<NodeCore>,
    receiver: Arc<TransformReceiver>,
}

/// The shared subscriptions of a context's listeners, by topics.
type TransformReceivers = Mutex<Vec<Weak<TransformReceiver>>>;

/// Both subscriptions and the buffer they fill.
pub(crate) struct TransformReceiver {
    topics: [String; 2],
    buffer: TransformBuffer,
    core: Arc<Core>,
    readers: [Arc<ReaderEndpoint>; 2],
    nodes: Mutex<Vec<NodeKey>>,
}

impl TransformListener {
    /// Creates a listener on the buffer that all listeners of the process share.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        let topics = topics(node)?;
        let shared = &node.context().inner.transform_receivers;
        let shared = shared.get_or_init(|| Box::new(TransformReceivers::default()));
        let Some(shared) = shared.downcast_ref::<TransformReceivers>() else {
            unreachable!("only this function sets it");
        };
        let mut all = shared.lock();
        all.retain(|receiver| receiver.strong_count() > 0);
        let shared = all.iter().filter_map(Weak::upgrade);
        let known = shared
            .into_iter()
            .find(|receiver| receiver.topics == topics);
        let receiver = match known {
            Some(receiver) => receiver,
            None => {
                let receiver =
                    TransformReceiver::open(node, topics, TransformBufferOptions::default())?;
                all.push(Arc::downgrade(&receiver));
                receiver
            }
        };
        drop(all);
        Ok(Self::with_receiver(node, receiver))
    }

    /// Creates a listener with a buffer and subscriptions of its own.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn with_options(node: &Node, options: TransformBufferOptions) -> Result<Self, CreateError> {
        let receiver = TransformReceiver::open(node, topics(node)?, options)?;
        Ok(Self::with_receiver(node, receiver))
    }

    fn with_receiver(node: &Node, receiver: Arc<TransformReceiver>) -> Self {
        let core = node.core();
        let mut nodes = receiver.nodes.lock();
        if !nodes.contains(&core.key) {
            nodes.push(core.key);
            for reader in &receiver.readers {
                core.attach_endpoint(&reader.announced());
            }
            let threshold = JumpThreshold {
                on_clock_change: true,
                min_forward: None,
                min_backward: Some(Duration::from_nanos(1)),
            };
            let observer = Arc::downgrade(&receiver);
            core.time.add_jump_observer(threshold, observer);
        }
        drop(nodes);
        Self {
            node: core.clone(),
            receiver,
        }
    }

    /// The buffer it fills.
    pub fn buffer(&self) -> &TransformBuffer {
        &self.receiver.buffer
    }

    /// See [`TransformBuffer::lookup_transform`].
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup_transform(
        &self,
        target: &str,
        source: &str,
        time: Time,
    ) -> Result<TransformStamped, LookupError> {
        self.buffer().lookup_transform(target, source, time)
    }

    /// As [`TransformBuffer::lookup_transform`], waiting for the transform at most
    /// `timeout` of ROS time.
    ///
    /// Blocks, also in a callback: it drives the network itself and runs no
    /// callbacks. It does not time out while simulated time stands still.
    ///
    /// # Errors
    /// [`LookupError::TimedOut`] with the reason. [`LookupError::Interrupted`] when
    /// the context shuts down or ROS time jumps back.
    pub fn lookup_transform_within(
        &self,
        target: &str,
        source: &str,
        time: Time,
        timeout: Duration,
    ) -> Result<TransformStamped, LookupError> {
        if let Some(mistake) = empty_frame_id_error(target, source) {
            return Err(mistake);
        }
        let mut found = None;
        let waited = self.wait(timeout, || {
            found = self.buffer().try_lookup_transform(target, source, time);
            found.is_some()
        });
        if let Some(found) = found {
            return Ok(found);
        }
        match (self.lookup_transform(target, source, time), waited) {
            (Ok(found), _) => Ok(found),
            (Err(reason), _) if timeout.is_zero() => Err(reason),
            (Err(reason), Ok(waited)) => Err(LookupError::TimedOut {
                waited,
                reason: Box::new(reason),
            }),
            (Err(reason), Err(why)) => Err(LookupError::Interrupted {
                reason_text: why,
                reason: Box::new(reason),
            }),
        }
    }

    /// Waits until `done`, or that much ROS time has passed. Returns how long it
    /// waited, or what interrupted it.
    fn wait(
        &self,
        timeout: Duration,
        mut done: impl FnMut() -> bool,
    ) -> Result<Duration, &'static str> {
        let (core, time) = (self.node.core(), &self.node.time);
        let (start, simulated) = (time.now(), time.is_simulated());
        // Each step of simulated time wakes the waiters.
        let until = if simulated {
            Instant::FAR_FUTURE
        } else {
            core.platform.now().after(timeout.into())
        };
        let mut why = None;
        core.driver().wait_until(until, || {
            if done() {
                return true;
            }
            why = match (time.is_simulated() == simulated, simulated) {
                _ if core.is_shut_down() => Some("the context was shut down"),
                (false, _) => Some("use_sim_time changed"),
                (true, true) if time.now() < start => Some("ROS time jumped back"),
                _ => None,
            };
            why.is_some() || (simulated && time.now() >= start + timeout)
        });
        match why {
            Some(why) => Err(why),
            None => Ok(timeout.min(if simulated {
                time.now().since(start)
            } else {
                timeout
            })),
        }
    }

    /// A future of the transform; see [`TransformBuffer::wait_for_transform`].
    pub fn wait_for_transform(&self, target: &str, source: &str, time: Time) -> TransformFuture {
        self.buffer().wait_for_transform(target, source, time)
    }

    /// Transforms a stamped message into another frame, waiting for the transform.
    ///
    /// The time is the message's stamp; otherwise as
    /// [`TransformListener::lookup_transform_within`].
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
        let by = self.lookup_transform_within(target, &header.frame_id, time, timeout)?;
        Ok(it.transformed(&by))
    }

    /// Number of matched publishers of `/tf` and `/tf_static`.
    pub fn matched_count(&self) -> usize {
        let counts = self
            .receiver
            .readers
            .iter()
            .map(|reader| reader.matched_count());
        counts.sum()
    }
}

impl fmt::Debug for TransformListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformListener")
            .field("node", &self.node.fully_qualified_name())
            .field("topics", &self.receiver.topics)
            .field("buffer", self.buffer())
            .finish()
    }
}

fn topics(node: &Node) -> Result<[String; 2], CreateError> {
    let resolve = |topic| node.core().resolve_name(NameKind::Topic, topic);
    Ok([resolve("/tf")?, resolve("/tf_static")?])
}

impl TransformReceiver {
    fn open(
        node: &Node,
        topics: [String; 2],
        options: TransformBufferOptions,
    ) -> Result<Arc<Self>, CreateError> {
        let core = node.core().core();
        let buffer = TransformBuffer::new(options);
        let graph = Arc::downgrade(core);
        buffer.set_publisher_names(Box::new(move |gid| node_name_of(&*graph.upgrade()?, gid)));
        let [moving, fixed] = &topics;
        let read = |topic: &String, is_static| {
            let qos = if is_static {
                QosProfile::tf_static_listener()
            } else {
                QosProfile::tf()
            };
            let spec = endpoint_spec(topic, MessageTypeInfo::of::<TFMessage>(&()), &qos, |qos| {
                qos.to_reader()
            })?;
            let form = DeliveryForm::Type(std::any::TypeId::of::<TFMessage>());
            let topic_listener = TfTopicListener {
                topic: topic.clone(),
                is_static,
                buffer: buffer.clone(),
                core: Arc::downgrade(core),
                last_logged: AtomicU64::new(0),
            };
            let inline_listener =
                Box::new(move |item: &QueuedSample| topic_listener.handle_sample(item));
            let created = core.create_reader_with_listener(spec, form, inline_listener);
            created.map_err(|source| CreateError::Endpoint {
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

impl Drop for TransformReceiver {
    fn drop(&mut self) {
        for reader in &self.readers {
            for node in self.nodes.get_mut().iter() {
                self.core
                    .discovery()
                    .detach_endpoint(*node, reader.data.guid);
            }
            self.core.remove_reader(reader);
        }
    }
}

impl TimeJumpObserver for TransformReceiver {
    fn handle_jump(&self, _jump: TimeJump) {
        self.buffer.clear();
    }
}

/// The name of the node that owns an endpoint, if the graph names it.
fn node_name_of(core: &Core, endpoint: Guid) -> Option<String> {
    let nodes = core.graph().nodes();
    let owner = nodes.iter().find(|node| node.writers.contains(&endpoint))?;
    Some(node_path(&owner.namespace, &owner.name))
}

/// One of the two subscriptions.
struct TfTopicListener {
    topic: String,
    is_static: bool,
    buffer: TransformBuffer,
    core: Weak<Core>,
    /// When it last logged rejected transforms; 0 for never.
    last_logged: AtomicU64,
}

/// The shortest period between two warnings about rejected transforms.
const REJECTION_LOG_PERIOD: Duration = Duration::from_secs(10);

impl TfTopicListener {
    fn handle_sample(&self, item: &QueuedSample) -> Result<(), DecodeError> {
        let authority = Authority::Publisher(item.meta.publisher);
        let decoded;
        let message = match &item.body {
            SampleBody::Shared(value) => value.downcast_ref::<TFMessage>(),
            SampleBody::Serialized(payload) => {
                decoded = from_payload::<TFMessage>(payload)?;
                Some(&decoded)
            }
        };
        let (Some(message), Some(core)) = (message, self.core.upgrade()) else {
            return Ok(());
        };
        let rejected = self
            .buffer
            .insert_all(&message.transforms, &authority, self.is_static);
        if let Some(first) = rejected.first() {
            let now = core.platform.now().as_nanos();
            let last = self.last_logged.load(Ordering::Relaxed);
            let pause = u64::try_from(REJECTION_LOG_PERIOD.as_nanos()).unwrap_or(u64::MAX);
            if last == 0 || now.saturating_sub(last) >= pause {
                self.last_logged.store(now.max(1), Ordering::Relaxed);
                let (topic, total) = (&self.topic, self.buffer.rejected_count());
                let gid = item.meta.publisher;
                tracing::warn!(
                    "{topic}: publisher {gid}: {first} ({total} transforms rejected so far)"
                );
            }
        }
        core.wake_waiters();
        Ok(())
    }
}
