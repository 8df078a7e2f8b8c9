//! The states of a managed node and the ways between them: ROS 2's own, as
//! rcl_lifecycle registers them (ids of `lifecycle_msgs`, labels, order). It is a
//! table and knows nothing of nodes, callbacks or time.

use std::fmt;

use LifecycleState as S;

/// A state of a managed node, with its number in `lifecycle_msgs/msg/State`.
/// Those from 10 on last as long as a transition does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum LifecycleState {
    /// Nobody knows.
    Unknown = 0,
    /// Just made, or cleaned up.
    Unconfigured = 1,
    /// Ready to work, and not working.
    Inactive = 2,
    /// At work.
    Active = 3,
    /// At its end; nothing leads on from here.
    Finalized = 4,
    /// `on_configure` runs.
    Configuring = 10,
    /// `on_cleanup` runs.
    CleaningUp = 11,
    /// `on_shutdown` runs.
    ShuttingDown = 12,
    /// `on_activate` runs.
    Activating = 13,
    /// `on_deactivate` runs.
    Deactivating = 14,
    /// `on_error` runs.
    ErrorProcessing = 15,
}

impl LifecycleState {
    /// All of them, in the order in which ROS 2 lists them.
    pub const ALL: [Self; 11] = [
        S::Unknown,
        S::Unconfigured,
        S::Inactive,
        S::Active,
        S::Finalized,
        S::Configuring,
        S::CleaningUp,
        S::ShuttingDown,
        S::Activating,
        S::Deactivating,
        S::ErrorProcessing,
    ];

    /// The state of that number, if there is one.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.id() == id)
    }

    /// Its number.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Its name, as ROS 2 writes it.
    pub fn label(self) -> &'static str {
        match self {
            S::Unknown => "unknown",
            S::Unconfigured => "unconfigured",
            S::Inactive => "inactive",
            S::Active => "active",
            S::Finalized => "finalized",
            S::Configuring => "configuring",
            S::CleaningUp => "cleaningup",
            S::ShuttingDown => "shuttingdown",
            S::Activating => "activating",
            S::Deactivating => "deactivating",
            S::ErrorProcessing => "errorprocessing",
        }
    }

    /// Whether a node stays in it; the others last as long as a callback.
    pub fn is_primary(self) -> bool {
        self.id() < S::Configuring.id()
    }

    /// The transitions that lead away from it.
    pub fn transitions(self) -> impl Iterator<Item = &'static LifecycleTransition> {
        GRAPH.iter().filter(move |step| step.start == self)
    }
}

impl fmt::Display for LifecycleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.label(), self.id())
    }
}

/// A way from one state to another, with its number in
/// `lifecycle_msgs/msg/Transition`. Those up to 7 can be asked for; the others
/// follow from what a callback says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub struct LifecycleTransition {
    /// Its number.
    pub id: u8,
    /// Its name; several transitions share one, but none of one start.
    pub label: &'static str,
    /// From where.
    pub start: LifecycleState,
    /// To where.
    pub goal: LifecycleState,
}

impl LifecycleTransition {
    /// From unconfigured.
    pub const CONFIGURE: Self = step(1, "configure", S::Unconfigured, S::Configuring);
    /// From inactive.
    pub const CLEANUP: Self = step(2, "cleanup", S::Inactive, S::CleaningUp);
    /// From inactive.
    pub const ACTIVATE: Self = step(3, "activate", S::Inactive, S::Activating);
    /// From active.
    pub const DEACTIVATE: Self = step(4, "deactivate", S::Active, S::Deactivating);
    /// From unconfigured.
    pub const UNCONFIGURED_SHUTDOWN: Self = step(5, "shutdown", S::Unconfigured, S::ShuttingDown);
    /// From inactive.
    pub const INACTIVE_SHUTDOWN: Self = step(6, "shutdown", S::Inactive, S::ShuttingDown);
    /// From active.
    pub const ACTIVE_SHUTDOWN: Self = step(7, "shutdown", S::Active, S::ShuttingDown);

    /// All of them, in the order in which ROS 2 lists them.
    pub fn all() -> &'static [Self] {
        &GRAPH
    }

    /// Whether a user or a service may ask for it.
    pub fn can_be_asked_for(&self) -> bool {
        self.start.is_primary()
    }
}

impl fmt::Display for LifecycleTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.label, self.id)
    }
}

const SUCCESS: &str = "transition_success";
const FAILURE: &str = "transition_failure";
const ERROR: &str = "transition_error";

const fn step(id: u8, label: &'static str, start: S, goal: S) -> LifecycleTransition {
    LifecycleTransition {
        id,
        label,
        start,
        goal,
    }
}

/// As rcl_lifecycle's default_state_machine.c registers them.
static GRAPH: [LifecycleTransition; 25] = [
    LifecycleTransition::CONFIGURE,
    step(10, SUCCESS, S::Configuring, S::Inactive),
    step(11, FAILURE, S::Configuring, S::Unconfigured),
    step(12, ERROR, S::Configuring, S::ErrorProcessing),
    LifecycleTransition::CLEANUP,
    step(20, SUCCESS, S::CleaningUp, S::Unconfigured),
    step(21, FAILURE, S::CleaningUp, S::Inactive),
    step(22, ERROR, S::CleaningUp, S::ErrorProcessing),
    LifecycleTransition::ACTIVATE,
    step(30, SUCCESS, S::Activating, S::Active),
    step(31, FAILURE, S::Activating, S::Inactive),
    step(32, ERROR, S::Activating, S::ErrorProcessing),
    LifecycleTransition::DEACTIVATE,
    step(40, SUCCESS, S::Deactivating, S::Inactive),
    step(41, FAILURE, S::Deactivating, S::Active),
    step(42, ERROR, S::Deactivating, S::ErrorProcessing),
    LifecycleTransition::UNCONFIGURED_SHUTDOWN,
    LifecycleTransition::INACTIVE_SHUTDOWN,
    LifecycleTransition::ACTIVE_SHUTDOWN,
    step(50, SUCCESS, S::ShuttingDown, S::Finalized),
    step(51, FAILURE, S::ShuttingDown, S::Finalized),
    step(52, ERROR, S::ShuttingDown, S::ErrorProcessing),
    step(60, SUCCESS, S::ErrorProcessing, S::Unconfigured),
    step(61, FAILURE, S::ErrorProcessing, S::Finalized),
    step(62, ERROR, S::ErrorProcessing, S::Finalized),
];

/// What a callback said of its transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Success,
    Failure,
    Error,
}

impl Verdict {
    fn label(self) -> &'static str {
        match self {
            Self::Success => SUCCESS,
            Self::Failure => FAILURE,
            Self::Error => ERROR,
        }
    }
}

/// How a state that lasts as long as its callback ends.
pub(crate) fn end_of(state: LifecycleState, verdict: Verdict) -> Option<LifecycleTransition> {
    let mut steps = state.transitions();
    steps.find(|step| step.label == verdict.label()).copied()
}
