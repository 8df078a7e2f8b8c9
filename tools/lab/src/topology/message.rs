//! Metadata of a message: timestamp, number, size and frequency, from the
//! framework's header or from RTPS.

use std::time::UNIX_EPOCH;

use pteros::Sample;
use pteros::msg::cdr::Representation;
use pteros::msg::dynamic::{DynamicMessage, Value};

use super::clock::RunClock;
use super::tracker::TopicLoad;

/// Metadata of a message.
pub(super) struct StampInfo {
    pub(super) publisher: u128,
    pub(super) number: u64,
    pub(super) sent_ns: i64,
    pub(super) load: TopicLoad,
}

pub(super) fn header(message: &DynamicMessage) -> Option<&DynamicMessage> {
    message.field("header")?.as_message()
}

pub(super) fn stamp_from_header(sample: &Sample<DynamicMessage>) -> Option<StampInfo> {
    let header = header(sample)?;
    let count = |name: &str| u64::try_from(header.field(name)?.as_integer()?).ok();
    let stamp = header.field("stamp")?.as_message()?;
    let part = |name: &str| i64::try_from(stamp.field(name)?.as_integer()?).ok();
    Some(StampInfo {
        publisher: gid(sample),
        number: count("tracking_number")?,
        sent_ns: part("sec")? * 1_000_000_000 + part("nanosec")?,
        load: TopicLoad {
            bytes: count("size")?,
            frequency: header.field("frequency")?.as_f64()?,
        },
    })
}

pub(super) fn stamp_from_wire(
    sample: &Sample<DynamicMessage>,
    frequency: f64,
) -> Option<StampInfo> {
    let info = sample.info();
    let since = info.source_timestamp?.duration_since(UNIX_EPOCH).ok()?;
    Some(StampInfo {
        publisher: gid(sample),
        number: u64::try_from(info.sequence - 1).ok()?,
        sent_ns: i64::try_from(since.as_nanos()).ok()?,
        load: TopicLoad {
            bytes: payload_bytes(sample),
            frequency,
        },
    })
}

fn gid(sample: &Sample<DynamicMessage>) -> u128 {
    u128::from_be_bytes(sample.info().publisher_gid.to_bytes())
}

/// Bytes of `data`, as the framework counts them. Without it the whole message.
pub(super) fn payload_bytes(message: &DynamicMessage) -> u64 {
    let size = match message.field("data") {
        Some(Value::Bytes(bytes)) => bytes.len(),
        Some(Value::I32s(list)) => list.len() * 4,
        Some(Value::F32s(list)) => list.len() * 4,
        Some(Value::I64s(list)) => list.len() * 8,
        _ => message.payload_bytes(Representation::Xcdr1),
    };
    size as u64
}

/// Fills in the framework's header, with the timestamp last.
pub(super) fn stamp(message: &mut DynamicMessage, clock: RunClock, number: u64, load: TopicLoad) {
    let mut set = |path: &str, value: Value| {
        let done = message.set(path, value);
        debug_assert!(done.is_ok(), "{path}: {done:?}");
    };
    set("header.tracking_number", Value::U32(number as u32));
    set("header.frequency", Value::F32(load.frequency as f32));
    set(
        "header.size",
        Value::U32(u32::try_from(load.bytes).unwrap_or(u32::MAX)),
    );
    let now = clock.now_ns();
    set("header.stamp.sec", Value::I32((now / 1_000_000_000) as i32));
    set(
        "header.stamp.nanosec",
        Value::U32((now % 1_000_000_000) as u32),
    );
}
