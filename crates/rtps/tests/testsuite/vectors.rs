//! Captured datagrams of real ROS 2 graphs; tests/vectors/README.md has format and provenance.

use std::path::PathBuf;

/// One datagram as it was captured.
pub struct Captured {
    /// Microseconds since the first datagram of the scenario.
    pub micros: u32,
    /// Sender: IPv4 address and UDP port.
    pub from: ([u8; 4], u16),
    /// The RTPS message.
    pub message: Vec<u8>,
}

/// Every scenario, by file name.
pub const SCENARIOS: [&str; 18] = [
    "cyclone-action",
    "cyclone-chatter",
    "cyclone-large",
    "cyclone-latched",
    "cyclone-param",
    "cyclone-secure-chatter",
    "cyclone-service",
    "fastdds-action",
    "fastdds-chatter",
    "fastdds-large",
    "fastdds-latched",
    "fastdds-param",
    "fastdds-secure-chatter",
    "fastdds-service",
    "humble-cyclone-chatter",
    "humble-cyclone-service",
    "humble-fastdds-chatter",
    "humble-fastdds-service",
];

/// All datagrams of a scenario in their order.
pub fn load(scenario: &str) -> Vec<Captured> {
    let path = folder().join(format!("{scenario}.rtps"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut rest = bytes
        .strip_prefix(b"RTPSVEC1")
        .expect("the file begins with RTPSVEC1");
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_at(20);
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let address = |at: usize| <[u8; 4]>::try_from(&head[at..at + 4]).unwrap();
        let port = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let (message, after) = after.split_at(number(0) as usize);
        found.push(Captured {
            micros: number(4),
            from: (address(8), port(16)),
            message: message.to_vec(),
        });
        rest = after;
    }
    found
}

/// Where the files are.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}
