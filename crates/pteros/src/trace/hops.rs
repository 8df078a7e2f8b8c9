//! Hop: one message from a publish call to one subscription's callback, and the
//! time spent in each layer.

use pteros_runtime::rtps::id::Guid;
use pteros_runtime::sample::DeliveryPath;
use pteros_runtime::trace::{TraceEvent, TraceRecord};

use super::trace_file::{EndpointKey, SampleKey, Trace};

/// Layers between publish call and callback, in order.
///
/// The categories are those of Kronauer et al. (2021) for profiling ROS 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Layer {
    /// From the publish call to the runtime: bounds check, source timestamp.
    PublisherCommon,
    /// Until the first datagram is handed to a socket or a shared-memory
    /// connection, or the message to an intra-process queue: serialization,
    /// history, headers.
    PublisherRmw,
    /// Until the last fragment has been received: sending, the kernel, waking the
    /// receiver, fragmentation and retransmissions.
    Wire,
    /// Until it is in the reader history cache: the RTPS protocol.
    SubscriberRmw,
    /// Until the executor starts to handle it.
    Notification,
    /// Until the callback starts: taking and decoding.
    SubscriberCommon,
}

impl Layer {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::PublisherCommon,
        Self::PublisherRmw,
        Self::Wire,
        Self::SubscriberRmw,
        Self::Notification,
        Self::SubscriberCommon,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublisherCommon => "publisher common",
            Self::PublisherRmw => "publisher rmw",
            Self::Wire => "wire",
            Self::SubscriberRmw => "subscriber rmw",
            Self::Notification => "notification",
            Self::SubscriberCommon => "subscriber common",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::PublisherCommon => 0,
            Self::PublisherRmw => 1,
            Self::Wire => 2,
            Self::SubscriberRmw => 3,
            Self::Notification => 4,
            Self::SubscriberCommon => 5,
        }
    }
}

/// An endpoint in a trace: topic, node and process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedEndpoint {
    /// Its topic, or its service with `(request)` or `(reply)`.
    pub topic: String,
    /// Its node's full name; empty if unknown.
    pub node: String,
    /// Its process id.
    pub process: u32,
}

/// One message from a publisher to one subscription's callback.
///
/// Times are nanoseconds of the host's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop<'t> {
    /// The topic's name in ROS.
    pub topic: &'t str,
    /// The publisher; `None` if its trace does not name it.
    pub publisher: Option<&'t TracedEndpoint>,
    /// The subscription.
    pub subscriber: Option<&'t TracedEndpoint>,
    /// The publisher's endpoint.
    pub writer: Guid,
    /// The publisher's sequence number.
    pub sequence: i64,
    /// How the message was delivered.
    pub delivery_path: DeliveryPath,
    /// Serialized size in bytes; 0 if it was not serialized.
    pub bytes: u32,
    /// When `publish` was called.
    pub began: u64,
    /// The thread of the publisher's process that called it.
    pub thread: u32,
    /// The latest time at which publishing handed the message over.
    pub handed_over: u64,
    /// Nanoseconds in each layer, in the order of [`Layer::ALL`].
    pub layers: [u64; 6],
    /// Serialization's share of [`Layer::PublisherRmw`].
    pub serializing: u64,
    /// Decoding's share of [`Layer::SubscriberCommon`].
    pub decoding: u64,
    /// Approximate overhead of tracing itself: clock reads, spread over all layers.
    pub stamping: u64,
    /// The run of the subscription's callback with this message.
    pub callback: CallbackRun,
    pub(super) at: usize,
}

/// The callback that took a message; if it was taken without one, that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackRun {
    /// The callback's number in its process; 0 without one.
    pub span: u64,
    /// The thread that ran it, as a number within its process.
    pub thread: u32,
    /// When user code started.
    pub began: u64,
    /// When user code ended.
    pub ended: u64,
}

impl Hop<'_> {
    /// Nanoseconds from the publish call to the callback.
    pub fn latency(&self) -> u64 {
        self.callback.began.saturating_sub(self.began)
    }

    /// Nanoseconds in a layer.
    pub fn layer(&self, layer: Layer) -> u64 {
        self.layers.get(layer.index()).copied().unwrap_or(0)
    }
}

