//! Flow controllers: rate limit and priority of the asynchronous publishers of a
//! context.
//!
//! A controller counts bytes, not messages (flow control). It admits one datagram of one
//! writer at a time, so that a small urgent message overtakes a large one between two
//! fragments. Among queued writers the highest priority sends first; among equals, the
//! one that has sent the least. Retransmissions and heartbeats count against the same
//! allowance.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration as Span;

use pteros_rtps::id::EntityId;
use pteros_rtps::time::{Duration, Instant};
use thiserror::Error;

/// Maximum number of flow controllers per context.
pub const FLOW_CONTROLLERS_MAX: usize = 64;
/// Shortest period: timers of a loaded host are no more precise.
pub const FLOW_PERIOD_MIN: Span = Span::from_micros(100);

/// A named rate limit that asynchronous publishers of one context share.
///
/// By default it has no limit and a period of 100 ms.
///
/// ```
/// use std::time::Duration;
/// use pteros_runtime::flow_controller::FlowController;
///
/// // 10 MB/s.
/// let camera = FlowController::new("camera")
///     .bytes_per_period(100_000)
///     .period(Duration::from_millis(10));
/// assert_eq!(camera.name(), "camera");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowController {
    name: String,
    bytes_per_period: Option<u32>,
    period: Span,
}

impl FlowController {
    /// Creates a controller without a limit.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            bytes_per_period: None,
            period: Span::from_millis(100),
        }
    }

    /// Sets the bytes that its publishers send together in one period, at least 1.
    ///
    /// Whole RTPS datagrams count, once per destination, without UDP and IP headers.
    /// Bytes of the last datagram above the limit reduce the next period. Unused bytes
    /// are not carried over. Fragments are no larger than this.
    pub fn bytes_per_period(mut self, bytes: u32) -> Self {
        self.bytes_per_period = Some(bytes);
        self
    }

    /// Sets the length of a period, at least [`FLOW_PERIOD_MIN`].
    ///
    /// A short period sends evenly, a long one in bursts.
    pub fn period(mut self, period: Span) -> Self {
        self.period = period;
        self
    }

    /// Name by which publishers refer to the controller.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The largest fragment that fits the limit, bytes.
    pub(crate) fn fragment_bytes_max(&self) -> u16 {
        let bytes = self.bytes_per_period.unwrap_or(u32::MAX);
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    /// Checks whether these controllers can exist together.
    ///
    /// # Errors
    /// See [`FlowControllerError`].
    pub fn validate(controllers: &[Self]) -> Result<(), FlowControllerError> {
        if controllers.len() > FLOW_CONTROLLERS_MAX {
            return Err(FlowControllerError::TooMany {
                count: controllers.len(),
            });
        }
        let mut names = BTreeSet::new();
        for controller in controllers {
            let name = || controller.name.clone();
            if controller.name.is_empty() {
                return Err(FlowControllerError::Unnamed);
            }
            if !names.insert(&controller.name) {
                return Err(FlowControllerError::DuplicateName { name: name() });
            }
            if controller.bytes_per_period == Some(0) {
                return Err(FlowControllerError::NoBytes { name: name() });
            }
            if controller.period < FLOW_PERIOD_MIN {
                return Err(FlowControllerError::Period {
                    name: name(),
                    period: controller.period,
                });
            }
        }
        Ok(())
    }
}

/// Why flow controllers are invalid.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum FlowControllerError {
    /// A name is empty.
    #[error("a flow controller has no name; publishers refer to it by name: give it one")]
    Unnamed,
    /// Two controllers have the same name.
    #[error(
        "two flow controllers are called \"{name}\"; publishers refer to them by name: rename one"
    )]
    DuplicateName {
        /// The repeated name.
        name: String,
    },
    /// A limit of zero bytes never sends anything.
    #[error(
        "flow controller \"{name}\": 0 bytes per period never send anything; give at least 1, or omit \
         it for no limit"
    )]
    NoBytes {
        /// Name of the controller.
        name: String,
    },
    /// The period is too short.
    #[error(
        "flow controller \"{name}\": a period of {period:?} is shorter than {FLOW_PERIOD_MIN:?}; \
         give a longer one, and more bytes for it"
    )]
    Period {
        /// Name of the controller.
        name: String,
        /// The requested period.
        period: Span,
    },
    /// More flow controllers than a context supports.
    #[error(
        "{count} flow controllers are more than {FLOW_CONTROLLERS_MAX}; share them between publishers"
    )]
    TooMany {
        /// Number of given controllers.
        count: usize,
    },
}

pteros_msg::debug_as_display!(FlowControllerError);

/// Asynchronous publish mode: a flow controller and a priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncPublishMode {
    /// The name of the controller.
    pub controller: String,
    /// The priority among the controller's publishers, highest first. `None` takes
    /// the TRANSPORT_PRIORITY.
    pub priority: Option<i32>,
}

impl AsyncPublishMode {
    /// Uses the controller of this name, with the publisher's TRANSPORT_PRIORITY.
    pub fn new(controller: impl Into<String>) -> Self {
        Self {
            controller: controller.into(),
            priority: None,
        }
    }

