//! Packet capture on a network device with RTPS statistics.
//!
//! `device` receives every IPv4 packet of a device with kernel timestamps. `frame`
//! decodes Ethernet, IPv4 with reassembly, and UDP. `count` decodes RTPS
//! submessages and counts them by kind and traffic class. `pcap` writes the packets
//! to a file for other tools.
//!
//! On loopback each packet is received once, so it counts once. Needs CAP_NET_RAW,
//! which a private network namespace grants.

mod count;
mod device;
mod frame;
mod pcap;

pub use count::{CapturedMessage, Counts, PacketTally, SubmessageKind, TrafficClass};
pub use device::{Capture, CaptureResult};
pub use frame::{Datagram, FrameOutcome, Reassembly};
pub use pcap::PcapWriter;