/// Clock reads between publish call and callback, both included.
const CLOCK_READS: u64 = 10;

impl Trace {
    /// Every received message whose publish call is in the trace.
    ///
    /// A callback, or a `take`, received it. In the order of taking.
    pub fn hops(&self) -> impl Iterator<Item = Hop<'_>> {
        (0..self.callback_records.len()).filter_map(|at| self.hop_at(at))
    }

    /// The hop that ended in a callback.
    pub(super) fn hop_at(&self, at: usize) -> Option<Hop<'_>> {
        let (context, call) = self.callback_records.get(at)?;
        let sample = SampleKey::of(call);
        let (from, published) = self.published.get(&sample)?;
        let endpoint = EndpointKey {
            context: *context,
            entity: call.entity,
        };
        let arrival = self.arrivals.get(&(sample, endpoint))?;
        let out = |index| published.time(index).map(|time| self.absolute(*from, time));
        let into = |record: &TraceRecord, index| {
            let time = record.time(index);
            time.map(|time| self.absolute(*context, time))
        };
        let (began, entered) = (out(0)?, out(1)?);
        let (arrivals, queued) = (into(arrival, 0)?, into(arrival, 1)?);
        let executed = into(call, 0)?;
        let (taken, started, ended) = match call.event {
            // All at one moment.
            TraceEvent::Taken => (executed, executed, executed),
            _ => (into(call, 1)?, into(call, 2)?, into(call, 3)?),
        };
        // With readers here and elsewhere, the local delivery precedes the remote
        // one.
        let handed = out(4)?.min(arrivals).max(entered);
        let executed = executed.max(queued);
        let steps = [began, entered, handed, arrivals, queued, executed, started];
        let mut layers = [0; 6];
        for (layer, pair) in layers.iter_mut().zip(steps.windows(2)) {
            if let [from, to] = pair {
                *layer = to.saturating_sub(*from);
            }
        }
        let serializing = match (out(2), out(3)) {
            (Some(from), Some(to)) if call.path != DeliveryPath::IntraProcess => {
                to.saturating_sub(from)
            }
            _ => 0,
        };
        let picos = self.recordings.get(*context)?.header.clock_read_picos;
        let publisher = self.writers.get(&call.writer);
        let publisher = publisher.and_then(|endpoint| self.endpoints.get(endpoint));
        let subscriber = self.endpoints.get(&endpoint);
        Some(Hop {
            topic: subscriber.or(publisher).map_or("", |owner| &owner.topic),
            publisher,
            subscriber,
            writer: call.writer,
            sequence: call.sequence,
            delivery_path: arrival.path,
            bytes: published.bytes,
            began,
            thread: published.thread,
            handed_over: handed,
            layers,
            serializing,
            decoding: started.saturating_sub(taken),
            stamping: picos.saturating_mul(CLOCK_READS) / 1000,
            callback: CallbackRun {
                span: call.span,
                thread: call.thread,
                began: started,
                ended,
            },
            at,
        })
    }

    /// Timer ticks: node, thread, start and end.
    pub fn ticks(&self) -> impl Iterator<Item = (TracedEndpoint, CallbackRun)> {
        let contexts = self.recordings.iter().enumerate();
        contexts.flat_map(move |(context, recording)| {
            let ticked = |r: &&TraceRecord| r.event == TraceEvent::TimerFired;
            recording.records.iter().filter(ticked).map(move |record| {
                let key = EndpointKey {
                    context,
                    entity: record.entity,
                };
                let node = self.nodes.get(&key).cloned();
                let owner = TracedEndpoint {
                    topic: String::new(),
                    node: node.unwrap_or_default(),
                    process: recording.header.process,
                };
                let time =
                    |index| self.absolute(context, record.time(index).unwrap_or(record.first_time));
                let callback = CallbackRun {
                    span: record.span,
                    thread: record.thread,
                    began: time(0),
                    ended: time(1),
                };
                (owner, callback)
            })
        })
    }
}
