//! Files of bags in every format that is read. The first bytes are the format's own, so
//! that the fuzzer spends no time on finding them.
//!
//! The library reads chunks up to 512 MiB, so these targets have a larger limit for one
//! allocation than the others (`tools/xtask/src/fuzz.rs`).

use pteros_bag::{BagReader, MessageFilter, MessageOrder};

/// Messages that are read of one input.
const MESSAGES_MAX: usize = 10_000;

/// The first bytes of an MCAP file.
pub const MCAP: &[u8] = b"\x89MCAP0\r\n";
/// The first bytes of an SQLite database.
pub const SQLITE: &[u8] = b"SQLite format 3\0";
/// The first bytes of a bag of ROS 1.
pub const ROS1: &[u8] = b"#ROSBAG V2.0\n";

/// Reads everything of a file that has `mark` as its first bytes.
pub fn read(mark: &[u8], data: &[u8]) {
    let rest = data.strip_prefix(mark).unwrap_or(data);
    let content = [mark, rest].concat();
    let Ok(mut reader) = BagReader::from_bytes(content) else {
        return;
    };
    let topics = reader.topics().len();
    for message in reader.messages(MessageFilter::default()).take(MESSAGES_MAX) {
        assert!(message.topic < topics, "a message of an unknown topic");
    }
    let described = reader.describe();
    assert_eq!(described.topics.len(), topics);
    let _ = reader.accounts();
    let _ = reader.span_by(MessageOrder::Sent);
}
