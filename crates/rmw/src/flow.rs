//! Flow controllers: how fast the asynchronous publishers of a context send
//! together, and which of them goes first.
//!
//! A controller knows bytes, not messages. It lets one datagram of one writer
//! go at a time, so that a small urgent message overtakes a large one between
//! two of its fragments: of the writers that wait the most urgent, among
//! equals the one that has sent the least. Repairs and heartbeats are sent
//! from the same allowance.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration as Span;

use pteros_rtps::id::EntityId;
use pteros_rtps::time::{Duration, Instant};
use thiserror::Error;

/// Flow controllers of one context at most.
pub const FLOW_CONTROLLERS_MAX: usize = 64;
/// The shortest period: timers of a busy machine keep no shorter one.
pub const FLOW_PERIOD_MIN: Span = Span::from_micros(100);

/// A named pace that asynchronous publishers of one context share.
///
/// Unless told otherwise it sets no limit; its period is 100 ms.
///
/// ```
/// use std::time::Duration;
/// use pteros_rmw::flow::FlowController;
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
    /// A controller without a limit.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            bytes_per_period: None,
            period: Span::from_millis(100),
        }
    }

    /// The bytes that its publishers send together in one period: of whole
    /// RTPS datagrams, once per destination, without UDP's and IP's headers.
    /// At least 1. What the last datagram of a period has too many, the next
    /// period has fewer; what is not used is not saved up. Fragments are made
    /// no larger than this.
    pub fn bytes_per_period(mut self, bytes: u32) -> Self {
        self.bytes_per_period = Some(bytes);
        self
    }

    /// The length of a period, at least [`FLOW_PERIOD_MIN`]. A short one sends
    /// evenly, a long one in bursts.
    pub fn period(mut self, period: Span) -> Self {
        self.period = period;
        self
    }

    /// The name by which publishers ask for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The largest fragment that suits it, bytes.
    pub(crate) fn fragment_bytes_max(&self) -> u16 {
        let bytes = self.bytes_per_period.unwrap_or(u32::MAX);
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    /// Whether these controllers can be had together.
    ///
    /// # Errors
    /// See [`FlowError`].
    pub fn validate(controllers: &[Self]) -> Result<(), FlowError> {
        if controllers.len() > FLOW_CONTROLLERS_MAX {
            return Err(FlowError::TooMany {
                count: controllers.len(),
            });
        }
        let mut names = BTreeSet::new();
        for controller in controllers {
            let name = || controller.name.clone();
            if controller.name.is_empty() {
                return Err(FlowError::Unnamed);
            }
            if !names.insert(&controller.name) {
                return Err(FlowError::SameName { name: name() });
            }
            if controller.bytes_per_period == Some(0) {
                return Err(FlowError::NoBytes { name: name() });
            }
            if controller.period < FLOW_PERIOD_MIN {
                return Err(FlowError::Period {
                    name: name(),
                    period: controller.period,
                });
            }
        }
        Ok(())
    }
}

/// Why flow controllers cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowError {
    /// A name is empty.
    #[error("a flow controller has no name; publishers ask for it by name: give it one")]
    Unnamed,
    /// Two have one name.
    #[error("two flow controllers are called \"{name}\"; publishers ask by name: rename one")]
    SameName {
        /// The name.
        name: String,
    },
    /// Nothing could ever be sent.
    #[error(
        "flow controller \"{name}\": 0 bytes per period send nothing; give at least 1, or leave it \
         out for no limit"
    )]
    NoBytes {
        /// Its name.
        name: String,
    },
    /// The period is too short.
    #[error(
        "flow controller \"{name}\": a period of {period:?} is shorter than {FLOW_PERIOD_MIN:?}; \
         give a longer one, and more bytes for it"
    )]
    Period {
        /// Its name.
        name: String,
        /// What was asked for.
        period: Span,
    },
    /// More than a context has.
    #[error(
        "{count} flow controllers are more than {FLOW_CONTROLLERS_MAX}; share them between publishers"
    )]
    TooMany {
        /// How many were given.
        count: usize,
    },
}

/// What a publisher asks of a flow controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The controller's name.
    pub controller: String,
    /// Its rank among the controller's publishers, the highest first; its
    /// TRANSPORT_PRIORITY if not given.
    pub priority: Option<i32>,
}

impl Pace {
    /// The pace of the controller with this name, ranked by the publisher's
    /// TRANSPORT_PRIORITY.
    pub fn new(controller: impl Into<String>) -> Self {
        Self {
            controller: controller.into(),
            priority: None,
        }
    }

