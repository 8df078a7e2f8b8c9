//! When a message was where: time stamps at the boundaries of the layers, and
//! which callback a message came out of.
//!
//! A context is traced if its options say so when it is opened. Then sockets and
//! links are put into doors that stamp (`doors`), publish calls, arrivals and
//! callbacks write one [`Record`] each into a `ring` of fixed size, whose oldest
//! records make room and are counted. Untraced, each of those looks at one empty
//! `Option`. A message is told apart by its writer and number, which every path
//! carries, so records of several processes are put together by who reads them.
//! Nothing here blocks, allocates or calls the system per message, the look at
//! the clock aside.

mod doors;
mod here;
mod record;
mod ring;

use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::time::{Instant, Timestamp};

use crate::core::Core;
use crate::env::{Env, Opened};
use crate::error::{OpenError, PublishError};
use crate::graph::{DISCOVERY_TOPIC, NodeKey};
use crate::sample::{Path, SampleMeta};
use crate::writer::{Outgoing, WriterEndpoint};

use doors::{StampedLinks, StampedMessage, StampedTransport};
use here::{Call, Draft, Input};
pub use here::{On, span};
pub use record::{Record, Step};
use ring::Ring;
pub use ring::{HEAD_WORDS, Head, MAGIC, NoTrace, Recording, VERSION};

/// What the file of a traced context ends in.
pub const EXTENSION: &str = "ptrace";

/// Bytes of a context's trace unless told otherwise: some 170 000 records, a
/// minute of a thousand messages a second.
pub const BYTES_DEFAULT: usize = 16 << 20;

/// The least that a trace can have.
pub const BYTES_MIN: usize = 64 << 10;

/// The most.
pub const BYTES_MAX: usize = 1 << 30;

/// Traces in one folder, beyond which contexts are opened untraced, with a
/// warning: a program that is started again and again must not fill the disk.
pub const FILES_MAX: usize = 1024;

/// Looks at the clock that are timed to know what one takes.
const STAMPS_TIMED: u64 = 64;

/// That and where a context is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The folder that gets its file, `PROCESS-PARTICIPANT.ptrace`; made if it is
    /// missing. `None` keeps the trace in memory, for the program itself.
    pub folder: Option<PathBuf>,
    /// How large its trace is, [`BYTES_MIN`] to [`BYTES_MAX`]. When it is full the
    /// oldest records make room, which is counted.
    pub bytes_max: usize,
}

impl Default for TraceOptions {
    /// In memory, of [`BYTES_DEFAULT`].
    fn default() -> Self {
        Self {
            folder: None,
            bytes_max: BYTES_DEFAULT,
        }
    }
}

/// What a traced context writes its records with. Thread-safe.
pub struct Tracer {
    ring: Ring,
    env: Arc<dyn Env>,
}

