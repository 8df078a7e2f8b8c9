//! Trace files: reads recordings from a folder and indexes them by sample.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pteros_msg::regular_file;
use pteros_runtime::names::{DdsTopic, from_dds_topic};
use pteros_runtime::rtps::id::{EntityId, Guid};
use pteros_runtime::trace::{EXTENSION, Recording, TraceEvent, TraceReadError, TraceRecord};

use super::hops::TracedEndpoint;

/// Larger files are not read: no trace has more bytes.
const FILE_BYTES_MAX: u64 = (1 << 30) + 4096;

/// Why a trace could not be loaded.
#[derive(thiserror::Error)]
pub enum TraceError {
    /// The file or folder cannot be read.
    #[error("read trace {}: {source}; name a .{EXTENSION} file or the folder that PTEROS_TRACE named", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The folder has no trace files.
    #[error("folder {} has no .{EXTENSION} file; start the processes to trace with PTEROS_TRACE={}", path.display(), path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not a trace, or truncated.
    #[error("trace {}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem.
        #[source]
        source: TraceReadError,
    },
}

pteros_msg::debug_as_display!(TraceError);

/// A sample in a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SampleKey {
    pub writer: Guid,
    pub sequence: i64,
}

/// An endpoint or a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct EndpointKey {
    /// The index of its context in the trace.
    pub context: usize,
    /// Its id in the context.
    pub entity: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CallbackKey {
    pub process: u32,
    /// Its number in the process.
    pub span: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ThreadKey {
    pub process: u32,
    /// Its number in the process.
    pub thread: u32,
}

impl SampleKey {
    /// The sample that a record is about.
    pub fn of(record: &TraceRecord) -> Self {
        Self {
            writer: record.writer,
            sequence: record.sequence,
        }
    }
}

/// Recordings of one or more contexts of one host.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(super) recordings: Vec<Recording>,
    pub(super) endpoints: HashMap<EndpointKey, TracedEndpoint>,
    pub(super) nodes: HashMap<EndpointKey, String>,
    pub(super) writers: HashMap<Guid, EndpointKey>,
    pub(super) published: HashMap<SampleKey, (usize, TraceRecord)>,
    pub(super) arrivals: HashMap<(SampleKey, EndpointKey), TraceRecord>,
    /// Callbacks for samples, and samples taken without callback, by time.
    pub(super) callback_records: Vec<(usize, TraceRecord)>,
    /// The callbacks among them.
    pub(super) callbacks: HashSet<CallbackKey>,
    /// Indices of the records that took a sample.
    pub(super) taken_by: BTreeMap<SampleKey, Vec<usize>>,
    /// Samples published in a callback.
    pub(super) children: HashMap<CallbackKey, Vec<SampleKey>>,
    /// Samples that threads published outside of callbacks, with times, in order.
    pub(super) outside_callbacks: HashMap<ThreadKey, Vec<(u64, SampleKey)>>,
    /// When threads took samples of a reader without a callback, in order.
    pub(super) polls: HashMap<(ThreadKey, EndpointKey), Vec<u64>>,
}

