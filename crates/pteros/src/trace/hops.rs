//! One message to one subscription, and where its time went.

use pteros_rmw::rtps::id::Guid;
use pteros_rmw::sample::Path;
use pteros_rmw::trace::{Record, Step};

use super::load::{Sample, Trace};

/// Where a message spends time between the publish call and the callback: the
/// categories in which Kronauer et al. (2021) profile ROS 2, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Layer {
    /// From the publish call until the runtime has it: bounds, the source stamp.
    PublisherCommon,
    /// Until the first datagram is handed to a socket or a link, or the message to
    /// a queue of the process: serializing, history, headers.
    PublisherRmw,
    /// Until the last part of it has been received: sending, the kernel, waking
    /// the receiver, fragments and repairs.
    Wire,
    /// Until it is in the subscription's queue: the protocol.
    SubscriberRmw,
    /// Until the executor begins with the callback.
    Notification,
    /// Until the callback begins: taking and decoding.
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

/// Whose an endpoint is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its topic, or its service with `(request)` or `(reply)`.
    pub topic: String,
    /// Its node's full name; empty where that is not known.
    pub node: String,
    /// Its process.
    pub process: u32,
}

/// One message on its way to one subscription's callback. Times are nanoseconds
/// of the host's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop<'t> {
    /// The topic.
    pub topic: &'t str,
    /// Who published it; `None` if that endpoint's trace has no name of it.
    pub publisher: Option<&'t Owner>,
    /// Who heard it.
    pub subscriber: Option<&'t Owner>,
    /// The publisher's endpoint.
    pub writer: Guid,
    /// The message's number there.
    pub sequence: i64,
    /// How it came.
    pub path: Path,
    /// Serialized bytes; 0 where nobody serialized it.
    pub bytes: u32,
    /// When `publish` was called, on which of its process's threads.
    pub began: u64,
    /// That thread.
    pub thread: u32,
    /// When publishing ended at the latest: the message was handed over.
    pub handed: u64,
    /// Nanoseconds in each layer, in the order of [`Layer::ALL`].
    pub layers: [u64; 6],
    /// What serializing took of [`Layer::PublisherRmw`].
    pub serializing: u64,
    /// What decoding took of [`Layer::SubscriberCommon`].
    pub decoding: u64,
    /// What the stamps themselves took, about: looks at the clock, which lie in
    /// all layers.
    pub stamping: u64,
    /// The callback.
    pub callback: Callback,
    pub(super) at: usize,
}

/// A callback that took a message; where it was taken without one, that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback {
    /// The callback's number in its process; 0 without one.
    pub span: u64,
    /// The thread that ran it, as a number of its process.
    pub thread: u32,
    /// When the user's code began.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
}

impl Hop<'_> {
    /// From the publish call to the callback.
    pub fn latency(&self) -> u64 {
        self.callback.began.saturating_sub(self.began)
    }

    /// Nanoseconds in a layer.
    pub fn layer(&self, layer: Layer) -> u64 {
        self.layers.get(layer.index()).copied().unwrap_or(0)
    }
}

/// Looks at the clock between publish call and callback, both included.
const STAMPS: u64 = 10;

impl Trace {
    /// Every message that a callback took, or somebody without one, and whose
    /// publish call is in the trace, in the order in which they were taken.
    pub fn hops(&self) -> impl Iterator<Item = Hop<'_>> {
        (0..self.called.len()).filter_map(|at| self.hop(at))
    }

    /// The hop that ended in a callback.
    pub(super) fn hop(&self, at: usize) -> Option<Hop<'_>> {
        let (context, call) = self.called.get(at)?;
        let sample: Sample = (call.writer, call.sequence);
        let (from, published) = self.published.get(&sample)?;
        let place = (*context, call.of);
        let arrival = self.arrived.get(&(sample, place))?;
        let out = |index| published.time(index).map(|time| self.absolute(*from, time));
        let into = |record: &Record, index| {
            let time = record.time(index);
            time.map(|time| self.absolute(*context, time))
        };
        let (began, entered) = (out(0)?, out(1)?);
        let (arrived, queued) = (into(arrival, 0)?, into(arrival, 1)?);
        let executed = into(call, 0)?;
        let (taken, started, ended) = match call.step {
            // All in one moment.
            Step::Taken => (executed, executed, executed),
            _ => (into(call, 1)?, into(call, 2)?, into(call, 3)?),
        };
        // Published to readers here and elsewhere, the message is here before it
        // is handed over for those.
        let handed = out(4)?.min(arrived).max(entered);
        let executed = executed.max(queued);
        let steps = [began, entered, handed, arrived, queued, executed, started];
        let mut layers = [0; 6];
        for (layer, pair) in layers.iter_mut().zip(steps.windows(2)) {
            if let [from, to] = pair {
                *layer = to.saturating_sub(*from);
            }
        }
        let serializing = match (out(2), out(3)) {
            (Some(from), Some(to)) if call.path != Path::IntraProcess => to.saturating_sub(from),
            _ => 0,
        };
        let picos = self.recordings.get(*context)?.head.stamp_picos;
        let publisher = self.writers.get(&call.writer);
        let publisher = publisher.and_then(|place| self.endpoints.get(place));
        let subscriber = self.endpoints.get(&place);
        Some(Hop {
            topic: subscriber.or(publisher).map_or("", |owner| &owner.topic),
            publisher,
            subscriber,
            writer: call.writer,
            sequence: call.sequence,
            path: arrival.path,
            bytes: published.bytes,
            began,
            thread: published.thread,
            handed,
            layers,
            serializing,
            decoding: started.saturating_sub(taken),
            stamping: picos.saturating_mul(STAMPS) / 1000,
            callback: Callback {
                span: call.span,
                thread: call.thread,
                began: started,
                ended,
            },
            at,
        })
    }

    /// Ticks of timers: node, thread, begin and end.
    pub fn ticks(&self) -> impl Iterator<Item = (Owner, Callback)> {
        let contexts = self.recordings.iter().enumerate();
        contexts.flat_map(move |(context, recording)| {
            let ticked = |r: &&Record| r.step == Step::Ticked;
            recording.records.iter().filter(ticked).map(move |record| {
                let node = self.nodes.get(&(context, record.of)).cloned();
                let owner = Owner {
                    topic: String::new(),
                    node: node.unwrap_or_default(),
                    process: recording.head.process,
                };
                let time = |index| self.absolute(context, record.time(index).unwrap_or(record.at));
                let callback = Callback {
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
