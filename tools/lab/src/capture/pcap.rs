//! Writer of pcap files for tcpdump, tshark and Wireshark: nanosecond timestamps
//! (magic 0xa1b23c4d), link type Ethernet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;
const FRAME_BYTES_MAX: u32 = 262_144;

/// A pcap file that is written.
#[derive(Debug)]
pub struct PcapWriter {
    file: BufWriter<File>,
}

impl PcapWriter {
    /// Creates or replaces a file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        let words = [
            MAGIC_NANOSECONDS,
            2 | 4 << 16,
            0,
            0,
            FRAME_BYTES_MAX,
            LINKTYPE_ETHERNET,
        ];
        for word in words {
            file.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { file })
    }

    /// Adds a frame of `length` bytes, received at `time_ns` since 1970.
    ///
    /// # Errors
    /// The disk is full.
    pub fn frame(&mut self, time_ns: i64, frame: &[u8], length: usize) -> io::Result<()> {
        let seconds = time_ns.div_euclid(1_000_000_000);
        let nanos = time_ns.rem_euclid(1_000_000_000);
        let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let words = [
            u32::try_from(seconds).unwrap_or(0),
            u32::try_from(nanos).unwrap_or(0),
            size(frame.len()),
            size(length),
        ];
        for word in words {
            self.file.write_all(&word.to_le_bytes())?;
        }
        self.file.write_all(frame)
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// The disk is full.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}
