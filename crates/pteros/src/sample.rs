//! Sample: a received message with its [`SampleInfo`].

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pteros_msg::cdr::DecodeError;
use pteros_runtime::instance::{InstanceInfo, SampleInstance};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::rtps::time::Timestamp;
use pteros_runtime::sample::{DeliveryPath, SampleMeta};

/// A sample that could not be decoded, and why.
pub(crate) type UndecodableSample = Box<(SampleInfo, DecodeError)>;

/// A received message. Dereferences to the message.
///
/// Intra-process subscriptions share the publisher's value. It is copied only if
/// [`Sample::into_inner`] has to.
#[derive(Clone)]
pub struct Sample<T> {
    value: SampleValue<T>,
    info: SampleInfo,
}

#[derive(Clone)]
enum SampleValue<T> {
    Shared(Arc<T>),
    Owned(T),
}

/// Metadata of a received message (DDS SampleInfo, rclcpp's MessageInfo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Source timestamp, by the publisher's wall clock.
    pub source_timestamp: Option<SystemTime>,
    /// When it was received, by this host's wall clock.
    pub received_timestamp: SystemTime,
    /// The publisher's sequence number, from 1.
    pub sequence: i64,
    /// The publisher's gid, as in the graph.
    pub publisher_gid: Guid,
    /// How it was delivered: intra-process, shared memory or network.
    pub delivery_path: DeliveryPath,
    /// Its instance, if the type has a key.
    pub instance: Option<InstanceInfo>,
}

impl SampleInfo {
    pub(crate) fn new(meta: SampleMeta, instance: Option<&SampleInstance>) -> Self {
        Self {
            instance: instance.map(|keyed| keyed.info),
            source_timestamp: meta.source.map(system_time),
            received_timestamp: system_time(meta.reception),
            sequence: meta.sequence,
            publisher_gid: meta.publisher,
            delivery_path: meta.path,
        }
    }

    /// Time from source timestamp to reception, both wall clocks.
    ///
    /// `None` without a timestamp or if the clocks disagree.
    pub fn latency(&self) -> Option<Duration> {
        self.received_timestamp
            .duration_since(self.source_timestamp?)
            .ok()
    }
}

impl<T> Sample<T> {
    pub(crate) fn shared(value: Arc<T>, info: SampleInfo) -> Self {
        Self {
            value: SampleValue::Shared(value),
            info,
        }
    }

    pub(crate) fn owned(value: T, info: SampleInfo) -> Self {
        Self {
            value: SampleValue::Owned(value),
            info,
        }
    }

    /// Source, timestamps and instance of the message.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// The message as a shared value; never copied.
    pub fn into_shared(self) -> Arc<T> {
        match self.value {
            SampleValue::Shared(value) => value,
            SampleValue::Owned(value) => Arc::new(value),
        }
    }

    /// The message itself; copied only if others in this process hold it too.
    pub fn into_inner(self) -> T
    where
        T: Clone,
    {
        match self.value {
            SampleValue::Shared(value) => Arc::unwrap_or_clone(value),
            SampleValue::Owned(value) => value,
        }
    }
}

impl<T> Deref for Sample<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            SampleValue::Shared(value) => value,
            SampleValue::Owned(value) => value,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample")
            .field("message", &**self)
            .field("info", &self.info)
            .finish()
    }
}

/// Converts a wall clock time to an RTPS timestamp; out-of-range times saturate.
pub(crate) fn wall_stamp(time: SystemTime) -> Timestamp {
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    Timestamp::from_nanos(match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    })
}

pub(crate) fn system_time(stamp: Timestamp) -> SystemTime {
    let nanos = stamp.as_nanos();
    let span = Duration::from_nanos(nanos.unsigned_abs());
    if nanos >= 0 {
        SystemTime::UNIX_EPOCH + span
    } else {
        SystemTime::UNIX_EPOCH - span
    }
}
