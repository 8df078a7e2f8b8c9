//! The remote participants: those discovered, those that have not answered yet, and what
//! is known of their addresses, leases and claims.
//!
//! Its methods stand in a file per subject. They change the endpoints, built-in topics
//! and reports of the [`LocalParticipant`](super::local_participant::LocalParticipant)
//! with it.

use crate::discovery::lease::Leases;

use super::challenges::Challenges;
use super::config::ParticipantLimits;
use super::locator_validation::UnvalidatedLocators;
use super::path_evidence::Paths;
use super::peer::Peers;
use super::receive_memory::ReceiveMemory;
use super::retransmission_windows::RetransmissionWindows;
use super::sweeps::Sweeps;
use super::table_states::TableStates;
use super::tombstone::Tombstones;
use super::unvalidated_participant::UnvalidatedParticipants;

/// The other participants of the domain.
pub(super) struct RemoteParticipants {
    pub(super) unvalidated: UnvalidatedParticipants,
    pub(super) unvalidated_locators: UnvalidatedLocators,
    pub(super) peers: Peers,
    pub(super) paths: Paths,
    pub(super) challenges: Challenges,
    pub(super) sweeps: Sweeps,
    pub(super) leases: Leases,
    pub(super) tombstones: Tombstones,
    pub(super) table_states: TableStates,
    pub(super) receive_memory: ReceiveMemory,
    pub(super) retransmission_windows: RetransmissionWindows,
}

impl RemoteParticipants {
    /// None.
    pub(super) fn new(limits: &ParticipantLimits) -> Self {
        Self {
            unvalidated: UnvalidatedParticipants::default(),
            unvalidated_locators: UnvalidatedLocators::default(),
            peers: Peers::default(),
            paths: Paths::default(),
            challenges: Challenges::default(),
            sweeps: Sweeps::default(),
            leases: Leases::default(),
            tombstones: Tombstones::default(),
            table_states: TableStates::default(),
            receive_memory: ReceiveMemory::new(limits),
            retransmission_windows: RetransmissionWindows::default(),
        }
    }
}
