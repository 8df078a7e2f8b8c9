//! Tracing: records when a message passes each layer, and which callback published it.
//!
//! A context is traced if its options request it. Then `tracing_decorators` wrap sockets
//! and shared memory. Publish calls, arrivals and callbacks write one [`TraceRecord`]
//! each into a `ring` of fixed size. When it is full, the oldest records are overwritten
//! and counted. In an untraced context, each of those checks one empty `Option`.
//!
//! A message is identified by writer and sequence number, which every transport
//! carries, so a reader can join the records of several processes. Nothing here
//! blocks, allocates or makes a system call per message, except for reading the
//! clock. A file is written every 50 ms at most, by the thread that drives.

pub(crate) mod current_context;
pub(crate) mod file;
mod record;
pub(crate) mod ring;
pub(crate) mod tracing_decorators;

use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::time::Instant;

use crate::error::OpenError;
use crate::node_key::NodeKey;
use crate::platform::{OpenedSockets, Platform};
use crate::sample::{DeliveryPath, SampleMeta};
use current_context::{CallbackContext, CallbackInput};
pub use current_context::{SpanGuard, span};
pub use record::{TraceEvent, TraceRecord};
use ring::TraceRing;
pub use ring::{
    BYTES_MAX, BYTES_MIN, HEAD_WORDS, MAGIC, Recording, TraceHeader, TraceReadError, VERSION,
};
use tracing_decorators::{TracingShmTransport, TracingSockets};

/// File extension of a trace.
pub const EXTENSION: &str = "ptrace";

/// Default size of a context's trace in bytes: some 170 000 records, a minute at a
/// thousand messages per second.
pub const BYTES_DEFAULT: usize = 16 << 20;

/// Maximum number of traces in one folder. Beyond it contexts are opened untraced, with a
/// warning, so that a program that restarts repeatedly does not fill the disk.
pub const FILES_MAX: usize = 1024;

/// Number of clock reads that are timed to find the cost of one.
const CLOCK_READS_TIMED: u64 = 64;

/// Where a context is traced, and how large the trace is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The folder of its file, `PROCESS-PARTICIPANT.ptrace`; created if missing.
    /// `None` keeps the trace in memory, for the program itself.
    pub folder: Option<PathBuf>,
    /// The size of the trace, [`BYTES_MIN`] to [`BYTES_MAX`]. When it is full the
    /// oldest records are overwritten, which is counted.
    pub bytes_max: usize,
}

impl Default for TraceOptions {
    /// In memory, with [`BYTES_DEFAULT`].
    fn default() -> Self {
        Self {
            folder: None,
            bytes_max: BYTES_DEFAULT,
        }
    }
}

/// Writes the records of a traced context. Thread-safe.
pub struct Tracer {
    ring: TraceRing,
    /// The file lacks some records or names.
    has_news: AtomicBool,
    /// The next write is scheduled.
    is_scheduled: AtomicBool,
    platform: Arc<dyn Platform>,
}