    /// Sets the priority. It is strict: lower priorities wait while a higher one has
    /// data.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl From<&str> for AsyncPublishMode {
    fn from(controller: &str) -> Self {
        Self::new(controller)
    }
}

impl From<&FlowController> for AsyncPublishMode {
    fn from(controller: &FlowController) -> Self {
        Self::new(controller.name())
    }
}

/// A writer's membership at a flow controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowMembership {
    pub(crate) controller: usize,
    pub(crate) priority: i32,
    pub(crate) writer: EntityId,
}

/// State of a flow controller. Sans-IO: it has no clock and sends nothing itself.
#[derive(Debug)]
pub(crate) struct FlowState {
    /// Bytes per period; `None` without limit.
    bytes: Option<i64>,
    period: Duration,
    /// The rest of this period's bytes; negative if more was sent.
    allowance: i64,
    /// When the next period begins.
    refill_at: Instant,
    /// By priority, highest first.
    priorities: BTreeMap<Reverse<i32>, PriorityClass>,
}

/// Writers of equal priority.
#[derive(Debug, Default)]
struct PriorityClass {
    members: Vec<FlowMember>,
    /// Bytes that the last sender had sent by then. A returning writer starts at this
    /// value: idle time gives no credit.
    last_sent: u64,
}

#[derive(Debug)]
struct FlowMember {
    writer: EntityId,
    sent: u64,
    is_waiting: bool,
}

impl FlowState {
    pub(crate) fn new(controller: &FlowController) -> Self {
        let bytes = controller.bytes_per_period.map(|n| i64::from(n.max(1)));
        Self {
            bytes,
            period: controller.period.max(FLOW_PERIOD_MIN).into(),
            allowance: bytes.unwrap_or(i64::MAX),
            refill_at: Instant::ZERO,
            priorities: BTreeMap::new(),
        }
    }

    /// Queues a writer for its next send; a queued one keeps its position.
    pub(crate) fn enqueue(&mut self, membership: &FlowMembership) {
        let rank = self
            .priorities
            .entry(Reverse(membership.priority))
            .or_default();
        let at = match rank
            .members
            .iter()
            .position(|m| m.writer == membership.writer)
        {
            Some(at) => at,
            None => {
                rank.members.push(FlowMember {
                    writer: membership.writer,
                    sent: 0,
                    is_waiting: false,
                });
                rank.members.len() - 1
            }
        };
        if let Some(member) = rank.members.get_mut(at) {
            member.sent = member.sent.max(rank.last_sent);
            member.is_waiting = true;
        }
    }

    /// Removes a writer.
    pub(crate) fn remove(&mut self, writer: EntityId) {
        self.priorities.retain(|_, rank| {
            rank.members.retain(|m| m.writer != writer);
            !rank.members.is_empty()
        });
    }

    /// Takes the writer that may send one datagram now. Queue it again if it has more to
    /// send.
    pub(crate) fn next(&mut self, now: Instant) -> Option<EntityId> {
        self.refill(now);
        if self.allowance <= 0 {
            return None;
        }
        self.priorities.values_mut().find_map(|rank| {
            let waiting = rank.members.iter_mut().filter(|m| m.is_waiting);
            let next = waiting.min_by_key(|m| m.sent)?;
            rank.last_sent = rank.last_sent.max(next.sent);
            next.is_waiting = false;
            Some(next.writer)
        })
    }

    /// Subtracts what a writer has sent from the allowance.
    pub(crate) fn charge(&mut self, membership: &FlowMembership, bytes: u64) {
        if let Some(rank) = self.priorities.get_mut(&Reverse(membership.priority))
            && let Some(member) = rank
                .members
                .iter_mut()
                .find(|m| m.writer == membership.writer)
        {
            member.sent = member.sent.saturating_add(bytes);
        }
        if self.bytes.is_some() {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.allowance = self.allowance.saturating_sub(bytes);
        }
    }

    /// When [`FlowState::next`] returns a writer; `None` while none is queued.
    pub(crate) fn next_send_at(&self, now: Instant) -> Option<Instant> {
        let mut members = self.priorities.values().flat_map(|rank| &rank.members);
        if !members.any(|m| m.is_waiting) {
            return None;
        }
        let allowed = self.bytes.filter(|_| self.allowance <= 0);
        let Some(allowed) = allowed else {
            return Some(now);
        };
        let more = self.allowance.saturating_neg() / allowed;
        Some(self.refill_at.after(self.period.times(more)))
    }

    fn refill(&mut self, now: Instant) {
        let Some(allowed) = self.bytes.filter(|_| now >= self.refill_at) else {
            return;
        };
        let late = now.since(self.refill_at).as_nanos();
        let periods = 1 + late / self.period.as_nanos().max(1);
        let gained = allowed.saturating_mul(periods);
        self.allowance = self.allowance.saturating_add(gained).min(allowed);
        self.refill_at = if periods > 1 && self.allowance == allowed {
            // After an idle time the period starts with the first datagram.
            now.after(self.period)
        } else {
            self.refill_at.after(self.period.times(periods))
        };
    }
}

#[cfg(test)]
mod tests;
