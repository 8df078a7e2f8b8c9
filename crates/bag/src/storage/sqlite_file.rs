//! rosbag2's sqlite3 storage: tables `topics` and `messages`; in newer databases also
//! `message_definitions`, `metadata` and `schema`.
//!
//! Columns are found by name, so every version of the schema is read. A block is a run of
//! pages of `messages`, about a megabyte.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pteros::msg::library::InterfaceLibrary;
use pteros::msg::regular_file;

use super::{Block, BlockMessage, LoadedBlock, StorageFile, StoredTopic};
use crate::definitions::{readable_definition, type_of};
use crate::error::BagError;
use crate::qos_text::parse_profiles;
use crate::source::{PROBLEMS_MAX, Source};
use crate::sqlite::{Database, Table, Value};
use crate::topic::BagTopic;

/// Row bytes after which a block ends; the last page may exceed it.
const BLOCK_BYTES: u64 = 1 << 20;
/// Largest block, bytes: the size of the largest MCAP chunk.
const BLOCK_BYTES_MAX: usize = 512 << 20;
/// Rows of a table other than `messages`, and their bytes. Cells may overlap, so the
/// file's size is no limit.
const TABLE_ROWS_MAX: usize = 65_536;
const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Columns of such a table. Those of rosbag2 have at most six.
const TABLE_COLUMNS_MAX: usize = 32;
/// First bytes of an active rollback journal.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// An open database of a bag.
pub(super) struct SqliteFile {
    database: Database,
    topics: Vec<StoredTopic>,
    /// Channels by topic id of the database.
    channels: BTreeMap<i64, u16>,
    columns: MessageColumns,
    pages: Vec<u32>,
    blocks: Vec<PageRun>,
    span: Option<(u64, u64)>,
    message_count: u64,
    texts: BTreeMap<String, String>,
    problems: Vec<String>,
    is_complete: bool,
}

/// Definitions of a database by type, each with its hash. A merged database has several
/// per type.
#[derive(Default)]
struct TypeDefinitions(BTreeMap<String, Vec<(String, String)>>);

impl TypeDefinitions {
    /// Sets the definition of a topic by its hash. Without a hash, sets the only
    /// definition of its type.
    ///
    /// # Errors
    /// Several definitions exist, and none has the topic's hash.
    fn define(&self, topic: &mut BagTopic) -> Result<(), String> {
        let Some(of_type) = self.0.get(&topic.type_name) else {
            return Ok(());
        };
        let wanted = topic.type_hash.as_str();
        let describes = |text: &str| {
            let nobody = InterfaceLibrary::new();
            let ty = type_of(&topic.type_name, text, &nobody);
            ty.is_ok_and(|ty| ty.hash().to_string() == wanted)
        };
        let by_hash = of_type.iter().find(|(hash, _)| hash == wanted);
        let mut own = by_hash.filter(|_| !wanted.is_empty());
        if own.is_none() && !wanted.is_empty() {
            own = of_type.iter().find(|(_, text)| describes(text));
        }
        let mut texts = of_type.iter().map(|(_, text)| text);
        let are_equal = texts
            .next()
            .is_none_or(|first| texts.all(|text| text == first));
        let tells_nothing = wanted.is_empty() || of_type.iter().all(|(hash, _)| hash.is_empty());
        if own.is_none() && are_equal && tells_nothing {
            own = of_type.first();
        }
        let Some((_, text)) = own else {
            return Err(format!(
                "topic {}: none of the {} definitions of {} is that of its type hash {wanted:?}; it is read without a definition",
                topic.name,
                of_type.len(),
                topic.type_name
            ));
        };
        topic.definition.clone_from(text);
        Ok(())
    }
}

/// A run of pages of `messages`.
struct PageRun {
    pages: std::ops::Range<usize>,
    span: Block,
}

/// Column indexes of `messages`.
#[derive(Clone, Copy)]
struct MessageColumns {
    topic: usize,
    time: usize,
    data: usize,
}