impl Tracer {
    /// Opens the trace of a context. `None` if its folder has [`FILES_MAX`] traces.
    pub(crate) fn open(
        platform: &Arc<dyn Platform>,
        prefix: GuidPrefix,
        options: &TraceOptions,
    ) -> Result<Option<Arc<Self>>, OpenError> {
        if !(BYTES_MIN..=BYTES_MAX).contains(&options.bytes_max) {
            return Err(OpenError::TraceBytes {
                given: options.bytes_max,
            });
        }
        let process = std::process::id();
        let file = match &options.folder {
            None => None,
            Some(folder) => {
                let in_it = files_in(folder).map_err(|e| trace_error(folder, options, e))?;
                if in_it >= FILES_MAX {
                    tracing::warn!(
                        "folder {} has {FILES_MAX} traces already: this process is not traced; remove old ones",
                        folder.display()
                    );
                    return Ok(None);
                }
                Some(folder.join(format!("{process}-{prefix}.{EXTENSION}")))
            }
        };
        let now = platform.now();
        let header = TraceHeader {
            process,
            prefix,
            origin: platform.clock_origin(),
            wall: platform
                .wall_clock()
                .as_nanos()
                .saturating_sub(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)),
            clock_read_picos: clock_read_picos(platform),
        };
        let ring =
            TraceRing::create(options.bytes_max, file.as_deref(), &header).map_err(|error| {
                trace_error(file.as_deref().unwrap_or(FilePath::new("")), options, error)
            })?;
        let platform = platform.clone();
        Ok(Some(Arc::new(Self {
            ring,
            has_news: AtomicBool::new(false),
            is_scheduled: AtomicBool::new(false),
            platform,
        })))
    }

    /// Copies the present records and the whole trace. Recording continues meanwhile.
    pub fn recording(&self) -> Recording {
        let recording = Recording::read(&self.ring.copy());
        recording.expect("a trace of ours is one")
    }

    /// Whether a write must be scheduled: the file lacks something, and no write was
    /// scheduled yet.
    pub(crate) fn begin_write_delay(&self) -> bool {
        self.has_news.load(Ordering::Relaxed) && !self.is_scheduled.swap(true, Ordering::Relaxed)
    }

    /// Writes new records and names to the file. Blocks for the disk.
    pub(crate) fn write_file(&self) {
        self.has_news.store(false, Ordering::Relaxed);
        self.is_scheduled.store(false, Ordering::Relaxed);
        self.ring.write_file();
    }

    fn note_news(&self) {
        if self.ring.has_file() && !self.has_news.load(Ordering::Relaxed) {
            self.has_news.store(true, Ordering::Relaxed);
        }
    }

    fn append_name(&self, line: &str) {
        self.ring.append_name(line);
        self.note_news();
    }

    pub(crate) fn now(&self) -> Instant {
        self.platform.now()
    }

    // --- outbound ---

    /// Notes that the user has called `publish` on this thread, which continues in
    /// [`Core::publish`](crate::Core::publish).
    pub fn begin_publish(&self) {
        current_context::set_publish_began(self.now());
    }

    /// Notes that a datagram is about to be passed to a socket or to shared memory.
    fn note_first_datagram(&self) {
        current_context::with_publish(|publish| {
            if publish.handed.is_none() {
                publish.handed = Some(self.now());
            }
        });
    }

    // --- inbound ---

    /// Notes that a sample is about to enter a reader's queue.
    pub(crate) fn note_arrived(&self, reader: EntityId, meta: &SampleMeta, bytes: usize) {
        let now = self.now();
        let arrived = match meta.path {
            // The transport's own threads have received it.
            DeliveryPath::IntraProcess | DeliveryPath::Zenoh | DeliveryPath::OtherTransport => now,
            DeliveryPath::SharedMemory | DeliveryPath::Network => {
                current_context::arrived_at().unwrap_or(now).min(now)
            }
        };
        let input = CallbackInput::new(meta, bytes);
        let times = [Some(now), None, None, None];
        self.write(
            TraceEvent::Arrived,
            arrived,
            times,
            Some(input),
            entity_word(reader),
            0,
        );
    }

    /// Notes that a sample has left a reader's queue, or the object that kept it, and
    /// that this thread continues with it.
    ///
    /// Within a callback it belongs to the callback. The first one before
    /// [`CallbackSpan::note_user_code_start`] is the sample that the callback runs
    /// for.
    pub fn note_taken(&self, reader: EntityId, meta: &SampleMeta, bytes: usize) {
        let now = self.now();
        let input = CallbackInput::new(meta, bytes);
        let is_its = current_context::with_call(|call| {
            let is_its = call.started.is_none();
            if is_its {
                call.taken = Some((input, now));
            }
            is_its
        });
        if is_its != Some(true) {
            self.write(
                TraceEvent::Taken,
                now,
                [None; 4],
                Some(input),
                entity_word(reader),
                0,
            );
        }
    }

    /// Notes that the executor begins a reader's callback on this thread.
    ///
    /// Messages published here are attributed to it until the returned value is
    /// dropped.
    pub fn begin_callback(&self, reader: EntityId) -> CallbackSpan<'_> {
        self.begin(TraceEvent::Called, entity_word(reader))
    }

    /// As [`Tracer::begin_callback`], for a timer of a node.
    pub fn begin_timer(&self, node: NodeKey) -> CallbackSpan<'_> {
        self.begin(TraceEvent::TimerFired, node.to_u32())
    }

    fn begin(&self, step: TraceEvent, of: u32) -> CallbackSpan<'_> {
        let began = self.now();
        let span = current_context::next_span();
        let call = CallbackContext {
            began_at: began,
            taken: None,
            // A timer runs for no sample: samples that it takes are polled.
            started: (step == TraceEvent::TimerFired).then_some(began),
        };
        CallbackSpan {
            tracer: self,
            step,
            of,
            span,
            outer: current_context::replace_call(Some(call)),
            span_guard: Some(SpanGuard::span(span)),
        }
    }

    fn end(&self, callback: &CallbackSpan<'_>, call: CallbackContext) {
        let now = self.now();
        let CallbackSpan { of, span, .. } = *callback;
        match callback.step {
            TraceEvent::TimerFired => {
                let times = [Some(now), None, None, None];
                self.write(TraceEvent::TimerFired, call.began_at, times, None, of, span);
            }
            _ => {
                let Some((input, taken)) = call.taken else {
                    return;
                };
                let times = [Some(taken), call.started, Some(now), None];
                self.write(callback.step, call.began_at, times, Some(input), of, span);
            }
        }
    }

    pub(crate) fn write(
        &self,
        event: TraceEvent,
        first_time: Instant,
        later_times: [Option<Instant>; 4],
        input: Option<CallbackInput>,
        entity: u32,
        span: u64,
    ) {
        let at = first_time.as_nanos();
        let none = GuidPrefix::UNKNOWN.with(EntityId::UNKNOWN);
        self.ring.push(TraceRecord {
            event,
            path: input.map_or(DeliveryPath::IntraProcess, |input| input.path),
            bytes: input.map_or(0, |input| input.bytes),
            first_time: at,
            later_times: later_times
                .map(|time| TraceRecord::offset_from(at, time.map(Instant::as_nanos))),
            writer: input.map_or(none, |input| input.writer),
            sequence: input.map_or(0, |input| input.sequence),
            entity,
            thread: current_context::thread(),
            span,
            cause: current_context::span(),
        });
        self.note_news();
    }

    // --- names ---

    pub(crate) fn name_node(&self, key: NodeKey, path: &str) {
        self.append_name(&format!("node {} {path}", key.to_u32()));
    }

    pub(crate) fn name_endpoint(&self, data: &EndpointData) {
        let guid = data.guid;
        let kind = if guid.entity.is_writer() {
            "writer"
        } else {
            "reader"
        };
        let of = entity_word(guid.entity);
        self.append_name(&format!(
            "{kind} {of:08x} {} {}",
            data.topic, data.type_name
        ));
    }

    pub(crate) fn name_owner(&self, entity: EntityId, key: NodeKey) {
        let of = entity_word(entity);
        self.append_name(&format!("owner {of:08x} {}", key.to_u32()));
    }
}

