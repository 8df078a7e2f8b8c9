//! SQLite database file: head, pages merged with those of the write-ahead log, and
//! tables.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pteros::msg::regular_file;

use super::MAGIC;
use super::record::{TextEncoding, Value, values, varint};
use super::wal::{CommittedPages, LogReader, be32};
use crate::error::BagError;
use crate::source::{self, Source};

/// Size of the file's head, on its first page.
const HEAD_BYTES: usize = 100;
/// Levels of a b-tree. Tables of the largest file have fewer.
const DEPTH_MAX: usize = 24;
/// Longest row: the largest chunk of an MCAP file.
const ROW_BYTES_MAX: u64 = 512 << 20;
/// Tables and indexes that are examined.
const SCHEMA_ROWS_MAX: usize = 10_000;
/// Size of all statements that are examined.
const SCHEMA_BYTES_MAX: u64 = 64 << 20;
const LEAF_TABLE: u8 = 0x0d;
const INTERIOR_TABLE: u8 = 0x05;

/// A table: its root page and column names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    root: u32,
    columns: Vec<String>,
}

impl Table {
    /// Number of columns in each row.
    pub(crate) fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Index of a column in each row.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }
}

/// A row on its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub id: i64,
    /// Size of the whole record.
    pub bytes: u64,
    local: std::ops::Range<usize>,
    /// First overflow page; 0 for none.
    overflow: u32,
}

/// An open database.
pub(crate) struct Database {
    file: Box<dyn Source>,
    log: Option<Log>,
    path: PathBuf,
    bytes: u64,
    page_bytes: usize,
    /// Usable bytes of a page.
    usable: usize,
    page_count: u32,
    /// Pages that the head announces; 0 if the head does not say, or the log knows better.
    announced_pages: u32,
    encoding: TextEncoding,
}

struct Log {
    file: File,
    path: PathBuf,
    bytes: u64,
    pages: CommittedPages,
}

impl Database {
    /// Reads the head of the file, and the log if `path` has one.
    ///
    /// # Errors
    /// The system's, or the head is invalid.
    pub(crate) fn open(
        file: Box<dyn Source>,
        bytes: u64,
        path: &Path,
        log: Option<PathBuf>,
    ) -> Result<Self, BagError> {
        let mut database = Self {
            file,
            log: None,
            path: path.to_owned(),
            bytes,
            page_bytes: HEAD_BYTES,
            usable: 0,
            page_count: 0,
            announced_pages: 0,
            encoding: TextEncoding::Utf8,
        };
        let head = source::read_at(&mut *database.file, bytes, path, 0, HEAD_BYTES as u64)?;
        database.take_head(&head)?;
        if let Some(log) = log {
            database.read_log(&log)?;
        }
        Ok(database)
    }

    fn take_head(&mut self, head: &[u8]) -> Result<(), BagError> {
        let byte = |at: usize| head.get(at).copied().unwrap_or(0);
        let page_bytes = match u16::from_be_bytes([byte(16), byte(17)]) {
            1 => 65_536,
            bytes => usize::from(bytes),
        };
        let usable = page_bytes.saturating_sub(usize::from(byte(20)));
        let is_valid = head.starts_with(MAGIC)
            && page_bytes.is_power_of_two()
            && page_bytes >= 512
            && usable >= 480;
        if !is_valid {
            return Err(self.damaged(0, "its head is not that of an SQLite 3 database"));
        }
        self.page_bytes = page_bytes;
        self.usable = usable;
        let whole = self.bytes.div_ceil(page_bytes as u64);
        self.page_count = u32::try_from(whole).unwrap_or(u32::MAX);
        // Writers before 3.7.0 leave an old number, and another number of changes beside it.
        let announced = be32(head, 28).filter(|_| be32(head, 24) == be32(head, 92));
        self.announced_pages = announced.unwrap_or(0);
        self.encoding = match be32(head, 56) {
            Some(2) => TextEncoding::Utf16Le,
            Some(3) => TextEncoding::Utf16Be,
            _ => TextEncoding::Utf8,
        };
        Ok(())
    }

