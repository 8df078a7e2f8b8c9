//! MCAP's public conformance files: every combination of the format's optional records.
//!
//! The files are made here, from the facts of the format: each input with each valid set of
//! features. Their hashes are those that the MCAP project publishes, so the files are its
//! files.

use std::fmt::Write as _;

use super::{BagReader, all};

/// SHA-256 over a line with name and SHA-256 of each file, in the order of names: those of
/// github.com/foxglove/mcap, `tests/conformance/data`, at 95d067356.
const PUBLISHED: &str = "eabcfbf8e6525dd4022cb979a3d1793443a31f427cc163be4ddb98e295cd8d01";
const MAGIC: &[u8] = b"\x89MCAP0\r\n";
/// The features, by the words in the files' names.
const FEATURES: [&str; 10] = [
    "ax", "ch", "chx", "mdx", "mx", "pad", "rch", "rsh", "st", "sum",
];

/// The content of a file.
#[derive(Clone, Copy)]
struct Input {
    name: &'static str,
    has_schema: bool,
    has_attachment: bool,
    has_metadata: bool,
    /// Log time, publish time and sequence number.
    messages: &'static [(u64, u64, u32)],
}

const NOTHING: Input = Input {
    name: "NoData",
    has_schema: false,
    has_attachment: false,
    has_metadata: false,
    messages: &[],
};

const INPUTS: [Input; 6] = [
    NOTHING,
    Input {
        name: "OneAttachment",
        has_attachment: true,
        ..NOTHING
    },
    Input {
        name: "OneMessage",
        has_schema: true,
        messages: &[(2, 1, 10)],
        ..NOTHING
    },
    Input {
        name: "OneMetadata",
        has_metadata: true,
        ..NOTHING
    },
    Input {
        name: "OneSchemalessMessage",
        messages: &[(2, 1, 10)],
        ..NOTHING
    },
    Input {
        name: "TenMessages",
        has_schema: true,
        messages: &[
            (0, 0, 0),
            (2, 2, 1),
            (1, 1, 2),
            (3, 3, 3),
            (3, 3, 4),
            (5, 5, 5),
            (4, 4, 6),
            (7, 7, 7),
            (8, 8, 8),
            (9, 9, 9),
        ],
        ..NOTHING
    },
];

