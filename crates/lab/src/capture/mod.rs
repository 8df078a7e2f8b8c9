//! Packets counted on a network device, and what RTPS they carry.
//!
//! `device` hears every IPv4 packet that a device receives, stamped by the kernel;
//! `frame` takes Ethernet, IPv4 (fragments put together again) and UDP apart; `count`
//! reads the RTPS submessages with our own decoder and keeps what came: by kind, users'
//! topics apart from discovery, and each message's first and last packet. `pcap` writes
//! what was heard as a file for other tools.
//!
//! On loopback each packet is received once, so it is counted once. Needs CAP_NET_RAW,
//! which a private network namespace gives.

mod count;
mod device;
mod frame;
mod pcap;

pub use count::{Counts, Kind, Message, Side, Tally};
pub use device::{Capture, Heard};
pub use frame::{Datagram, Reassembly, Taken};
pub use pcap::PcapWriter;