    fn read_log(&mut self, path: &Path) -> Result<(), BagError> {
        let mut file = match regular_file::open(path) {
            Ok(file) => file,
            // A FIFO of that name is no log.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
                return Ok(());
            }
            Err(error) => return Err(BagError::io("opening", path)(error)),
        };
        let bytes = file.metadata().map_err(BagError::io("reading", path))?;
        let bytes = bytes.len();
        let head_bytes = LogReader::head_bytes() as u64;
        if bytes < head_bytes {
            return Ok(());
        }
        let head = source::read_at(&mut file, bytes, path, 0, head_bytes)?;
        let Some(mut reader) = LogReader::new(&head, self.page_bytes) else {
            return Ok(());
        };
        let frame_bytes = reader.frame_bytes() as u64;
        let mut at = head_bytes;
        while at + frame_bytes <= bytes {
            let frame = source::read_at(&mut file, bytes, path, at, frame_bytes)?;
            if !reader.take_frame(&frame) {
                break;
            }
            at += frame_bytes;
        }
        let pages = reader.finish();
        if let Some(announced) = pages.page_count {
            // A page is either in the file or in the log.
            let there = self.bytes.saturating_add(bytes) / self.page_bytes as u64;
            self.page_count = announced.min(u32::try_from(there).unwrap_or(u32::MAX));
            self.announced_pages = 0;
        }
        let path = path.to_owned();
        self.log = Some(Log {
            file,
            path,
            bytes,
            pages,
        });
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that are missing at the end of the file.
    pub(crate) fn missing_bytes(&self) -> u64 {
        let announced = u64::from(self.announced_pages).saturating_mul(self.page_bytes as u64);
        announced.saturating_sub(self.bytes)
    }

    fn damaged(&self, page: u32, problem: &str) -> BagError {
        let before = u64::from(page.saturating_sub(1));
        BagError::Damaged {
            path: self.path.clone(),
            offset: before * self.page_bytes as u64,
            problem: problem.to_owned(),
        }
    }

    /// Reads a whole page, numbered from 1.
    fn page(&mut self, number: u32) -> Result<Vec<u8>, BagError> {
        let Some(before) = number.checked_sub(1) else {
            return Err(self.damaged(0, "it names the page 0"));
        };
        let count = self.page_bytes as u64;
        if let Some(log) = &mut self.log
            && let Some(offset) = log.pages.offsets.get(&number)
        {
            return source::read_at(&mut log.file, log.bytes, &log.path, *offset, count);
        }
        let offset = u64::from(before) * count;
        if offset + count > self.bytes {
            return Err(self.damaged(number, "it names a page behind the end of the file"));
        }
        source::read_at(&mut *self.file, self.bytes, &self.path, offset, count)
    }

    /// Finds a table by name. `None` if there is none.
    ///
    /// # Errors
    /// The table of tables is damaged.
    pub(crate) fn table(&mut self, name: &str) -> Result<Option<Table>, BagError> {
        let schema = Table {
            root: 1,
            columns: Vec::new(),
        };
        let mut seen = 0;
        let mut bytes = 0u64;
        for leaf in self.leaves(&schema)?.pages {
            let page = self.page(leaf)?;
            for row in self.rows(leaf, &page)? {
                seen += 1;
                bytes = bytes.saturating_add(row.bytes);
                if seen > SCHEMA_ROWS_MAX || bytes > SCHEMA_BYTES_MAX {
                    return Err(self.damaged(leaf, "it has too many tables"));
                }
                let record = self.record(leaf, &page, &row)?;
                let values = self.values_of(leaf, &record, 5)?;
                let text = |at: usize| values.get(at).and_then(Value::text);
                let root = values.get(3).and_then(Value::integer);
                if text(0) == Some("table")
                    && text(1) == Some(name)
                    && let (Some(sql), Some(root)) = (text(4), root)
                    && let Ok(root) = u32::try_from(root)
                {
                    let columns = column_names(sql);
                    return Ok(Some(Table { root, columns }));
                }
            }
        }
        Ok(None)
    }

    /// Leaf pages of a table, in the order of rows. Damaged parts are skipped and noted.
    ///
    /// # Errors
    /// The table's root page cannot be read.
    pub(crate) fn leaves(&mut self, table: &Table) -> Result<Leaves, BagError> {
        let mut found = Leaves::default();
        // The next page is the last element.
        let mut waiting = vec![(table.root, 0)];
        let mut visited = BTreeSet::new();
        while let Some((number, depth)) = waiting.pop() {
            if !visited.insert(number) {
                found.note(&self.damaged(number, "its pages form a loop"));
                continue;
            }
            let children = match self.children(number) {
                Ok(Some(_)) if depth >= DEPTH_MAX => {
                    Err(self.damaged(number, "a table with too many levels"))
                }
                other => other,
            };
            match children {
                Ok(None) => found.pages.push(number),
                Ok(Some(children)) => {
                    let next = children.into_iter().rev();
                    waiting.extend(next.map(|child| (child, depth + 1)));
                }
                Err(error) if depth == 0 => return Err(error),
                Err(error) => found.note(&error),
            }
        }
        Ok(found)
    }