impl Input {
    fn has_channel(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Whether a set of features makes sense for it.
    fn takes(&self, features: &[&str]) -> bool {
        let has = |feature: &str| features.contains(&feature);
        let any = |wanted: &[&str]| wanted.iter().any(|feature| has(feature));
        !(has("ax") && !self.has_attachment
            || has("mdx") && !self.has_metadata
            || has("rsh") && !self.has_schema
            || any(&["rch", "ch", "chx", "mx"]) && !self.has_channel()
            || any(&["chx", "mx"]) && !has("ch")
            || has("sum") && !any(&["chx", "rsh", "rch", "mdx", "ax", "st"]))
    }

    fn schema(&self) -> Vec<u8> {
        Content::default()
            .u16(1)
            .text("Example")
            .text("c")
            .bytes(&[4, 5, 6])
            .0
    }

    fn channel(&self) -> Vec<u8> {
        let head = Content::default().u16(1);
        if self.has_schema {
            let fields = head.u16(1).text("example").text("a");
            fields.bytes(&pair("foo", "bar")).0
        } else {
            head.u16(0).text("example").text("text").bytes(&[]).0
        }
    }

    /// Schema, channel and messages, with the log time and the place of each message.
    fn data(&self, is_padded: bool) -> (Vec<u8>, Vec<(u64, u64)>) {
        let mut out = Vec::new();
        let mut places = Vec::new();
        if self.has_schema {
            record(&mut out, 3, self.schema(), is_padded);
        }
        if self.has_channel() {
            record(&mut out, 4, self.channel(), is_padded);
        }
        for (log, publish, sequence) in self.messages {
            places.push((*log, out.len() as u64));
            let head = Content::default().u16(1).u32(*sequence);
            let content = head.u64(*log).u64(*publish).raw(&[1, 2, 3]).0;
            record(&mut out, 5, content, false);
        }
        (out, places)
    }

    /// The first and the last log time.
    fn span(&self) -> (u64, u64) {
        let times = self.messages.iter().map(|(log, ..)| *log);
        (times.clone().min().unwrap_or(0), times.max().unwrap_or(0))
    }

    /// The file with a set of features.
    fn file(&self, features: &[&str]) -> Vec<u8> {
        let has = |feature: &str| features.contains(&feature);
        let is_padded = has("pad");
        let (first, last) = self.span();
        let mut out = MAGIC.to_vec();
        record(&mut out, 1, vec![0; 8], is_padded);
        // Opcode and content of the records in the summary.
        let mut summary: Vec<(u8, Vec<u8>)> = Vec::new();
        if has("rsh") {
            summary.push((3, self.schema()));
        }
        if has("rch") {
            summary.push((4, self.channel()));
        }
        if has("st") {
            let counts = [self.has_attachment, self.has_metadata, has("ch")];
            let count = self.messages.len() as u64;
            let mut content = Content::default()
                .u64(count)
                .u16(self.has_schema.into())
                .u32(self.has_channel().into());
            for count in counts {
                content = content.u32(count.into());
            }
            let by_channel = Content::default().u16(1).u64(count).0;
            let by_channel = if count > 0 { by_channel } else { Vec::new() };
            let content = content.u64(first).u64(last).bytes(&by_channel).0;
            summary.push((11, content));
        }
        if self.has_attachment {
            let fields = Content::default().u64(2).u64(1);
            let fields = fields.text("myFile").text("application/octet-stream");
            let fields = fields.u64(3).raw(&[1, 2, 3]);
            let crc = crc32fast::hash(&fields.0);
            let at = out.len() as u64;
            record(&mut out, 9, fields.u32(crc).0, is_padded);
            if has("ax") {
                let index = Content::default().u64(at).u64(out.len() as u64 - at);
                let index = index.u64(2).u64(1).u64(3).text("myFile");
                summary.push((10, index.text("application/octet-stream").0));
            }
        }
        if self.has_metadata {
            let fields = Content::default().text("myMetadata");
            let at = out.len() as u64;
            let fields = fields.bytes(&pair("foo", "bar"));
            record(&mut out, 12, fields.0, is_padded);
            if has("mdx") {
                let index = Content::default().u64(at).u64(out.len() as u64 - at);
                summary.push((13, index.text("myMetadata").0));
            }
        }
        let (data, places) = self.data(is_padded && !has("ch"));
        if has("ch") {
            let size = data.len() as u64;
            let at = out.len() as u64;
            let head = Content::default().u64(first).u64(last).u64(size);
            let head = head.u32(crc32fast::hash(&data)).text("").u64(size);
            record(&mut out, 6, head.raw(&data).0, false);
            let end = out.len() as u64;
            let mut indexes = Vec::new();
            if has("mx") {
                indexes = Content::default().u16(1).u64(end).0;
                let mut entries = Content::default();
                for (time, place) in places {
                    entries = entries.u64(time).u64(place);
                }
                let content = Content::default().u16(1).bytes(&entries.0).0;
                record(&mut out, 7, content, is_padded);
            }
            if has("chx") {
                let index = Content::default()
                    .u64(first)
                    .u64(last)
                    .u64(at)
                    .u64(end - at);
                let index = index.bytes(&indexes).u64(out.len() as u64 - end);
                summary.push((8, index.text("").u64(size).u64(size).0));
            }
        } else {
            out.extend(data);
        }
        let crc = crc32fast::hash(&out);
        record(&mut out, 15, Content::default().u32(crc).0, false);
        let start = out.len();
        let mut groups = Vec::new();
        for (op, content) in summary {
            let at = out.len() as u64;
            record(&mut out, op, content, is_padded);
            groups.push(Content(vec![op]).u64(at).u64(out.len() as u64 - at).0);
        }
        let end = out.len();
        if has("sum") {
            for group in groups {
                record(&mut out, 14, group, is_padded);
            }
        }
        let start_field = if end > start { start as u64 } else { 0 };
        let offsets = if has("sum") { end as u64 } else { 0 };
        out.push(2);
        out.extend(Content::default().u64(20).u64(start_field).u64(offsets).0);
        let crc = crc32fast::hash(&out[start..]);
        out.extend(crc.to_le_bytes());
        out.extend(MAGIC);
        out
    }
}

/// The fields of a record.
#[derive(Default)]
struct Content(Vec<u8>);

impl Content {
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(bytes.len() as u32).raw(bytes)
    }

    fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }
}

fn pair(key: &str, value: &str) -> Vec<u8> {
    Content::default().text(key).text(value).0
}

/// Appends a record; a padded one has three bytes that no reader knows.
fn record(out: &mut Vec<u8>, op: u8, content: Vec<u8>, is_padded: bool) {
    let padding: &[u8] = if is_padded { &[1, 0xff, 0xff] } else { &[] };
    out.push(op);
    out.extend((content.len() as u64 + padding.len() as u64).to_le_bytes());
    out.extend(content);
    out.extend(padding);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files, in the order of their names.
fn files() -> Vec<(String, Input, Vec<u8>)> {
    let mut files = Vec::new();
    for input in INPUTS {
        for set in 0..1u32 << FEATURES.len() {
            let numbered = (0..).zip(FEATURES);
            let chosen = numbered.filter(|(number, _)| set >> number & 1 == 1);
            let features: Vec<&str> = chosen.map(|(_, feature)| feature).collect();
            if input.takes(&features) {
                let mut name = input.name.to_owned();
                for feature in &features {
                    let _ = write!(name, "-{feature}");
                }
                files.push((name, input, input.file(&features)));
            }
        }
    }
    files.sort_by(|one, other| one.0.cmp(&other.0));
    files
}

#[test]
fn the_conformance_files_of_mcap_are_read() {
    let files = files();
    assert_eq!(files.len(), 416);
    let mut hashes = String::new();
    for (name, _, file) in &files {
        let hash = hex(&hmac_sha256::Hash::hash(file));
        let _ = writeln!(hashes, "{name} {hash}");
    }
    assert_eq!(hex(&hmac_sha256::Hash::hash(hashes.as_bytes())), PUBLISHED);
    for (name, input, file) in &files {
        let mut reader = BagReader::from_bytes(file.clone()).unwrap();
        assert_eq!(reader.problems(), [""; 0], "{name}");
        assert!(reader.is_complete(), "{name}");
        assert_eq!(
            reader.message_count(),
            input.messages.len() as u64,
            "{name}"
        );
        let span = input.has_channel().then(|| input.span());
        assert_eq!(reader.span(), span, "{name}");
        let mut expected = input.messages.to_vec();
        // Stable, as the reader's order is.
        expected.sort_by_key(|(log, ..)| *log);
        let read = all(&mut reader);
        assert_eq!(reader.problems(), [""; 0], "{name}");
        let times = read.iter().map(|m| (m.log_time, m.publish_time));
        let expected_times = expected.iter().map(|(log, publish, _)| (*log, *publish));
        assert!(times.eq(expected_times), "{name}");
        assert!(read.iter().all(|m| m.payload == [1, 2, 3][..]), "{name}");
        for topic in reader.topics() {
            let schema = if input.has_schema { "Example" } else { "" };
            let encoding = if input.has_schema { "a" } else { "text" };
            assert_eq!(topic.topic.name, "example", "{name}");
            assert_eq!(topic.topic.type_name, schema, "{name}");
            assert_eq!(topic.topic.serialization_format, encoding, "{name}");
        }
    }
}

/// Each of the largest files, cut at each byte: the messages that are whole, and a sentence.
#[test]
fn conformance_files_that_end_anywhere_are_read_up_to_there() {
    let files = files();
    let largest = files.iter().filter(|(name, ..)| {
        let tail = name.strip_prefix("TenMessages").unwrap_or_default();
        ["", "-pad-rch-rsh-st-sum", "-ch-chx-mx-rch-rsh-st-sum"].contains(&tail)
            && !name.starts_with("One")
            && !name.starts_with("No")
    });
    let mut count = 0;
    for (name, _, file) in largest {
        let whole = all(&mut BagReader::from_bytes(file.clone()).unwrap());
        for length in MAGIC.len()..file.len() {
            let mut reader = BagReader::from_bytes(file[..length].to_vec()).unwrap();
            assert!(!reader.problems().is_empty(), "{name} {length}");
            let read = all(&mut reader);
            assert_eq!(reader.message_count(), read.len() as u64, "{name} {length}");
            let are_known = read.iter().all(|message| whole.contains(message));
            assert!(are_known, "{name} {length}");
        }
        count += 1;
    }
    assert_eq!(count, 3);
}