    /// Ranks the publisher by this instead. Strictly: what ranks lower waits
    /// until nothing higher does.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl From<&str> for Pace {
    fn from(controller: &str) -> Self {
        Self::new(controller)
    }
}

impl From<&FlowController> for Pace {
    fn from(controller: &FlowController) -> Self {
        Self::new(controller.name())
    }
}

/// A writer's place at a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) controller: usize,
    pub(crate) priority: i32,
    pub(crate) writer: EntityId,
}

/// A controller at work. Knows no clock and sends nothing itself.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Bytes of a period; `None` without limit.
    bytes: Option<i64>,
    period: Duration,
    /// What is left of this period; below zero what was sent beyond it.
    left: i64,
    /// When the next period begins.
    refill_at: Instant,
    /// By urgency.
    ranks: BTreeMap<Reverse<i32>, Rank>,
}

/// Writers of equal priority.
#[derive(Debug, Default)]
struct Rank {
    members: Vec<Member>,
    /// What the member that went last had sent until then. Whoever comes back
    /// begins here: resting saves up nothing.
    level: u64,
}

#[derive(Debug)]
struct Member {
    writer: EntityId,
    sent: u64,
    waits: bool,
}

impl Flow {
    pub(crate) fn new(controller: &FlowController) -> Self {
        let bytes = controller.bytes_per_period.map(|n| i64::from(n.max(1)));
        Self {
            bytes,
            period: controller.period.max(FLOW_PERIOD_MIN).into(),
            left: bytes.unwrap_or(i64::MAX),
            refill_at: Instant::ZERO,
            ranks: BTreeMap::new(),
        }
    }

    /// Lets a writer wait for its turn; one that waits already stays where it
    /// is.
    pub(crate) fn enrol(&mut self, place: &Place) {
        let rank = self.ranks.entry(Reverse(place.priority)).or_default();
        let at = match rank.members.iter().position(|m| m.writer == place.writer) {
            Some(at) => at,
            None => {
                rank.members.push(Member {
                    writer: place.writer,
                    sent: 0,
                    waits: false,
                });
                rank.members.len() - 1
            }
        };
        if let Some(member) = rank.members.get_mut(at) {
            member.sent = member.sent.max(rank.level);
            member.waits = true;
        }
    }

    /// Forgets a writer.
    pub(crate) fn leave(&mut self, writer: EntityId) {
        self.ranks.retain(|_, rank| {
            rank.members.retain(|m| m.writer != writer);
            !rank.members.is_empty()
        });
    }

    /// The writer that may send one datagram now. It waits no more; enrol it
    /// again if it has more to send.
    pub(crate) fn next(&mut self, now: Instant) -> Option<EntityId> {
        self.refill(now);
        if self.left <= 0 {
            return None;
        }
        self.ranks.values_mut().find_map(|rank| {
            let waiting = rank.members.iter_mut().filter(|m| m.waits);
            let next = waiting.min_by_key(|m| m.sent)?;
            rank.level = rank.level.max(next.sent);
            next.waits = false;
            Some(next.writer)
        })
    }

    /// Takes what a writer has sent from the allowance.
    pub(crate) fn charge(&mut self, place: &Place, bytes: u64) {
        if let Some(rank) = self.ranks.get_mut(&Reverse(place.priority))
            && let Some(member) = rank.members.iter_mut().find(|m| m.writer == place.writer)
        {
            member.sent = member.sent.saturating_add(bytes);
        }
        if self.bytes.is_some() {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.left = self.left.saturating_sub(bytes);
        }
    }

    /// When [`Flow::next`] has somebody to name; `None` while nobody waits.
    pub(crate) fn next_turn(&self, now: Instant) -> Option<Instant> {
        let mut members = self.ranks.values().flat_map(|rank| &rank.members);
        if !members.any(|m| m.waits) {
            return None;
        }
        let allowed = self.bytes.filter(|_| self.left <= 0);
        let Some(allowed) = allowed else {
            return Some(now);
        };
        let more = self.left.saturating_neg() / allowed;
        Some(self.refill_at.after(self.period.times(more)))
    }

    fn refill(&mut self, now: Instant) {
        let Some(allowed) = self.bytes.filter(|_| now >= self.refill_at) else {
            return;
        };
        let late = now.since(self.refill_at).as_nanos();
        let periods = 1 + late / self.period.as_nanos().max(1);
        let gained = allowed.saturating_mul(periods);
        self.left = self.left.saturating_add(gained).min(allowed);
        self.refill_at = match periods > 1 && self.left == allowed {
            // After a rest the period begins with the first datagram.
            true => now.after(self.period),
            false => self.refill_at.after(self.period.times(periods)),
        };
    }
}

#[cfg(test)]
mod tests;