    /// Child pages of an interior page; `None` for a leaf.
    fn children(&mut self, number: u32) -> Result<Option<Vec<u32>>, BagError> {
        let page = self.page(number)?;
        let start = page_start(number);
        match page.get(start) {
            Some(&LEAF_TABLE) => return Ok(None),
            Some(&INTERIOR_TABLE) => {}
            _ => return Err(self.damaged(number, "a page that is no part of a table")),
        }
        let mut children = Vec::new();
        let rightmost = be32(&page, start + 8);
        for cell in cells(&page, start, 12) {
            let child = cell.and_then(|at| be32(&page, at));
            children.push(child.ok_or_else(|| self.damaged(number, "a cell beyond its page"))?);
        }
        children.extend(rightmost);
        Ok(Some(children))
    }

    /// Rows of a leaf page.
    ///
    /// # Errors
    /// The page is damaged.
    pub(crate) fn rows(&self, number: u32, page: &[u8]) -> Result<Vec<Row>, BagError> {
        let start = page_start(number);
        if page.get(start) != Some(&LEAF_TABLE) {
            return Err(self.damaged(number, "a page without rows where rows belong"));
        }
        let mut rows = Vec::new();
        for cell in cells(page, start, 8) {
            let row = cell
                .ok_or("a cell beyond its page".to_owned())
                .and_then(|at| self.row(page, at));
            rows.push(row.map_err(|problem| self.damaged(number, &problem))?);
        }
        Ok(rows)
    }

    fn row(&self, page: &[u8], mut at: usize) -> Result<Row, String> {
        let bytes = varint(page, &mut at)?;
        let id = varint(page, &mut at)?.cast_signed();
        let whole = u64::from(self.page_count).saturating_mul(self.page_bytes as u64);
        if bytes > ROW_BYTES_MAX.min(whole) {
            return Err(format!(
                "a row of {bytes} bytes; at most {ROW_BYTES_MAX} are read, and no more than the file has"
            ));
        }
        let length = usize::try_from(bytes).map_err(|_| "a row that is too long")?;
        let usable = self.usable;
        let local = if length <= usable - 35 {
            length
        } else {
            let least = (usable - 12) * 32 / 255 - 23;
            let wanted = least + (length - least) % (usable - 4);
            if wanted <= usable - 35 { wanted } else { least }
        };
        let end = at + local;
        if end > page.len() {
            return Err("a row beyond its page".to_owned());
        }
        let overflow = if local < length {
            be32(page, end).ok_or("a row beyond its page")?
        } else {
            0
        };
        Ok(Row {
            id,
            bytes,
            local: at..end,
            overflow,
        })
    }

    /// Content of a page, for [`rows`](Self::rows) and [`record`](Self::record).
    ///
    /// # Errors
    /// The page is outside the file.
    pub(crate) fn leaf(&mut self, number: u32) -> Result<Vec<u8>, BagError> {
        self.page(number)
    }

    /// Reads a row's whole record.
    ///
    /// # Errors
    /// Its overflow pages are damaged.
    pub(crate) fn record(
        &mut self,
        number: u32,
        page: &[u8],
        row: &Row,
    ) -> Result<Vec<u8>, BagError> {
        let mut record = Vec::new();
        self.append_record(number, page, row, &mut record)?;
        Ok(record)
    }

    /// Appends a row's whole record to `out`.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) fn append_record(
        &mut self,
        number: u32,
        page: &[u8],
        row: &Row,
        out: &mut Vec<u8>,
    ) -> Result<(), BagError> {
        out.extend(page.get(row.local.clone()).unwrap_or_default());
        let length = usize::try_from(row.bytes).unwrap_or(usize::MAX);
        let mut left = length.saturating_sub(row.local.len());
        let mut next = row.overflow;
        // Each iteration takes bytes of the row, so a cycle of pages ends with the row.
        while left > 0 {
            if next == 0 {
                return Err(self.damaged(number, "a row that ends before its length"));
            }
            let overflow = self.page(next)?;
            let data = overflow.get(4..self.usable).unwrap_or_default();
            let taken = left.min(data.len());
            out.extend(data.get(..taken).unwrap_or_default());
            left -= taken;
            next = be32(&overflow, 0).unwrap_or(0);
        }
        Ok(())
    }

    /// The part of a record on its page, which suffices for columns before a blob.
    pub(crate) fn local<'a>(&self, page: &'a [u8], row: &Row) -> &'a [u8] {
        page.get(row.local.clone()).unwrap_or_default()
    }

    /// Parses the first columns of a record.
    ///
    /// # Errors
    /// The record is damaged.
    pub(crate) fn values_of(
        &self,
        number: u32,
        record: &[u8],
        columns: usize,
    ) -> Result<Vec<Value>, BagError> {
        values(record, columns, self.encoding).map_err(|problem| self.damaged(number, &problem))
    }
}

