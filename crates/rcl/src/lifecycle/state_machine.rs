//! Transition table of the lifecycle state machine, as in rcl_lifecycle.
//!
//! States, transitions, ids (`lifecycle_msgs`), labels and their order are as
//! rcl_lifecycle registers them. This is a table without nodes, callbacks or time.

use std::fmt;

use LifecycleState as S;

/// State of a managed node, numbered as in `lifecycle_msgs/msg/State`. States from
/// 10 on are transition states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum LifecycleState {
    /// Not known.
    Unknown = 0,
    /// Created, or cleaned up.
    Unconfigured = 1,
    /// Configured, but not working.
    Inactive = 2,
    /// Working.
    Active = 3,
    /// Ended; has no further transitions.
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
    /// All, in the order in which ROS 2 lists them.
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

    /// State with the given number.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.id() == id)
    }

    /// Number of the state.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Label of the state in ROS 2.
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

    /// Whether this is a primary state. The others last as long as a transition
    /// callback.
    pub fn is_primary(self) -> bool {
        self.id() < S::Configuring.id()
    }

    /// Transitions that start in this state.
    pub fn transitions(self) -> impl Iterator<Item = &'static LifecycleTransition> {
        TRANSITIONS
            .iter()
            .filter(move |transition| transition.start == self)
    }
}

impl fmt::Display for LifecycleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.label(), self.id())
    }
}

/// Transition between two states, numbered as in `lifecycle_msgs/msg/Transition`.
/// Transitions up to 7 can be requested. The others follow from the result of a
/// callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub struct LifecycleTransition {
    /// Number of the state.
    pub id: u8,
    /// Label; unique among the transitions of one start state.
    pub label: &'static str,
    /// Start state.
    pub start: LifecycleState,
    /// Goal state.
    pub goal: LifecycleState,
}

impl LifecycleTransition {
    /// Starts in unconfigured.
    pub const CONFIGURE: Self = transition(1, "configure", S::Unconfigured, S::Configuring);
    /// Starts in inactive.
    pub const CLEANUP: Self = transition(2, "cleanup", S::Inactive, S::CleaningUp);
    /// Starts in inactive.
    pub const ACTIVATE: Self = transition(3, "activate", S::Inactive, S::Activating);
    /// Starts in active.
    pub const DEACTIVATE: Self = transition(4, "deactivate", S::Active, S::Deactivating);
    /// Starts in unconfigured.
    pub const UNCONFIGURED_SHUTDOWN: Self =
        transition(5, "shutdown", S::Unconfigured, S::ShuttingDown);
    /// Starts in inactive.
    pub const INACTIVE_SHUTDOWN: Self = transition(6, "shutdown", S::Inactive, S::ShuttingDown);
    /// Starts in active.
    pub const ACTIVE_SHUTDOWN: Self = transition(7, "shutdown", S::Active, S::ShuttingDown);

    /// All, in the order in which ROS 2 lists them.
    pub fn all() -> &'static [Self] {
        &TRANSITIONS
    }

    /// Whether a user or a service may request it.
    pub fn is_requestable(&self) -> bool {
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

const fn transition(id: u8, label: &'static str, start: S, goal: S) -> LifecycleTransition {
    LifecycleTransition {
        id,
        label,
        start,
        goal,
    }
}

/// As rcl_lifecycle's default_state_machine.c registers them.
static TRANSITIONS: [LifecycleTransition; 25] = [
    LifecycleTransition::CONFIGURE,
    transition(10, SUCCESS, S::Configuring, S::Inactive),
    transition(11, FAILURE, S::Configuring, S::Unconfigured),
    transition(12, ERROR, S::Configuring, S::ErrorProcessing),
    LifecycleTransition::CLEANUP,
    transition(20, SUCCESS, S::CleaningUp, S::Unconfigured),
    transition(21, FAILURE, S::CleaningUp, S::Inactive),
    transition(22, ERROR, S::CleaningUp, S::ErrorProcessing),
    LifecycleTransition::ACTIVATE,
    transition(30, SUCCESS, S::Activating, S::Active),
    transition(31, FAILURE, S::Activating, S::Inactive),
    transition(32, ERROR, S::Activating, S::ErrorProcessing),
    LifecycleTransition::DEACTIVATE,
    transition(40, SUCCESS, S::Deactivating, S::Inactive),
    transition(41, FAILURE, S::Deactivating, S::Active),
    transition(42, ERROR, S::Deactivating, S::ErrorProcessing),
    LifecycleTransition::UNCONFIGURED_SHUTDOWN,
    LifecycleTransition::INACTIVE_SHUTDOWN,
    LifecycleTransition::ACTIVE_SHUTDOWN,
    transition(50, SUCCESS, S::ShuttingDown, S::Finalized),
    transition(51, FAILURE, S::ShuttingDown, S::Finalized),
    transition(52, ERROR, S::ShuttingDown, S::ErrorProcessing),
    transition(60, SUCCESS, S::ErrorProcessing, S::Unconfigured),
    transition(61, FAILURE, S::ErrorProcessing, S::Finalized),
    transition(62, ERROR, S::ErrorProcessing, S::Finalized),
];

/// Outcome of a transition callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransitionOutcome {
    /// `CallbackReturn::SUCCESS`: on to the goal state.
    Success,
    /// `CallbackReturn::FAILURE`: back to the start state.
    Failure,
    /// `CallbackReturn::ERROR`, or a panic: on to error processing.
    Error,
}

impl TransitionOutcome {
    fn label(self) -> &'static str {
        match self {
            Self::Success => SUCCESS,
            Self::Failure => FAILURE,
            Self::Error => ERROR,
        }
    }
}

/// Transition that follows a transition state for an outcome.
pub fn transition_after(
    state: LifecycleState,
    outcome: TransitionOutcome,
) -> Option<LifecycleTransition> {
    let mut transitions = state.transitions();
    transitions
        .find(|transition| transition.label == outcome.label())
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last state, or that the last transition was refused.
    fn last_state(labels: &str) -> &'static str {
        let mut state = Some(S::Unconfigured);
        for label in labels.split_whitespace() {
            let start = state.expect("only the last transition is refused");
            let found = start.transitions().find(|it| it.label == label);
            state = found.map(|transition| transition.goal);
        }
        state.map_or("refused", LifecycleState::label)
    }

    #[test]
    fn the_rows_of_the_behaviour_table_hold() {
        let rows = include_str!("../../tests/behaviour/lifecycle.txt").lines();
        let mut count = 0;
        for row in rows.filter(|row| !row.starts_with('#')) {
            let (labels, expected) = row.split_once("->").expect(row);
            assert_eq!(last_state(labels), expected.trim(), "{row}");
            count += 1;
        }
        assert!(count >= 37, "only {count} rows");
    }
}
