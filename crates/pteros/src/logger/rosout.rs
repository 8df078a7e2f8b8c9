//! `/rosout`: what loggers say, for everybody.
//!
//! One writer for the process, made with the first message and named as every
//! node's that logs: ROS 2 has one for each node. Reliable, transient local, keep last
//! 1000, lifespan 10 s, as rcl has it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use pteros_interfaces::rcl_interfaces::msg::Log;
use pteros_msg::cdr::Representation;
use pteros_rmw::env::Instant;
use pteros_rmw::writer::WriterEndpoint;

use super::Record;
use crate::log::Severity;
use crate::node::{NodeCore, TypeFacts, spec};
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::publisher::Shared;
use crate::qos::QosProfile;

/// Messages of a process in one second; those beyond are counted and told of.
const MESSAGES_PER_SECOND: u32 = 1_000;
const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
pub(super) struct Rosout {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    writer: Option<Arc<WriterEndpoint>>,
    /// There could be none: said once.
    failed: bool,
    /// When the second began that is counted.
    began: Instant,
    count: u32,
    dropped: u64,
}

impl Rosout {
    pub(super) fn publish(&self, node: &NodeCore, record: &Record<'_>) {
        let mut state = self.state.lock();
        let Some(writer) = state.writer(node) else {
            return;
        };
        let now = node.core().env.now();
        if now.as_nanos().saturating_sub(state.began.as_nanos()) >= SECOND {
            (state.began, state.count) = (now, 0);
        }
        if state.count >= MESSAGES_PER_SECOND {
            state.dropped += 1;
            return;
        }
        state.count += 1;
        let dropped = std::mem::take(&mut state.dropped);
        drop(state);
        if dropped > 0 {
            let message = format!(
                "{dropped} messages of this process are not on /rosout: it takes {MESSAGES_PER_SECOND} a second; log less, or use the throttled macros"
            );
            let told = Record {
                severity: Severity::Warn,
                message: &message,
                ..*record
            };
            send(node, &writer, &told);
        }
        send(node, &writer, record);
    }
}

impl State {
    fn writer(&mut self, node: &NodeCore) -> Option<Arc<WriterEndpoint>> {
        if self.writer.is_none() && !self.failed {
            let qos = QosProfile::rosout();
            let made = spec("/rosout", TypeFacts::of::<Log>(), &qos, |q| q.to_endpoint())
                .map_err(|error| error.to_string())
                .and_then(|spec| {
                    let made = node.core().create_writer(spec);
                    made.map_err(|error| error.to_string())
                });
            match made {
                Ok(made) => self.writer = Some(made),
                Err(error) => {
                    self.failed = true;
                    tracing::warn!("no publisher on /rosout: {error}");
                }
            }
        }
        let writer = self.writer.clone()?;
        if !node.is_on_rosout.swap(true, Ordering::Relaxed) {
            node.attach_endpoint(&writer.data);
        }
        Some(writer)
    }
}

fn send(node: &NodeCore, writer: &WriterEndpoint, record: &Record<'_>) {
    let memory = PayloadMemory::default();
    let mut message = Shared {
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
    let core = node.core();
    if let Err(error) = core.publish(writer, &mut message, core.env.wall()) {
        tracing::debug!("/rosout: {error}");
    }
}