impl SqliteFile {
    /// Reads the topics, and the times of all messages.
    pub(super) fn open(
        file: Box<dyn Source>,
        bytes: u64,
        path: &Path,
        is_on_disk: bool,
    ) -> Result<Self, BagError> {
        let log = is_on_disk.then(|| beside(path, "-wal"));
        let mut database = Database::open(file, bytes, path, log)?;
        let no_bag = || BagError::NotABag {
            path: path.to_owned(),
            problem: "an SQLite database without rosbag2's tables topics and messages".into(),
        };
        let topics = database.table("topics")?.ok_or_else(no_bag)?;
        let messages = database.table("messages")?.ok_or_else(no_bag)?;
        let column = |name: &str| messages.column(name).ok_or_else(no_bag);
        let columns = MessageColumns {
            topic: column("topic_id")?,
            time: column("timestamp")?,
            data: column("data")?,
        };
        let mut open = Self {
            database,
            topics: Vec::new(),
            channels: BTreeMap::new(),
            columns,
            pages: Vec::new(),
            blocks: Vec::new(),
            span: None,
            message_count: 0,
            texts: BTreeMap::new(),
            problems: Vec::new(),
            is_complete: true,
        };
        let missing = open.database.missing_bytes();
        if missing > 0 {
            open.note(format!("the file ends early: {missing} bytes are missing"));
        }
        if is_on_disk {
            open.look_for_journal(&beside(path, "-journal"));
        }
        open.read_topics(&topics)?;
        open.read_texts()?;
        open.read_times(&messages)?;
        open.is_complete &= open.problems.is_empty();
        Ok(open)
    }

