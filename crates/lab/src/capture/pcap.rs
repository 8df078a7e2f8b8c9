//! Packets as a file that tcpdump, tshark and Wireshark read: pcap with nanoseconds
//! (magic 0xa1b23c4d), link type Ethernet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;
const FRAME_BYTES_MAX: u32 = 262_144;

/// Writes one file.
#[derive(Debug)]
pub struct PcapWriter {
    file: BufWriter<File>,
}

impl PcapWriter {
    /// Begins a file; one that is there is replaced.
    ///
    /// # Errors
    /// The system's.
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

    /// Adds a frame that was seen at `time_ns` since 1970, of `length` bytes.
    ///
    /// # Errors
    /// The system's, as a full disk.
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

    /// Hands everything to the system.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}
