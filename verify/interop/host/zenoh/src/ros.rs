//! Keys, liveliness tokens and bytes as those of rmw_zenoh_cpp. Plain Zenoh then carries
//! the same as a ROS 2 node. That is a std_msgs/UInt8MultiArray in CDR with an attachment
//! of 33 bytes.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use zenoh::Config;

/// CDR header, an empty layout and the length of the data.
pub const PREFIX_BYTES: usize = 16;

const TYPE: &str = "std_msgs::msg::dds_::UInt8MultiArray_";
const HASH: &str = "RIHS01_5687e861b8d307a5e48b7515467ae7a5fc2daf805bd0ce6d8e9e604bade9f385";

/// Settings of the sessions of rmw_zenoh_cpp, except the endpoints. Sessions find each
/// other by multicast on loopback here, so that no router takes part.
const SETTINGS: &[(&str, &str)] = &[
    ("mode", "\"peer\""),
    ("listen/endpoints", "[\"tcp/127.0.0.1:0\"]"),
    ("scouting/multicast/interface", "\"lo\""),
    ("timestamping/enabled", "true"),
    ("transport/shared_memory/enabled", "false"),
];

/// Whether HOST_ROS=on.
pub fn is_wanted() -> bool {
    std::env::var("HOST_ROS").is_ok_and(|wish| wish == "on")
}

/// The configuration, with `key=value;key=value` of ZENOH_CONFIG_OVERRIDE in it.
pub fn config() -> Result<Config, String> {
    let mut config = Config::default();
    let mut set = |key: &str, value: &str| {
        let set = config.insert_json5(key, value);
        set.map_err(|error| format!("{key}={value}: {error}"))
    };
    for (key, value) in SETTINGS {
        set(key, value)?;
    }
    let overrides = std::env::var("ZENOH_CONFIG_OVERRIDE").unwrap_or_default();
    for (key, value) in overrides.split(';').filter_map(|pair| pair.split_once('=')) {
        set(key.trim(), value.trim())?;
    }
    Ok(config)
}

/// The key of a topic.
pub fn key(topic: &str) -> String {
    format!("0/{topic}/{TYPE}/{HASH}")
}

/// The token of a `reader` or a `writer` of a topic. `who` is a session or `*`.
pub fn token(topic: &str, end: &str, who: &str) -> String {
    let kind = if end == "reader" { "MS" } else { "MP" };
    let topic = topic.replace('/', "%");
    format!("@ros2_lv/0/{who}/0/1/{kind}/%/%/host_peer/%{topic}/{TYPE}/{HASH}/::,10:,:,:,,")
}

/// A message with `size` bytes of data.
pub fn message(size: usize) -> Vec<u8> {
    let mut message = vec![0, 1, 0, 0];
    message.extend([0; 8]);
    message.extend((size as u32).to_le_bytes());
    message.extend((0..size).map(|i| (i * 31) as u8));
    message
}

/// The attachments of one publisher.
#[derive(Default)]
pub struct Writer {
    sequence: AtomicI64,
}

impl Writer {
    /// The attachment of the next message.
    pub fn attachment(&self) -> [u8; 33] {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_nanos() as i64);
        let mut bytes = [7; 33];
        bytes[..8].copy_from_slice(&sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&now.to_le_bytes());
        bytes[16] = 16;
        bytes
    }
}
