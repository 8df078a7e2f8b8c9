//! The receive memory budget of a context and the accounts of its remote participants
//! (`memory_budget.rs`). Discovery charges here what it stores of each participant: its
//! announcement, those of its endpoints, TypeObjects, and incomplete samples of built-in
//! topics. The runtime takes the accounts for samples and node lists.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::id::{Guid, GuidPrefix};
use crate::locator::{IpAddress, Locator};
use crate::memory_budget::{MemoryAccount, MemoryBudget, RecordCharge};
use crate::qos::EndpointQos;
use crate::time::{Duration, Instant};

use super::config::ParticipantLimits;
use super::peer::Peers;
use super::{ParticipantEvent, Table, TableHolder};

/// The shortest time between two reports of refused records.
const REPORT_PERIOD: Duration = Duration::from_secs(60);

/// The budget and the account of each discovered participant.
pub(super) struct ReceiveMemory {
    budget: Arc<MemoryBudget>,
    accounts: BTreeMap<GuidPrefix, PeerMemory>,
    /// When refused records may be reported again.
    report_at: Instant,
}

struct PeerMemory {
    account: Arc<MemoryAccount>,
    /// The charge of its announcement.
    announcement: RecordCharge,
}

/// A participant's use of the receive memory, and how often a sample or record of it was
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHolder {
    /// The participant.
    pub prefix: GuidPrefix,
    /// Its address; `None` for this host, or if no address is known.
    pub address: Option<IpAddress>,
    /// The bytes that it has reserved.
    pub reserved: usize,
    /// How often a sample or a record of it was refused.
    pub refused: u64,
}

/// The receive memory of a context: what remote participants fill with samples and
/// records of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveMemoryUse {
    /// Bytes reserved by all participants.
    pub reserved: usize,
    /// The part of them that records of discovery take.
    pub records: usize,
    /// The limit of all participants.
    pub limit: usize,
    /// The most bytes that one of them may reserve.
    pub participant_limit: usize,
    /// How often something was refused since the context was opened.
    pub refused: u64,
    /// The participant that has most.
    pub largest: Option<MemoryHolder>,
    /// The participant of which most was refused.
    pub most_refused: Option<MemoryHolder>,
}

impl ReceiveMemory {
    pub(super) fn new(limits: &ParticipantLimits) -> Self {
        Self {
            budget: MemoryBudget::new(limits.participant_memory_bytes, limits.memory_bytes),
            accounts: BTreeMap::new(),
            report_at: Instant::ZERO,
        }
    }

    pub(super) fn account(&self, prefix: GuidPrefix) -> Arc<MemoryAccount> {
        let known = self.accounts.get(&prefix);
        known.map_or_else(|| self.budget.account(), |peer| peer.account.clone())
    }

    /// Closes the account of a lost participant.
    pub(super) fn close(&mut self, prefix: GuidPrefix) {
        self.accounts.remove(&prefix);
    }
}

impl ReceiveMemory {
    /// The bytes reserved now. O(participants).
    pub(super) fn in_use(&self, peers: &Peers) -> ReceiveMemoryUse {
        let budget = &self.budget;
        let holders = || {
            let accounts = self.accounts.iter();
            accounts.map(|(prefix, peer)| MemoryHolder {
                prefix: *prefix,
                address: peers.address_of(*prefix),
                reserved: peer.account.reserved(),
                refused: peer.account.refused(),
            })
        };
        let refused = holders().filter(|of| of.refused > 0);
        ReceiveMemoryUse {
            reserved: budget.reserved(),
            records: budget.records(),
            limit: budget.context_max(),
            participant_limit: budget.participant_max(),
            refused: budget.refused(),
            largest: holders().max_by_key(|of| of.reserved),
            most_refused: refused.max_by_key(|of| of.refused),
        }
    }