/// Leaf pages of a table.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    pub pages: Vec<u32>,
    /// One sentence per skipped page.
    pub problems: Vec<String>,
}

impl Leaves {
    fn note(&mut self, error: &BagError) {
        if self.problems.len() < source::PROBLEMS_MAX {
            self.problems.push(error.to_string());
        }
    }
}

/// Offset of a page's own head. The first page has the file's head before it.
fn page_start(number: u32) -> usize {
    if number == 1 { HEAD_BYTES } else { 0 }
}

/// Offsets of the cells of a page; `None` for a cell outside it.
fn cells(page: &[u8], start: usize, head_bytes: usize) -> impl Iterator<Item = Option<usize>> {
    let word = move |at: usize| {
        let bytes = page.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes(bytes.try_into().ok()?)))
    };
    let count = word(start + 3).unwrap_or(0);
    (0..count).map(move |at| word(start + head_bytes + 2 * at).filter(|at| *at < page.len()))
}

/// Column names of a `CREATE TABLE` statement.
fn column_names(sql: &str) -> Vec<String> {
    let body = sql.split_once('(').map_or("", |(_, rest)| rest);
    let body = body.rsplit_once(')').map_or(body, |(inner, _)| inner);
    let mut depth = 0u32;
    let parts = body.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let first_words = parts.filter_map(|part| part.split_whitespace().next());
    let names = first_words.map(|word| word.trim_matches(['"', '`', '[', ']', '\'']).to_owned());
    names
        .take_while(|name| {
            let is_constraint = ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"];
            !is_constraint.contains(&name.to_ascii_uppercase().as_str())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    /// SQLite's checksum over little-endian words, continued from `sums`.
    fn checksum(sums: &mut [u32; 2], bytes: &[u8]) -> [u8; 8] {
        for (at, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
            let other = sums[(at + 1) % 2];
            let sum = &mut sums[at % 2];
            *sum = sum
                .wrapping_add(u32::from_le_bytes(*word))
                .wrapping_add(other);
        }
        let mut out = [0; 8];
        out[..4].copy_from_slice(&sums[0].to_be_bytes());
        out[4..].copy_from_slice(&sums[1].to_be_bytes());
        out
    }

    #[test]
    fn a_log_announces_no_more_pages_than_there_are() {
        let mut file = vec![0; 1024];
        file[..16].copy_from_slice(MAGIC);
        file[16] = 2;
        let mut sums = [0; 2];
        let mut log = Vec::new();
        for word in [0x377f_0682u32, 3_007_000, 512, 0, 1, 2] {
            log.extend(word.to_be_bytes());
        }
        let sum = checksum(&mut sums, &log);
        log.extend(sum);
        let mut frame = Vec::new();
        for word in [2u32, u32::MAX] {
            frame.extend(word.to_be_bytes());
        }
        checksum(&mut sums, &frame);
        let sum = checksum(&mut sums, &[7; 512]);
        frame.extend(&log[16..24]);
        frame.extend(sum);
        frame.extend([7; 512]);
        log.extend(frame);
        let folder = Folder::new("log");
        let path = folder.write("x.db3-wal", &log);
        let source = Box::new(std::io::Cursor::new(file));
        let opened = Database::open(source, 1024, "x.db3".as_ref(), Some(path));
        let mut database = opened.unwrap();
        assert_eq!(database.page(2).unwrap(), [7; 512], "the log is in use");
        assert_eq!(database.page_count, 3);
    }

    #[test]
    fn columns_are_found_in_the_statement() {
        let sql = "CREATE TABLE topics(id INTEGER PRIMARY KEY,\"name\" TEXT NOT NULL, n NUMERIC(3, 1) DEFAULT (1), PRIMARY KEY (id, name))";
        assert_eq!(column_names(sql), ["id", "name", "n"]);
        assert_eq!(column_names("nonsense"), [""; 0]);
    }
}
