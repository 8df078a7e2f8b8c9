//! Messages of scenarios: `string key`, `int32 x` and padding, with `key` as the
//! topic's key or without a key.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::Representation;
use pteros_msg::describe::type_id;
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_runtime::instance::{InstanceIdentity, InstanceState};
use pteros_runtime::sample::{QueuedSample, SampleBody, SharedValue};
use pteros_runtime::writer::OutboundMessage;

use crate::world::message_type::{instance_identity, message_type};

/// The message type of a topic.
pub fn ty(keyed: bool) -> DynamicType {
    let name = if keyed { "Keyed" } else { "Plain" };
    message_type(
        name,
        &[
            ("key", type_id::STRING, keyed),
            ("x", type_id::INT32, false),
            ("ballast", type_id::STRING, false),
        ],
    )
}

/// A message, as a value that local readers share.
#[derive(Clone)]
pub struct Sample {
    message: DynamicMessage,
    representation: Representation,
}

impl Sample {
    pub fn new(
        ty: &DynamicType,
        key: &str,
        x: i32,
        ballast: usize,
        representation: Representation,
    ) -> Self {
        let mut message = DynamicMessage::new(ty);
        let set = message
            .set("key", key)
            .and_then(|()| message.set("x", x))
            .and_then(|()| message.set("ballast", "b".repeat(ballast)));
        assert!(set.is_ok(), "a field of the scenarios' type: {set:?}");
        Self {
            message,
            representation,
        }
    }

    pub fn key(&self) -> InstanceIdentity {
        instance_identity(&self.message, self.representation)
    }
}

impl SharedValue for Sample {
    fn payload(&self, representation: Representation) -> Bytes {
        self.message.to_payload(representation).into()
    }

    fn size_bytes(&self) -> usize {
        self.message.to_payload(self.representation).len()
    }
}

impl OutboundMessage for Sample {
    fn message_type(&self) -> TypeId {
        TypeId::of::<Sample>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        Some(Arc::new(self.clone()))
    }

    fn serialized(&mut self) -> Bytes {
        self.message.to_payload(self.representation).into()
    }

    fn serialized_len(&mut self) -> usize {
        self.message.payload_bytes(self.representation)
    }
}

/// A taken sample in the notation of scenarios, and its traits.
pub fn sample_notation(
    ty: &DynamicType,
    item: &QueuedSample,
) -> Result<(String, Vec<String>), String> {
    let unreadable = |error| format!("the taken sample cannot be decoded: {error}");
    let message = match &item.body {
        SampleBody::Shared(shared) => match shared.downcast_ref::<Sample>() {
            Some(sample) => sample.message.clone(),
            None => return Err("a value of a foreign type was taken".into()),
        },
        SampleBody::Serialized(payload) if item.is_end() => {
            DynamicMessage::from_key_payload(ty, payload).map_err(unreadable)?
        }
        SampleBody::Serialized(payload) => {
            DynamicMessage::from_payload(ty, payload).map_err(unreadable)?
        }
    };
    let key = message.field("key").and_then(|key| key.as_str());
    let key = key.unwrap_or_default();
    let x = message.field("x").and_then(|x| x.as_integer()).unwrap_or(0);
    let Some(keyed) = item.instance.as_deref() else {
        return Ok((x.to_string(), Vec::new()));
    };
    let info = &keyed.info;
    let what = if item.is_end() {
        format!("{key}:{}", state(info.state))
    } else {
        format!("{key}={x}")
    };
    let view = match info.view {
        pteros_runtime::instance::ViewState::New => "new",
        pteros_runtime::instance::ViewState::NotNew => "old",
    };
    let generations = (info.disposed_generations, info.no_writers_generations);
    let traits = vec![
        view.into(),
        state(info.state).into(),
        format!("{}.{}", generations.0, generations.1),
    ];
    Ok((what, traits))
}

fn state(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Alive => "alive",
        InstanceState::Disposed => "disposed",
        InstanceState::NoWriters => "no_writers",
    }
}
