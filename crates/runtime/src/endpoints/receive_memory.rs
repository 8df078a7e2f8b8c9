//! The receive memory budget of a context and the accounts of its remote participants
//! (`rtps/memory_budget.rs`). Matching charges each remote writer to its participant.

use std::collections::BTreeMap;
use std::sync::Arc;

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::memory_budget::{MemoryAccount, MemoryBudget};

use crate::limits::Limits;

/// The budget, from the first match on.
#[derive(Default)]
pub(crate) struct ReceiveMemory {
    budget: Option<Arc<MemoryBudget>>,
    accounts: BTreeMap<GuidPrefix, Arc<MemoryAccount>>,
}

/// The memory of unfinished samples of remote participants, see
/// [`Limits::participant_memory_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveMemoryUse {
    /// Bytes reserved by all participants.
    pub reserved: usize,
    /// The limit of all participants.
    pub limit: usize,
    /// Bytes reserved by the participant that has most.
    pub reserved_by_largest: usize,
    /// The limit of one participant.
    pub participant_limit: usize,
    /// How often a sample was refused since the context was opened.
    pub refused: u64,
}

impl ReceiveMemory {
    /// The account of a participant, opened if necessary.
    pub(crate) fn account(&mut self, limits: &Limits, prefix: GuidPrefix) -> Arc<MemoryAccount> {
        let (participant, context) = limits.receive_memory();
        let budget = self
            .budget
            .get_or_insert_with(|| MemoryBudget::new(participant, context));
        let account = self.accounts.entry(prefix);
        account.or_insert_with(|| budget.account()).clone()
    }

    /// Closes the account of a lost participant.
    pub(crate) fn close(&mut self, prefix: GuidPrefix) {
        self.accounts.remove(&prefix);
    }

    /// What is reserved now.
    pub(crate) fn usage(&self, limits: &Limits) -> ReceiveMemoryUse {
        let (participant_limit, limit) = limits.receive_memory();
        let budget = self.budget.as_ref();
        let accounts = self.accounts.values();
        ReceiveMemoryUse {
            reserved: budget.map_or(0, |budget| budget.reserved()),
            limit,
            reserved_by_largest: accounts.map(|one| one.reserved()).max().unwrap_or(0),
            participant_limit,
            refused: budget.map_or(0, |budget| budget.refused()),
        }
    }
}