    fn note(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// An active journal belongs to an interrupted transaction.
    fn look_for_journal(&mut self, path: &Path) {
        let is_in_use = regular_file::open(path).is_ok_and(|mut file| {
            let mut head = [0; JOURNAL_MAGIC.len()];
            std::io::Read::read_exact(&mut file, &mut head).is_ok() && head == JOURNAL_MAGIC
        });
        if is_in_use {
            self.note(format!(
                "its recorder was stopped within a transaction; the last messages may be wrong. Opening the database once with sqlite3 undoes the transaction by {}",
                path.display()
            ));
        }
    }

    /// Rows of a small table with their ids, up to the limits. The remaining rows are
    /// skipped and noted with the table's name.
    fn all_rows(&mut self, name: &str, table: &Table) -> Result<Vec<(i64, Vec<Value>)>, BagError> {
        let columns = table.column_count().min(TABLE_COLUMNS_MAX);
        let mut bytes = 0u64;
        let leaves = self.database.leaves(table)?;
        for problem in leaves.problems {
            self.note(problem);
        }
        let mut all = Vec::new();
        for leaf in leaves.pages {
            let page = self.database.leaf(leaf)?;
            for row in self.database.rows(leaf, &page)? {
                bytes = bytes.saturating_add(row.bytes);
                if all.len() >= TABLE_ROWS_MAX || bytes > TABLE_BYTES_MAX {
                    self.note(format!(
                        "the table {name} has more than {TABLE_ROWS_MAX} rows or {TABLE_BYTES_MAX} bytes; the rest is left out"
                    ));
                    return Ok(all);
                }
                let record = self.database.record(leaf, &page, &row)?;
                let values = self.database.values_of(leaf, &record, columns)?;
                all.push((row.id, values));
            }
        }
        Ok(all)
    }

    fn read_topics(&mut self, table: &Table) -> Result<(), BagError> {
        let definitions = self.read_definitions()?;
        for (row_id, values) in self.all_rows("topics", table)? {
            let text = |name: &str| {
                let value = table.column(name).and_then(|at| values.get(at));
                value.and_then(Value::text).unwrap_or_default().to_owned()
            };
            let Ok(channel) = u16::try_from(self.topics.len()) else {
                self.note("it has more than 65535 topics; the rest is left out".into());
                break;
            };
            let name = text("name");
            let mut stored = StoredTopic {
                channel,
                topic: BagTopic {
                    name: name.clone(),
                    type_name: text("type"),
                    serialization_format: text("serialization_format"),
                    offered_qos: Vec::new(),
                    type_hash: text("type_description_hash"),
                    definition: String::new(),
                    foreign_schema: None,
                },
                message_count: 0,
                problem: None,
            };
            match parse_profiles(&text("offered_qos_profiles")) {
                Ok(profiles) => stored.topic.offered_qos = profiles,
                Err(problem) => stored.note(format!("topic {name}: its QoS profiles: {problem}")),
            }
            if let Err(problem) = definitions.define(&mut stored.topic) {
                stored.note(problem);
            }
            self.topics.push(stored);
            self.channels.insert(row_id, channel);
        }
        Ok(())
    }

    /// Schemas before version 4 have no definitions.
    fn read_definitions(&mut self) -> Result<TypeDefinitions, BagError> {
        let mut definitions = TypeDefinitions::default();
        let Some(table) = self.database.table("message_definitions")? else {
            return Ok(definitions);
        };
        for (_, values) in self.all_rows("message_definitions", &table)? {
            let text = |name: &str| {
                let value = table.column(name).and_then(|at| values.get(at));
                value.and_then(Value::text).unwrap_or_default()
            };
            let encoded = text("encoded_message_definition");
            let definition = readable_definition(text("encoding"), encoded);
            if !definition.is_empty() {
                let of_type = definitions.0.entry(text("topic_type").to_owned());
                let hash = text("type_description_hash").to_owned();
                of_type.or_default().push((hash, definition));
            }
        }
        Ok(definitions)
    }

    /// Reads the metadata embedded in newer databases.
    fn read_texts(&mut self) -> Result<(), BagError> {
        for (name, column, key) in [
            ("metadata", "metadata", "serialized_metadata"),
            ("schema", "ros_distro", "ROS_DISTRO"),
        ] {
            let Some(table) = self.database.table(name)? else {
                continue;
            };
            let rows = self.all_rows(name, &table)?;
            let last = rows.last().and_then(|(_, values)| {
                let value = values.get(table.column(column)?)?;
                value.text().map(str::to_owned)
            });
            if let Some(text) = last {
                self.texts.insert(key.to_owned(), text);
            }
        }
        Ok(())
    }

    fn read_times(&mut self, table: &Table) -> Result<(), BagError> {
        let leaves = self.database.leaves(table)?;
        self.pages = leaves.pages;
        for problem in leaves.problems {
            self.note(problem);
        }
        let mut run_pages = 0..0;
        let mut run_span: Option<(u64, u64)> = None;
        let mut run_channels = BTreeSet::new();
        let mut run_bytes = 0;
        let mut unknown = 0u64;
        for at in 0..self.pages.len() {
            let Some(&leaf) = self.pages.get(at) else {
                break;
            };
            match self.times_of(leaf) {
                Ok(rows) => {
                    for (topic, time, bytes) in rows {
                        let Some(channel) = self.channels.get(&topic) else {
                            unknown += 1;
                            continue;
                        };
                        if let Some(known) = self.topics.get_mut(usize::from(*channel)) {
                            known.message_count += 1;
                        }
                        let (start, end) = run_span.unwrap_or((time, time));
                        run_span = Some((start.min(time), end.max(time)));
                        run_channels.insert(*channel);
                        run_bytes += bytes;
                        self.message_count += 1;
                    }
                }
                Err(error) => self.note(format!("{error}; the messages of a page are left out")),
            }
            run_pages.end = at + 1;
            if run_bytes >= BLOCK_BYTES || at + 1 == self.pages.len() {
                let next = at + 1..at + 1;
                let pages = std::mem::replace(&mut run_pages, next);
                let channels = std::mem::take(&mut run_channels);
                if let Some((start, end)) = run_span.take() {
                    let (first, last) = self.span.unwrap_or((start, end));
                    self.span = Some((first.min(start), last.max(end)));
                    self.blocks.push(PageRun {
                        pages,
                        span: Block {
                            start,
                            end,
                            channels: Some(channels.into_iter().collect()),
                        },
                    });
                }
                run_bytes = 0;
            }
        }
        if unknown > 0 {
            self.note(format!(
                "{unknown} messages of topics that the database does not list are left out"
            ));
        }
        Ok(())
    }

    /// Topic, time and size of each row of a page.
    fn times_of(&mut self, leaf: u32) -> Result<Vec<(i64, u64, u64)>, BagError> {
        let page = self.database.leaf(leaf)?;
        let columns = self.columns;
        let wanted = columns.topic.max(columns.time) + 1;
        let mut times = Vec::new();
        for row in self.database.rows(leaf, &page)? {
            let local = self.database.local(&page, &row);
            let values = self.database.values_of(leaf, local, wanted)?;
            let number = |at: usize| values.get(at).and_then(Value::integer);
            let (topic, time) = (number(columns.topic), number(columns.time));
            times.push((topic.unwrap_or(-1), to_time(time), row.bytes));
        }
        Ok(times)
    }

    fn load_page(&mut self, leaf: u32, data: &mut Vec<u8>) -> Result<Vec<BlockMessage>, BagError> {
        let page = self.database.leaf(leaf)?;
        let columns = self.columns;
        let wanted = columns.topic.max(columns.time).max(columns.data) + 1;
        let mut messages = Vec::new();
        for row in self.database.rows(leaf, &page)? {
            let base = data.len();
            let room = BLOCK_BYTES_MAX.saturating_sub(base) as u64;
            if row.bytes > room {
                return Err(BagError::Damaged {
                    path: self.database.path().to_owned(),
                    offset: 0,
                    problem: format!(
                        "the rows of page {leaf} have more than {BLOCK_BYTES_MAX} bytes"
                    ),
                });
            }
            self.database.append_record(leaf, &page, &row, data)?;
            let record = data.get(base..).unwrap_or_default();
            let values = self.database.values_of(leaf, record, wanted)?;
            let number = |at: usize| values.get(at).and_then(Value::integer);
            let channel = number(columns.topic).and_then(|topic| self.channels.get(&topic));
            let payload = match values.get(columns.data) {
                Some(Value::Blob(range)) => base + range.start..base + range.end,
                _ => base..base,
            };
            let (Some(channel), true) = (channel, payload.end <= data.len()) else {
                continue;
            };
            let time = to_time(number(columns.time));
            messages.push(BlockMessage {
                channel: *channel,
                log_time: time,
                publish_time: time,
                payload,
            });
        }
        Ok(messages)
    }
}

/// Times before 1970 count as 1970.
fn to_time(value: Option<i64>) -> u64 {
    value.and_then(|time| u64::try_from(time).ok()).unwrap_or(0)
}

/// Path of the file with another extension.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

impl StorageFile for SqliteFile {
    fn path(&self) -> &Path {
        self.database.path()
    }

    fn bytes(&self) -> u64 {
        self.database.bytes()
    }

    fn topics(&self) -> Vec<StoredTopic> {
        self.topics.clone()
    }

    fn blocks(&self) -> Vec<Block> {
        self.blocks.iter().map(|run| run.span.clone()).collect()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    fn message_count(&self) -> u64 {
        self.message_count
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn texts(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        (name == "rosbag2").then_some(&self.texts)
    }

    fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    fn load(&mut self, block: usize) -> Result<LoadedBlock, BagError> {
        let pages = self.blocks.get(block).map(|run| run.pages.clone());
        let pages = self.pages.get(pages.unwrap_or_default());
        let pages = pages.unwrap_or_default().to_vec();
        let mut data = Vec::new();
        let mut loaded = LoadedBlock::default();
        for leaf in pages {
            match self.load_page(leaf, &mut data) {
                Ok(messages) => loaded.messages.extend(messages),
                Err(error) => {
                    let text = format!("{error}; the messages of a page are left out");
                    loaded.problem.get_or_insert(text);
                }
            }
        }
        loaded.data = data.into();
        Ok(loaded)
    }
}