impl Tracer {
    /// Opens the trace of a context. `None` if its folder has [`FILES_MAX`].
    pub(crate) fn open(
        env: &Arc<dyn Env>,
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
                        "folder {} has {FILES_MAX} traces already: this process is not traced; remove what is not needed",
                        folder.display()
                    );
                    return Ok(None);
                }
                Some(folder.join(format!("{process}-{prefix}.{EXTENSION}")))
            }
        };
        let now = env.now();
        let head = Head {
            process,
            prefix,
            origin: env.clock_origin(),
            wall: env
                .wall()
                .as_nanos()
                .saturating_sub(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)),
            stamp_picos: stamp_picos(env),
        };
        let ring = Ring::create(options.bytes_max, file.as_deref(), &head).map_err(|error| {
            trace_error(file.as_deref().unwrap_or(FilePath::new("")), options, error)
        })?;
        let env = env.clone();
        Ok(Some(Arc::new(Self { ring, env })))
    }

    /// What has been recorded, as far as it is still there. Copies the whole
    /// trace; recording goes on meanwhile.
    pub fn recording(&self) -> Recording {
        let recording = Recording::read(&self.ring.copy());
        recording.expect("a trace of ours is one")
    }

    pub(crate) fn now(&self) -> Instant {
        self.env.now()
    }

    // --- out ---

    /// The user has called `publish` on this thread, which goes on in
    /// [`Core::publish`].
    pub fn begin_publish(&self) {
        here::set_began(self.now());
    }

    /// A datagram is about to be handed to a socket or a link.
    fn note_handed(&self) {
        here::with_draft(|draft| {
            if draft.handed.is_none() {
                draft.handed = Some(self.now());
            }
        });
    }

    // --- in ---

    /// A sample is about to enter a reader's queue.
    pub(crate) fn note_arrived(&self, reader: EntityId, meta: &SampleMeta, bytes: usize) {
        let now = self.now();
        let arrived = match meta.path {
            Path::IntraProcess => now,
            Path::SharedMemory | Path::Network => here::arrived().unwrap_or(now).min(now),
        };
        let input = Input::new(meta, bytes);
        let times = [Some(now), None, None, None];
        self.write(
            Step::Arrived,
            (arrived, times),
            Some(input),
            (entity_word(reader), 0),
        );
    }

    /// A sample has left a reader's queue, or what kept it: whoever gets it goes on
    /// with it on this thread. Within a callback it is the callback's, of whose
    /// samples the first before [`Calling::starts`] is what it was called for.
    pub fn note_taken(&self, reader: EntityId, meta: &SampleMeta, bytes: usize) {
        let now = self.now();
        let input = Input::new(meta, bytes);
        let is_its = here::with_call(|call| {
            let is_its = call.started.is_none();
            if is_its {
                call.taken = Some((input, now));
            }
            is_its
        });
        if is_its != Some(true) {
            self.write(
                Step::Taken,
                (now, [None; 4]),
                Some(input),
                (entity_word(reader), 0),
            );
        }
    }

    /// The executor begins with a reader's callback on this thread. Until what
    /// is returned is dropped, messages published here come of it.
    pub fn call(&self, reader: EntityId) -> Calling<'_> {
        self.begin(Step::Called, entity_word(reader))
    }

    /// As [`Tracer::call`], for a timer of a node.
    pub fn tick(&self, node: NodeKey) -> Calling<'_> {
        self.begin(Step::Ticked, node.word())
    }

    fn begin(&self, step: Step, of: u32) -> Calling<'_> {
        let began = self.now();
        let span = here::next_span();
        let call = Call {
            began,
            taken: None,
            // A timer is called for no sample: those that it takes are polled.
            started: (step == Step::Ticked).then_some(began),
        };
        Calling {
            tracer: self,
            step,
            of,
            span,
            outer: here::replace_call(Some(call)),
            on: Some(On::span(span)),
        }
    }

    fn end(&self, calling: &Calling<'_>, call: Call) {
        let now = self.now();
        let who = (calling.of, calling.span);
        match calling.step {
            Step::Ticked => {
                let times = [Some(now), None, None, None];
                self.write(Step::Ticked, (call.began, times), None, who);
            }
            _ => {
                let Some((input, taken)) = call.taken else {
                    return;
                };
                let times = [Some(taken), call.started, Some(now), None];
                self.write(calling.step, (call.began, times), Some(input), who);
            }
        }
    }

    fn write(
        &self,
        step: Step,
        (at, times): (Instant, [Option<Instant>; 4]),
        input: Option<Input>,
        (of, span): (u32, u64),
    ) {
        let at = at.as_nanos();
        let none = GuidPrefix::UNKNOWN.with(EntityId::UNKNOWN);
        self.ring.push(Record {
            step,
            path: input.map_or(Path::IntraProcess, |input| input.path),
            bytes: input.map_or(0, |input| input.bytes),
            at,
            after: times.map(|time| Record::after(at, time.map(Instant::as_nanos))),
            writer: input.map_or(none, |input| input.writer),
            sequence: input.map_or(0, |input| input.sequence),
            of,
            thread: here::thread(),
            span,
            cause: here::span(),
        });
    }

    // --- names ---

    pub(crate) fn name_node(&self, key: NodeKey, path: &str) {
        self.ring.name(&format!("node {} {path}", key.word()));
    }

    pub(crate) fn name_endpoint(&self, data: &EndpointData) {
        let guid = data.guid;
        let kind = match guid.entity.is_writer() {
            true => "writer",
            false => "reader",
        };
        let of = entity_word(guid.entity);
        self.ring.name(&format!(
            "{kind} {of:08x} {} {}",
            data.topic, data.type_name
        ));
    }

    pub(crate) fn name_owner(&self, entity: EntityId, key: NodeKey) {
        let of = entity_word(entity);
        self.ring.name(&format!("owner {of:08x} {}", key.word()));
    }
}

