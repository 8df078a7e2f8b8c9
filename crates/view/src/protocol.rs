//! Foxglove WebSocket protocol: the texts and frames of the server (`foxglove.sdk.v1`,
//! formerly `foxglove.websocket.v1`). Binary frames are little endian.

use bytes::Bytes;
use serde_json::{Value, json};
use tungstenite::Message;

use crate::channel::Channel;

/// Names of the subprotocol, which mean the same. Newer viewers offer the first one.
pub const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
/// Encoding of messages, and of their definitions.
pub const CDR: &str = "cdr";
pub const JSON: &str = "json";
pub const ROS2_MSG: &str = "ros2msg";
/// First bytes of the server's binary frames.
const DATA: u8 = 1;
const TIME: u8 = 2;
const SERVICE_RESPONSE: u8 = 3;
const ASSET: u8 = 4;
/// Channels in one message, so that a large graph is no single large text.
const CHANNELS_PER_MESSAGE: usize = 64;

/// Severity of a status.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    Warning = 1,
    Error = 2,
}

/// A JSON text.
pub fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}

/// A remark to the user. One with an id replaces the former one of that id.
pub fn status(level: Level, id: Option<&str>, message: &str) -> Message {
    let mut value = json!({ "op": "status", "level": level as u8, "message": message });
    if let Some(id) = id {
        value["id"] = json!(id);
    }
    text(&value)
}

/// Announces channels.
pub fn advertise<'a>(channels: impl Iterator<Item = &'a Channel>) -> Vec<Message> {
    let all: Vec<Value> = channels.map(channel_value).collect();
    let parts = all.chunks(CHANNELS_PER_MESSAGE);
    parts
        .map(|channels| text(&json!({ "op": "advertise", "channels": channels })))
        .collect()
}

fn channel_value(channel: &Channel) -> Value {
    json!({
        "id": channel.id,
        "topic": channel.topic,
        "encoding": CDR,
        "schemaName": channel.type_name,
        "schema": channel.schema,
        "schemaEncoding": ROS2_MSG,
    })
}

/// Withdraws channels.
pub fn unadvertise(ids: &[u32]) -> Message {
    text(&json!({ "op": "unadvertise", "channelIds": ids }))
}

/// A message of a subscription, copied once into the frame.
pub fn data_frame(subscription: u32, log_time: u64, payload: &Bytes) -> Message {
    let mut frame = Vec::with_capacity(13 + payload.len());
    frame.push(DATA);
    frame.extend_from_slice(&subscription.to_le_bytes());
    frame.extend_from_slice(&log_time.to_le_bytes());
    frame.extend_from_slice(payload);
    Message::binary(frame)
}

/// The graph's time, under simulated time.
pub fn time_frame(nanoseconds: u64) -> Message {
    let mut frame = vec![TIME];
    frame.extend_from_slice(&nanoseconds.to_le_bytes());
    Message::binary(frame)
}

/// A service's response.
pub fn service_response_frame(service: u32, call: u32, encoding: &str, payload: &[u8]) -> Message {
    let mut frame = vec![SERVICE_RESPONSE];
    frame.extend_from_slice(&service.to_le_bytes());
    frame.extend_from_slice(&call.to_le_bytes());
    push_text(&mut frame, encoding);
    frame.extend_from_slice(payload);
    Message::binary(frame)
}

/// A service's failure.
pub fn service_failure(service: u32, call: u32, message: &str) -> Message {
    text(&json!({
        "op": "serviceCallFailure", "serviceId": service, "callId": call, "message": message,
    }))
}

/// A file, or why there is none.
pub fn asset_frame(request: u32, content: Result<&[u8], &str>) -> Message {
    let mut frame = vec![ASSET];
    frame.extend_from_slice(&request.to_le_bytes());
    frame.push(u8::from(content.is_err()));
    push_text(&mut frame, content.err().unwrap_or_default());
    frame.extend_from_slice(content.unwrap_or_default());
    Message::binary(frame)
}

fn push_text(frame: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(text.as_bytes());
}

/// A number of 32 bits.
pub fn id(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

/// A binary frame of a viewer.
#[derive(Debug, PartialEq)]
pub enum ClientFrame {
    /// A message of a channel that the viewer advertised.
    Message { channel: u32, payload: Bytes },
    /// A request to a service.
    Call {
        service: u32,
        call: u32,
        encoding: String,
        payload: Bytes,
    },
}

/// Parses a binary frame; `None` if it is malformed or of another kind.
pub fn parse_client_frame(frame: &Bytes) -> Option<ClientFrame> {
    let number = |at: usize| {
        let bytes = frame.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    match frame.first()? {
        1 => Some(ClientFrame::Message {
            channel: number(1)?,
            payload: frame.slice(5..),
        }),
        2 => {
            let length = usize::try_from(number(9)?).ok()?;
            let end = length.checked_add(13)?;
            let encoding = std::str::from_utf8(frame.get(13..end)?).ok()?;
            Some(ClientFrame::Call {
                service: number(1)?,
                call: number(5)?,
                encoding: encoding.to_owned(),
                payload: frame.slice(end..),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_documented_bytes() {
        let payload = Bytes::from_static(&[0, 1, 0, 0, 42]);
        let frame = data_frame(7, 0x0102, &payload).into_data();
        assert_eq!(
            &frame[..],
            [1, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 42]
        );
        let frame = service_response_frame(1, 2, CDR, &[9]).into_data();
        assert_eq!(
            &frame[..],
            [3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, b'c', b'd', b'r', 9]
        );
        let frame = asset_frame(5, Err("no")).into_data();
        assert_eq!(&frame[..], [4, 5, 0, 0, 0, 1, 2, 0, 0, 0, b'n', b'o']);
    }

    #[test]
    fn malformed_client_frames_are_none() {
        let parse = |bytes: &[u8]| parse_client_frame(&Bytes::copy_from_slice(bytes));
        for bytes in [
            &[][..],
            &[9],
            &[1, 0, 0],
            &[2, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255],
        ] {
            assert_eq!(parse(bytes), None);
        }
        let call = [2, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, b'c', b'd', b'r', 7];
        assert_eq!(
            parse(&call),
            Some(ClientFrame::Call {
                service: 1,
                call: 2,
                encoding: "cdr".into(),
                payload: Bytes::from_static(&[7])
            })
        );
    }
}
