//! What a callback is handed: the message and what is known about it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pteros_rmw::instance::{InstanceInfo, Keyed};
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::rtps::time::Timestamp;
use pteros_rmw::sample::{Path, SampleMeta};

/// One received message. Dereferences to the message.
///
/// Within a process all subscriptions share the publisher's value; nothing is
/// copied until [`Sample::into_inner`] needs to.
#[derive(Clone)]
pub struct Sample<T> {
    body: Held<T>,
    info: SampleInfo,
}

#[derive(Clone)]
enum Held<T> {
    Shared(Arc<T>),
    Owned(T),
}

/// What is known about a message besides its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// When the publisher stamped it, by its wall clock.
    pub source_time: Option<SystemTime>,
    /// When it reached this process, by our wall clock.
    pub reception_time: SystemTime,
    /// The publisher's number for it, from 1 on.
    pub sequence: i64,
    /// Who published it: the gid of the graph.
    pub publisher: Guid,
    /// How it came.
    pub path: Path,
    /// Its instance, where the type has a key.
    pub instance: Option<InstanceInfo>,
}

impl SampleInfo {
    pub(crate) fn new(meta: SampleMeta, instance: Option<&Keyed>) -> Self {
        Self {
            instance: instance.map(|keyed| keyed.info),
            source_time: meta.source.map(system_time),
            reception_time: system_time(meta.reception),
            sequence: meta.sequence,
            publisher: meta.publisher,
            path: meta.path,
        }
    }

    /// From source stamp to reception, both wall clocks; `None` without a
    /// stamp or when the clocks disagree.
    pub fn latency(&self) -> Option<Duration> {
        self.reception_time.duration_since(self.source_time?).ok()
    }
}

impl<T> Sample<T> {
    pub(crate) fn shared(value: Arc<T>, info: SampleInfo) -> Self {
        Self {
            body: Held::Shared(value),
            info,
        }
    }

    pub(crate) fn owned(value: T, info: SampleInfo) -> Self {
        Self {
            body: Held::Owned(value),
            info,
        }
    }

    /// What is known about the message.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// The message itself; copied only if others of this process hold it too.
    pub fn into_inner(self) -> T
    where
        T: Clone,
    {
        match self.body {
            Held::Shared(value) => Arc::unwrap_or_clone(value),
            Held::Owned(value) => value,
        }
    }
}

impl<T> Deref for Sample<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.body {
            Held::Shared(value) => value,
            Held::Owned(value) => value,
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

/// The protocol's form of a wall clock time; centuries away it saturates.
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
    match nanos >= 0 {
        true => SystemTime::UNIX_EPOCH + span,
        false => SystemTime::UNIX_EPOCH - span,
    }
}