/// A callback that runs, for as long as this lives.
pub struct Calling<'t> {
    tracer: &'t Tracer,
    step: Step,
    of: u32,
    span: u64,
    outer: Option<Call>,
    on: Option<On>,
}

impl Calling<'_> {
    /// The user's code is called next: what came before was taking and decoding.
    pub fn starts(&self) {
        let now = self.tracer.now();
        here::with_call(|call| call.started = Some(now));
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        // What goes on here again is the cause.
        drop(self.on.take());
        if let Some(call) = here::replace_call(self.outer) {
            self.tracer.end(self, call);
        }
    }
}

impl Core {
    /// What records this context, if it is traced.
    #[inline]
    pub fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_deref()
    }

    pub(crate) fn publish_traced(
        &self,
        tracer: &Tracer,
        writer: &WriterEndpoint,
        message: &mut dyn Outgoing,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        let patience = writer.data.qos.max_blocking_time;
        if writer.data.topic == DISCOVERY_TOPIC {
            return self.publish_within_time(writer, message, source, patience);
        }
        let entered = tracer.now();
        let draft = Draft {
            began: here::take_began().unwrap_or(entered),
            entered,
            serialized: None,
            bytes: 0,
            handed: None,
        };
        let outer = here::replace_draft(Some(draft));
        let mut message = StampedMessage {
            inner: message,
            tracer,
        };
        let published = self.publish_within_time(writer, &mut message, source, patience);
        let Some(draft) = here::replace_draft(outer) else {
            return published;
        };
        if let Ok(sequence) = &published {
            let (began, ended) = draft.serialized.unzip();
            let handed = draft.handed.unwrap_or_else(|| tracer.now());
            let times = [Some(draft.entered), began, ended, Some(handed)];
            let input = Input {
                writer: writer.guid(),
                sequence: *sequence,
                path: Path::IntraProcess,
                bytes: draft.bytes,
            };
            let of = (entity_word(writer.guid().entity), 0);
            tracer.write(Step::Published, (draft.began, times), Some(input), of);
        }
        published
    }
}

/// Puts what was opened into doors that stamp.
pub(crate) fn stamped(opened: Opened, tracer: &Arc<Tracer>) -> Opened {
    Opened {
        transport: Box::new(StampedTransport {
            inner: opened.transport,
            tracer: tracer.clone(),
        }),
        links: opened.links.map(|inner| {
            let tracer = tracer.clone();
            Arc::new(StampedLinks { inner, tracer }) as _
        }),
        ..opened
    }
}

/// An entity id as a number.
fn entity_word(entity: EntityId) -> u32 {
    u32::from_be_bytes(entity.to_bytes())
}

/// The traces in a folder, which is made if it is missing.
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

fn stamp_picos(env: &Arc<dyn Env>) -> u64 {
    let began = env.now();
    let mut ended = began;
    for _ in 0..STAMPS_TIMED {
        ended = env.now();
    }
    let nanos = u64::try_from(ended.since(began).as_nanos()).unwrap_or(0);
    nanos.saturating_mul(1000) / STAMPS_TIMED
}