    /// Charges the announcement of a participant, in place of an earlier one. False
    /// when there is no memory left, which is reported.
    pub(super) fn charge_announcement(
        &mut self,
        now: Instant,
        data: &ParticipantData,
        peers: &Peers,
        events: &mut VecDeque<ParticipantEvent>,
    ) -> bool {
        let account = self.account(data.prefix);
        let Some(announcement) = account.reserve_record(participant_bytes(data)) else {
            self.report_refused_record(now, (data.prefix, &account), peers, events);
            return false;
        };
        let memory = PeerMemory {
            account,
            announcement,
        };
        let before = self.accounts.insert(data.prefix, memory);
        drop(before.map(|peer| peer.announcement));
        true
    }

    /// Charges the record of an endpoint. `None` when there is no memory left, which is
    /// reported.
    pub(super) fn charge_endpoint(
        &mut self,
        now: Instant,
        data: &EndpointData,
        peers: &Peers,
        events: &mut VecDeque<ParticipantEvent>,
    ) -> Option<RecordCharge> {
        let prefix = data.guid.prefix;
        let account = self.account(prefix);
        let charge = account.reserve_record(endpoint_bytes(data));
        if charge.is_none() {
            self.report_refused_record(now, (prefix, &account), peers, events);
        }
        charge
    }

    fn report_refused_record(
        &mut self,
        now: Instant,
        (prefix, account): (GuidPrefix, &MemoryAccount),
        peers: &Peers,
        events: &mut VecDeque<ParticipantEvent>,
    ) {
        if now < self.report_at {
            return;
        }
        self.report_at = now.after(REPORT_PERIOD);
        let is_this_host = peers.is_same_host_peer(prefix);
        events.push_back(ParticipantEvent::TableFull {
            table: Table::Memory,
            limit: self.budget.context_max(),
            holder: TableHolder {
                address: peers.address_of(prefix),
                is_this_host,
                held: account.reserved(),
            },
        });
    }
}

fn sum(parts: impl IntoIterator<Item = usize>) -> usize {
    parts.into_iter().fold(0, usize::saturating_add)
}

fn locator_bytes(lists: &[&Vec<Locator>]) -> usize {
    let count = sum(lists.iter().map(|list| list.len()));
    count.saturating_mul(size_of::<Locator>())
}

/// The memory of a participant's announcement.
fn participant_bytes(data: &ParticipantData) -> usize {
    let locators = locator_bytes(&[
        &data.metatraffic_unicast,
        &data.metatraffic_multicast,
        &data.default_unicast,
        &data.default_multicast,
    ]);
    let properties = data.properties.iter();
    let tokens = data.security_tokens.iter();
    sum([
        size_of::<ParticipantData>(),
        locators,
        data.user_data.len(),
        data.entity_name.as_ref().map_or(0, |name| name.len()),
        data.domain_tag.as_ref().map_or(0, |tag| tag.len()),
        sum(properties.flat_map(|(name, value)| [48, name.len(), value.len()])),
        sum(tokens.flat_map(|(_, value)| [40, value.len()])),
    ])
}

/// The memory of an endpoint's record, as if nothing of it were shared with others.
fn endpoint_bytes(data: &EndpointData) -> usize {
    let filter = data.content_filter.as_ref().map_or(0, |filter| {
        let parameters = filter.parameters.iter().flat_map(|text| [24, text.len()]);
        sum([
            filter.filtered_topic.len(),
            filter.related_topic.len(),
            filter.class.len(),
            filter.expression.len(),
            sum(parameters),
        ])
    });
    let partitions = data.qos.partition.iter();
    sum([
        size_of::<EndpointData>(),
        size_of::<EndpointQos>(),
        data.topic.len(),
        data.type_name.len(),
        locator_bytes(&[&data.unicast, &data.multicast]),
        data.type_information.as_ref().map_or(0, |of| of.len()),
        filter,
        sum(partitions.flat_map(|name| [24, name.len()])),
        data.qos.user_data.len(),
        data.qos.topic_data.len(),
        data.qos.group_data.len(),
        data.qos.representation.len().saturating_mul(2),
        data.stalled_readers.len().saturating_mul(size_of::<Guid>()),
        data.undecodable
            .len()
            .saturating_mul(size_of::<(Guid, u32)>()),
    ])
}
