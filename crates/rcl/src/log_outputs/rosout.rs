//! `/rosout`: publishes log messages as `rcl_interfaces/msg/Log`.
//!
//! One writer per process, created with the first message and listed as an endpoint
//! of every node that logs; ROS 2 has one writer per node. Nodes of rclpy list it from
//! their start, since programs wait for it. QoS as in rcl: reliable,
//! transient local, keep last 1000, lifespan 10 s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pteros_interfaces::rcl_interfaces::msg::Log;
use pteros_msg::cdr::Representation;
use pteros_runtime::Core;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::platform::Instant;
use pteros_runtime::writer::WriterEndpoint;

use super::record::LogRecord;
use crate::log::Severity;
use crate::message_type_info::{MessageTypeInfo, endpoint_spec};
use crate::outbound_message::SharedMessage;
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use pteros_runtime::qos::QosProfile;

/// Rate limit per process; messages beyond it are counted and reported.
const MESSAGES_PER_SECOND: u32 = 1_000;
const SECOND: u64 = 1_000_000_000;

/// The node whose logger publishes a message.
pub struct RosoutNode<'n> {
    /// The runtime of its context.
    pub core: &'n Arc<Core>,
    /// Its key in the graph.
    pub key: NodeKey,
    /// The graph lists the node as an owner of the publisher.
    pub is_listed: &'n AtomicBool,
}

#[derive(Default)]
pub(super) struct RosoutPublisher {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    writer: Option<Arc<WriterEndpoint>>,
    /// Creating the writer failed; reported once.
    failed: bool,
    /// Start of the second that is counted.
    window_start: Instant,
    window_count: u32,
    dropped: u64,
}

impl RosoutPublisher {
    /// Creates the publisher and lists it as one of the node, before the first message.
    pub(super) fn announce(&self, node: &RosoutNode<'_>) {
        self.state.lock().writer(node);
    }

    pub(super) fn publish(&self, node: &RosoutNode<'_>, record: &LogRecord<'_>) {
        let mut state = self.state.lock();
        let Some(writer) = state.writer(node) else {
            return;
        };
        let now = node.core.platform.now();
        if now.as_nanos().saturating_sub(state.window_start.as_nanos()) >= SECOND {
            (state.window_start, state.window_count) = (now, 0);
        }
        if state.window_count >= MESSAGES_PER_SECOND {
            state.dropped += 1;
            return;
        }
        state.window_count += 1;
        let dropped = std::mem::take(&mut state.dropped);
        drop(state);
        if dropped > 0 {
            let message = format!(
                "{dropped} messages of this process are not on /rosout: its rate limit is {MESSAGES_PER_SECOND} per second; log less, or use the throttled macros"
            );
            let warning = LogRecord {
                severity: Severity::Warn,
                message: &message,
                ..*record
            };
            send(node, &writer, &warning);
        }
        send(node, &writer, record);
    }
}

impl State {
    fn writer(&mut self, node: &RosoutNode<'_>) -> Option<Arc<WriterEndpoint>> {
        if self.writer.is_none() && !self.failed {
            let qos = QosProfile::rosout();
            let created = endpoint_spec("/rosout", MessageTypeInfo::of::<Log>(&()), &qos, |q| {
                q.to_endpoint()
            })
            .map_err(|error| error.to_string())
            .and_then(|spec| {
                let created = node.core.create_writer(spec);
                created.map_err(|error| error.to_string())
            });
            match created {
                Ok(created) => self.writer = Some(created),
                Err(error) => {
                    self.failed = true;
                    tracing::warn!("no publisher on /rosout: {error}");
                }
            }
        }
        let writer = self.writer.clone()?;
        if !node.is_listed.swap(true, Ordering::Relaxed) {
            node.core
                .discovery()
                .attach_endpoint(node.key, &writer.data);
        }
        Some(writer)
    }
}

fn send(node: &RosoutNode<'_>, writer: &WriterEndpoint, record: &LogRecord<'_>) {
    let memory = PayloadMemory::default();
    let mut message = SharedMessage {
        message: Arc::new(Log {
            stamp: record.time.into(),
            level: record.severity as u8,
            name: record.name.into(),
            msg: record.message.into(),
            file: record.file.into(),
            function: record.function.into(),
            line: record.line,
        }),
        payload: Payload::new(&memory, Representation::Xcdr1),
    };
    let core = node.core;
    if let Err(error) = core.publish(writer, &mut message, core.platform.wall_clock()) {
        tracing::debug!("/rosout: {error}");
    }
}