/// A running callback, until it is dropped.
pub struct CallbackSpan<'t> {
    tracer: &'t Tracer,
    step: TraceEvent,
    of: u32,
    span: u64,
    outer: Option<CallbackContext>,
    span_guard: Option<SpanGuard>,
}

impl CallbackSpan<'_> {
    /// Notes that user code starts now, after taking and decoding.
    pub fn note_user_code_start(&self) {
        let now = self.tracer.now();
        current_context::with_call(|call| call.started = Some(now));
    }
}

impl Drop for CallbackSpan<'_> {
    fn drop(&mut self) {
        // The outer span is the cause again.
        drop(self.span_guard.take());
        if let Some(call) = current_context::replace_call(self.outer) {
            self.tracer.end(self, call);
        }
    }
}

/// Wraps opened transports with tracing decorators.
pub(crate) fn with_tracing(opened: OpenedSockets, tracer: &Arc<Tracer>) -> OpenedSockets {
    OpenedSockets {
        sockets: Box::new(TracingSockets {
            inner: opened.sockets,
            tracer: tracer.clone(),
        }),
        shm: opened.shm.map(|inner| {
            let tracer = tracer.clone();
            Arc::new(TracingShmTransport { inner, tracer }) as _
        }),
        ..opened
    }
}

/// An entity id as a number.
pub(crate) fn entity_word(entity: EntityId) -> u32 {
    u32::from_be_bytes(entity.to_bytes())
}

/// Number of traces in a folder, which is created if missing.
fn files_in(folder: &FilePath) -> std::io::Result<usize> {
    fs::create_dir_all(folder)?;
    let is_trace = |entry: &fs::DirEntry| {
        let path = entry.path();
        path.extension()
            .is_some_and(|extension| extension == EXTENSION)
    };
    Ok(fs::read_dir(folder)?.flatten().filter(is_trace).count())
}

fn trace_error(path: &FilePath, options: &TraceOptions, source: std::io::Error) -> OpenError {
    OpenError::Trace {
        path: path.to_owned(),
        bytes: options.bytes_max,
        source,
    }
}

fn clock_read_picos(platform: &Arc<dyn Platform>) -> u64 {
    let began = platform.now();
    let mut ended = began;
    for _ in 0..CLOCK_READS_TIMED {
        ended = platform.now();
    }
    let nanos = u64::try_from(ended.since(began).as_nanos()).unwrap_or(0);
    nanos.saturating_mul(1000) / CLOCK_READS_TIMED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::SystemPlatform;

    #[test]
    fn a_write_is_scheduled_once_until_it_has_happened() {
        let folder = std::env::temp_dir().join(format!("pteros-tracer-{}", std::process::id()));
        let platform: Arc<dyn Platform> = Arc::new(SystemPlatform::new());
        let options = TraceOptions {
            folder: Some(folder.clone()),
            bytes_max: BYTES_MIN,
        };
        let tracer = Tracer::open(&platform, GuidPrefix([1; 12]), &options);
        let tracer = tracer.unwrap().unwrap();
        assert!(!tracer.begin_write_delay(), "nothing was recorded");
        tracer.append_name("node 1");
        assert!(tracer.begin_write_delay());
        tracer.append_name("node 2");
        assert!(!tracer.begin_write_delay(), "that write has both");
        tracer.write_file();
        assert!(!tracer.begin_write_delay());
        tracer.append_name("node 3");
        assert!(tracer.begin_write_delay());
        drop(tracer);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
