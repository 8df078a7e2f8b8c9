//! Recordings put together: read from a folder, indexed by sample.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use pteros_rmw::names::{DdsTopic, from_dds_topic};
use pteros_rmw::rtps::id::{EntityId, Guid};
use pteros_rmw::trace::{EXTENSION, NoTrace, Record, Recording, Step};

use super::hops::Owner;

/// Bytes of a file beyond which it is not read: more than a trace can have.
const FILE_BYTES_MAX: u64 = (1 << 30) + 4096;

/// Why there is no trace to look at.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file or folder cannot be read.
    #[error("read trace {}: {source}; name a .{EXTENSION} file or the folder that PTEROS_TRACE named", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The operating system's word.
        #[source]
        source: io::Error,
    },
    /// There is none in the folder.
    #[error("folder {} has no .{EXTENSION} file; start what is to be traced with PTEROS_TRACE={}", path.display(), path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A file is something else, or cut off.
    #[error("trace {}: {source}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: NoTrace,
    },
}

/// A sample's writer and number.
pub(super) type Sample = (Guid, i64);

/// An endpoint's context among the trace's, and its id there.
pub(super) type Place = (usize, u32);

/// A callback: its process and its number there.
pub(super) type SpanOf = (u32, u64);

/// A thread: its process and its number there.
pub(super) type ThreadOf = (u32, u32);

/// Recordings of one or more contexts of one host, put together.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub(super) recordings: Vec<Recording>,
    pub(super) endpoints: HashMap<Place, Owner>,
    pub(super) nodes: HashMap<Place, String>,
    pub(super) writers: HashMap<Guid, Place>,
    pub(super) published: HashMap<Sample, (usize, Record)>,
    pub(super) arrived: HashMap<(Sample, Place), Record>,
    /// Callbacks for samples and samples taken without, by when that was.
    pub(super) called: Vec<(usize, Record)>,
    /// Those callbacks.
    pub(super) spans: HashSet<SpanOf>,
    /// Which of them took a sample.
    pub(super) takers: BTreeMap<Sample, Vec<usize>>,
    /// What was published in a callback.
    pub(super) children: HashMap<SpanOf, Vec<Sample>>,
    /// What threads published outside of callbacks, and when, in order.
    pub(super) alone: HashMap<ThreadOf, Vec<(u64, Sample)>>,
    /// When threads took samples without a callback of which reader, in order.
    pub(super) polls: HashMap<(ThreadOf, Place), Vec<u64>>,
}

impl Trace {
    /// Reads a trace file, or all of a folder's.
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

    /// Of recordings that are here already.
    pub fn new(recordings: impl IntoIterator<Item = Recording>) -> Self {
        let mut trace = Self::default();
        for (context, recording) in recordings.into_iter().enumerate() {
            trace.index(context, &recording);
            trace.recordings.push(recording);
        }
        trace.called.sort_by_key(|(context, record)| {
            let origin = trace.recordings.get(*context).map_or(0, |r| r.head.origin);
            origin.saturating_add(record.at)
        });
        for (at, (context, record)) in trace.called.iter().enumerate() {
            let sample = (record.writer, record.sequence);
            trace.takers.entry(sample).or_default().push(at);
            if record.step == Step::Taken {
                let recording = trace.recordings.get(*context);
                let (process, origin) =
                    recording.map_or((0, 0), |r| (r.head.process, r.head.origin));
                let of = ((process, record.thread), (*context, record.of));
                let polls = trace.polls.entry(of).or_default();
                polls.push(origin.saturating_add(record.at));
            }
        }
        for published in trace.alone.values_mut() {
            published.sort_unstable_by_key(|(at, _)| *at);
        }
        trace
    }

    /// The recordings it is made of.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Records that had made room for newer ones when it was read. What they told
    /// of is missing here.
    pub fn lost(&self) -> u64 {
        self.recordings.iter().map(|recording| recording.lost).sum()
    }

    /// A time of a context by the clock that all of the host share.
    pub(super) fn absolute(&self, context: usize, time: u64) -> u64 {
        let origin = self.recordings.get(context).map_or(0, |r| r.head.origin);
        origin.saturating_add(time)
    }

    pub(super) fn process(&self, context: usize) -> u32 {
        self.recordings.get(context).map_or(0, |r| r.head.process)
    }

    fn index(&mut self, context: usize, recording: &Recording) {
        self.read_names(context, recording);
        let process = recording.head.process;
        for record in &recording.records {
            let sample = (record.writer, record.sequence);
            match record.step {
                Step::Published => {
                    self.published.insert(sample, (context, *record));
                    if record.cause != 0 {
                        let children = self.children.entry((process, record.cause));
                        children.or_default().push(sample);
                    } else {
                        let at = recording.head.origin.saturating_add(record.at);
                        let alone = self.alone.entry((process, record.thread));
                        alone.or_default().push((at, sample));
                    }
                }
                Step::Arrived => {
                    let place = (context, record.of);
                    self.arrived.entry((sample, place)).or_insert(*record);
                }
                Step::Called => {
                    self.spans.insert((process, record.span));
                    self.called.push((context, *record));
                }
                Step::Taken => self.called.push((context, *record)),
                Step::Ticked => {}
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
                    if let Ok(key) = id.parse() {
                        self.nodes.insert((context, key), name);
                    }
                }
                "writer" | "reader" => {
                    let Ok(of) = u32::from_str_radix(id, 16) else {
                        continue;
                    };
                    let topic = ros_topic(words.next().unwrap_or(""));
                    let place = (context, of);
                    if kind == "writer" {
                        let entity = EntityId::from_bytes(of.to_be_bytes());
                        let guid = recording.head.prefix.with(entity);
                        self.writers.insert(guid, place);
                    }
                    let owner = Owner {
                        topic,
                        node: String::new(),
                        process: recording.head.process,
                    };
                    self.endpoints.insert(place, owner);
                }
                "owner" => {
                    let key = words.next().unwrap_or("").parse();
                    if let (Ok(of), Ok(key)) = (u32::from_str_radix(id, 16), key) {
                        owned.push((of, key));
                    }
                }
                // Of a later version.
                _ => {}
            }
        }
        for (of, key) in owned {
            let node = self.nodes.get(&(context, key)).cloned();
            if let Some(owner) = self.endpoints.get_mut(&(context, of)) {
                owner.node = node.unwrap_or_default();
            }
        }
    }
}

/// As users say it; requests and replies with the service's name.
fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) | DdsTopic::Foreign(name) => name,
        DdsTopic::ServiceRequest(name) => format!("{name} (request)"),
        DdsTopic::ServiceReply(name) => format!("{name} (reply)"),
    }
}

fn read(path: &Path) -> Result<Recording, TraceError> {
    let failed = |source| TraceError::Read {
        path: path.to_owned(),
        source,
    };
    let bad = |source| TraceError::Bad {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(bad(NoTrace::Other));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    Recording::read(&words).map_err(bad)
}