impl Trace {
    /// Reads a trace file, or all trace files of a folder.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn load(path: &Path) -> Result<Self, TraceError> {
        let failed = |path: &Path, source| TraceError::Read {
            path: path.to_owned(),
            source,
        };
        let status = std::fs::metadata(path).map_err(|e| failed(path, e))?;
        if !status.is_dir() {
            return Ok(Self::new([read(path)?]));
        }
        let entries = std::fs::read_dir(path).map_err(|e| failed(path, e))?;
        let mut files: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == EXTENSION)
            })
            .collect();
        files.sort();
        if files.is_empty() {
            return Err(TraceError::Empty {
                path: path.to_owned(),
            });
        }
        let recordings: Result<Vec<_>, _> = files.iter().map(|file| read(file)).collect();
        Ok(Self::new(recordings?))
    }

    /// A trace of recordings in memory.
    pub fn new(recordings: impl IntoIterator<Item = Recording>) -> Self {
        let mut trace = Self::default();
        for (context, recording) in recordings.into_iter().enumerate() {
            trace.index(context, &recording);
            trace.recordings.push(recording);
        }
        trace.callback_records.sort_by_key(|(context, record)| {
            let origin = trace
                .recordings
                .get(*context)
                .map_or(0, |r| r.header.origin);
            origin.saturating_add(record.first_time)
        });
        for (at, (context, record)) in trace.callback_records.iter().enumerate() {
            let sample = SampleKey::of(record);
            trace.taken_by.entry(sample).or_default().push(at);
            if record.event == TraceEvent::Taken {
                let recording = trace.recordings.get(*context);
                let (process, origin) =
                    recording.map_or((0, 0), |r| (r.header.process, r.header.origin));
                let thread = ThreadKey {
                    process,
                    thread: record.thread,
                };
                let reader = EndpointKey {
                    context: *context,
                    entity: record.entity,
                };
                let polls = trace.polls.entry((thread, reader)).or_default();
                polls.push(origin.saturating_add(record.first_time));
            }
        }
        for published in trace.outside_callbacks.values_mut() {
            published.sort_unstable_by_key(|(at, _)| *at);
        }
        trace
    }

    /// The recordings of the trace.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Records overwritten by newer ones before the trace was read. Their events
    /// are missing.
    pub fn overwritten_records(&self) -> u64 {
        self.recordings.iter().map(|recording| recording.lost).sum()
    }

    /// Converts a context's time to the host's monotonic clock.
    pub(super) fn absolute(&self, context: usize, time: u64) -> u64 {
        let origin = self.recordings.get(context).map_or(0, |r| r.header.origin);
        origin.saturating_add(time)
    }

    pub(super) fn process(&self, context: usize) -> u32 {
        self.recordings.get(context).map_or(0, |r| r.header.process)
    }

    fn index(&mut self, context: usize, recording: &Recording) {
        self.read_names(context, recording);
        let process = recording.header.process;
        for record in &recording.records {
            let sample = SampleKey::of(record);
            match record.event {
                TraceEvent::Published => {
                    self.published.insert(sample, (context, *record));
                    if record.cause != 0 {
                        let callback = CallbackKey {
                            process,
                            span: record.cause,
                        };
                        self.children.entry(callback).or_default().push(sample);
                    } else {
                        let at = recording.header.origin.saturating_add(record.first_time);
                        let thread = ThreadKey {
                            process,
                            thread: record.thread,
                        };
                        let outside_callbacks = self.outside_callbacks.entry(thread);
                        outside_callbacks.or_default().push((at, sample));
                    }
                }
                TraceEvent::Arrived => {
                    let endpoint = EndpointKey {
                        context,
                        entity: record.entity,
                    };
                    self.arrivals.entry((sample, endpoint)).or_insert(*record);
                }
                TraceEvent::Called => {
                    self.callbacks.insert(CallbackKey {
                        process,
                        span: record.span,
                    });
                    self.callback_records.push((context, *record));
                }
                TraceEvent::Taken => self.callback_records.push((context, *record)),
                TraceEvent::TimerFired => {}
            }
        }
    }

    fn read_names(&mut self, context: usize, recording: &Recording) {
        let mut owned: Vec<(u32, u32)> = Vec::new();
        for line in recording.names.lines() {
            let mut words = line.splitn(4, ' ');
            let (kind, id) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            match kind {
                "node" => {
                    let name = words.next().unwrap_or("").to_owned();
                    if let Ok(entity) = id.parse() {
                        self.nodes.insert(EndpointKey { context, entity }, name);
                    }
                }
                "writer" | "reader" => {
                    let Ok(entity) = u32::from_str_radix(id, 16) else {
                        continue;
                    };
                    let topic = ros_topic(words.next().unwrap_or(""));
                    let endpoint = EndpointKey { context, entity };
                    if kind == "writer" {
                        let entity = EntityId::from_bytes(entity.to_be_bytes());
                        let guid = recording.header.prefix.with(entity);
                        self.writers.insert(guid, endpoint);
                    }
                    let owner = TracedEndpoint {
                        topic,
                        node: String::new(),
                        process: recording.header.process,
                    };
                    self.endpoints.insert(endpoint, owner);
                }
                "owner" => {
                    let node = words.next().unwrap_or("").parse();
                    if let (Ok(endpoint), Ok(node)) = (u32::from_str_radix(id, 16), node) {
                        owned.push((endpoint, node));
                    }
                }
                // From a later version.
                _ => {}
            }
        }
        let key = |entity| EndpointKey { context, entity };
        for (endpoint, node) in owned {
            let node = self.nodes.get(&key(node)).cloned();
            if let Some(owner) = self.endpoints.get_mut(&key(endpoint)) {
                owner.node = node.unwrap_or_default();
            }
        }
    }
}

/// The ROS name of a topic; requests and replies get the service's name.
fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) | DdsTopic::NonRos(name) => name,
        DdsTopic::ServiceRequest(name) => format!("{name} (request)"),
        DdsTopic::ServiceReply(name) => format!("{name} (reply)"),
    }
}

fn read(path: &Path) -> Result<Recording, TraceError> {
    let failed = |source| TraceError::Read {
        path: path.to_owned(),
        source,
    };
    let bad = |source| TraceError::Malformed {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let mut limited = regular_file::open(path)
        .map_err(failed)?
        .take(FILE_BYTES_MAX.saturating_add(1));
    limited.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(bad(TraceReadError::NotATrace));
    }
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    Recording::read(&words).map_err(bad)
}
