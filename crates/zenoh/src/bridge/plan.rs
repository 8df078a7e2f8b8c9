//! Plan of a bridge: which publishers and servers of one side it announces on the other.
//!
//! A pure function of both sides' graphs. It prevents loops:
//!
//! - An endpoint whose path contains this bridge is not routed, so nothing ever returns.
//! - An endpoint whose path contains a bridge that is or was on the other side has been
//!   routed there. This bridge would only repeat it.
//! - An endpoint of a process that is itself on both sides is not routed.
//!
//! Parallel bridges, which share both sides, see each other. Of those that could route an
//! endpoint, the one with the smallest id does. The others stand by.

use std::collections::{BTreeMap, BTreeSet};

use pteros_msg::hash::TypeHash;
use pteros_msg::message::ros_type_name;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::qos::{
    Durability, DurabilityService, EndpointQos, History, Liveliness, Ownership, Reliability, XCDR1,
    XCDR2,
};
use pteros_runtime::names::{NameKind, validate_full};
use pteros_runtime::user_data::user_data_value;

use super::rules::Rules;
use super::view::{SeenEndpoint, Side, SideView};
use crate::bridge_path::{BridgeId, BridgePath, HOPS_MAX};
use crate::key::{Place, Role};

/// Depth of a transient-local publisher whose stack does not announce it (Fast DDS).
const DEPTH_UNKNOWN: u32 = 10;
/// Smallest depth of a volatile publisher: messages that its reliable readers may still
/// request.
const DEPTH_MIN: u32 = 10;
/// Largest depth of a publisher.
const DEPTH_MAX: u32 = 1_000;
/// Messages that wait for the bridge's thread.
const QUEUE_DEPTH: u32 = 100;
/// Depth of requests and replies.
const SERVICE_DEPTH: u32 = 1_000;

/// Routed publishers and services of one participant: half of all routes, so that others have
/// space.
pub const PEER_ROUTES_MAX: usize = 4_096;
/// Listed refusals above that share, of publishers and of services.
const SHARE_REFUSALS_MAX: usize = 16;
/// Largest type name, bytes.
const TYPE_BYTES_MAX: usize = 255;

/// A publisher that the bridge announces on the other side.
#[derive(Clone, PartialEq, Debug)]
pub struct WantedTopic {
    /// Name on its own side.
    pub name: String,
    /// Name on the other side.
    pub name_there: String,
    /// Name in rules and reports.
    pub rtps_name: String,
    /// The DDS type name.
    pub type_name: String,
    /// Path on the other side.
    pub path: BridgePath,
    /// QoS on the other side.
    pub qos: EndpointQos,
    /// Rate limit, messages per second.
    pub hertz: Option<f64>,
}

/// A service that the bridge serves on the other side.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ServiceKey {
    /// Side of its server.
    pub side: Side,
    /// Name on that side.
    pub name: String,
    /// The DDS type name of the service.
    pub type_name: String,
    /// Path of its server.
    pub path: BridgePath,
}

/// How the bridge serves it.
#[derive(Clone, PartialEq, Debug)]
pub struct WantedService {
    /// Name on the other side.
    pub name_there: String,
    /// Name in rules and reports.
    pub rtps_name: String,
    /// Type hash of the service.
    pub hash: Option<TypeHash>,
    /// Path on the other side.
    pub path: BridgePath,
}

/// An allowed endpoint that cannot be routed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Refusal {
    /// Side of the endpoint.
    pub side: Side,
    /// Name in reports.
    pub name: String,
    /// The DDS type name.
    pub type_name: String,
    /// Reason, as the rest of a sentence.
    pub reason: String,
}

/// Announcements of the bridge on both sides.
#[derive(Default, Debug)]
pub struct Plan {
    /// Publishers, by side and GUID.
    pub topics: BTreeMap<(Side, Guid), WantedTopic>,
    /// Services to serve on the other side.
    pub services: BTreeMap<ServiceKey, WantedService>,
    /// Participants of their servers.
    pub servers: BTreeMap<ServiceKey, BTreeSet<GuidPrefix>>,
    /// Allowed endpoints that cannot be routed.
    pub refused: BTreeSet<Refusal>,
    /// Parallel bridges: those on both sides beside this one.
    pub parallel: BTreeSet<BridgeId>,
    /// Some endpoint is routed after the standby delay of a parallel bridge.
    pub is_waiting: bool,
}

/// Finds the type hash that an endpoint does not announce, by the ROS name.
pub type FindHash = dyn Fn(&str) -> Option<TypeHash> + Send + Sync;

/// The input of a plan.
pub struct Planner<'p> {
    /// Id of this bridge.
    pub own: BridgeId,
    /// Which names are routed, and how fast.
    pub rules: &'p Rules,
    /// Finds hashes of types.
    pub find_hash: &'p FindHash,
    /// Whether an endpoint has existed for the standby delay.
    pub has_aged: &'p dyn Fn(Side, Guid) -> bool,
}

/// One side with an index of its names.
struct Indexed<'v> {
    view: &'v SideView,
    by_place: BTreeMap<(Role, &'v str, &'v str), Vec<&'v SeenEndpoint>>,
}

impl<'v> Indexed<'v> {
    fn new(view: &'v SideView) -> Self {
        let mut by_place: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for seen in &view.endpoints {
            let place = &seen.place;
            let key = (place.role, place.name.as_str(), place.type_name.as_str());
            by_place.entry(key).or_default().push(seen);
        }
        Self { view, by_place }
    }

    fn paths<'a>(
        &'a self,
        role: Role,
        name: &'a str,
        type_name: &'a str,
    ) -> impl Iterator<Item = &'a BridgePath> {
        let found = self.by_place.get(&(role, name, type_name));
        let found = found.into_iter().flatten();
        found.filter_map(|seen| seen.path.as_ref())
    }
}

impl Planner<'_> {
    /// Computes the plan for both sides.
    pub fn plan(&self, rtps: &SideView, zenoh: &SideView) -> Plan {
        let shared = rtps.bridges.intersection(&zenoh.bridges);
        let mut plan = Plan {
            parallel: shared.copied().filter(|id| *id != self.own).collect(),
            ..Plan::default()
        };
        let [rtps, zenoh] = [rtps, zenoh].map(Indexed::new);
        for (side, here, there) in [(Side::Rtps, &rtps, &zenoh), (Side::Zenoh, &zenoh, &rtps)] {
            for seen in &here.view.endpoints {
                if let Err(reason) = check_names(&seen.place) {
                    self.refuse_names(&mut plan, side, seen, reason);
                    continue;
                }
                match seen.place.role {
                    Role::Publisher => self.plan_topic(&mut plan, side, seen, there),
                    Role::Server => self.plan_service(&mut plan, side, seen, here, there),
                    Role::Subscription | Role::Client | Role::Replies => {}
                }
            }
        }
        limit_shares(&mut plan);
        plan
    }

    /// Refuses an endpoint without a ROS name, if the rules may select it.
    fn refuse_names(&self, plan: &mut Plan, side: Side, seen: &SeenEndpoint, reason: String) {
        if matches!(seen.place.role, Role::Publisher | Role::Server) {
            plan.refused.insert(Refusal {
                side,
                name: seen.place.name.clone(),
                type_name: seen.place.type_name.clone(),
                reason,
            });
        }
    }

    fn plan_topic(&self, plan: &mut Plan, side: Side, seen: &SeenEndpoint, there: &Indexed<'_>) {
        let Some(names) = self.names(side, &seen.place.name) else {
            return;
        };
        let Some((path, from)) = self.path(plan, side, seen, &names, there) else {
            return;
        };
        let (role, type_name) = (Role::Publisher, &seen.place.type_name);
        let is_routed = there
            .paths(role, &names.there, type_name)
            .any(|path| self.is_routed_by_another(plan, from, path));
        if is_routed {
            return;
        }
        if self.leaves_time(plan, side, seen) {
            return;
        }
        let hash = match self.hash(plan, side, seen, &names) {
            Ok(hash) => hash,
            Err(()) => return,
        };
        let wanted = WantedTopic {
            name: seen.place.name.clone(),
            hertz: self.rules.decision(&names.rtps).hertz,
            name_there: names.there,
            rtps_name: names.rtps,
            type_name: type_name.clone(),
            qos: publisher_qos(&seen.data.qos, seen.vendor, &user_data(hash, &path)),
            path,
        };
        plan.topics.insert((side, seen.data.guid), wanted);
    }

    fn plan_service(
        &self,
        plan: &mut Plan,
        side: Side,
        seen: &SeenEndpoint,
        here: &Indexed<'_>,
        there: &Indexed<'_>,
    ) {
        let Some(names) = self.names(side, &seen.place.name) else {
            return;
        };
        let Some((path, from)) = self.path(plan, side, seen, &names, there) else {
            return;
        };
        let (role, type_name) = (Role::Server, &seen.place.type_name);
        // A request is sent to one server only. If the other side has a server of that
        // name, or a nearer bridge, that one serves it. So a bridge never serves a name
        // on both sides.
        let is_nearer = |other: &BridgePath| match other.ids().split_last() {
            // Its bridge has lost this side and is about to be removed.
            Some((last, before)) if before == from.ids() && !here.view.bridges.contains(last) => {
                false
            }
            _ => *other < path,
        };
        let is_served = there.paths(role, &names.there, type_name).any(is_nearer);
        if is_served || self.leaves_time(plan, side, seen) {
            return;
        }
        let hash = match self.hash(plan, side, seen, &names) {
            Ok(hash) => hash,
            Err(()) => return,
        };
        let key = ServiceKey {
            side,
            name: seen.place.name.clone(),
            type_name: type_name.clone(),
            path: from.clone(),
        };
        let wanted = WantedService {
            name_there: names.there,
            rtps_name: names.rtps,
            hash,
            path,
        };
        let servers = plan.servers.entry(key.clone()).or_default();
        servers.insert(seen.data.guid.prefix);
        plan.services.entry(key).or_insert(wanted);
    }

    /// Names of an endpoint on both sides, if the rules allow it.
    fn names(&self, side: Side, name: &str) -> Option<Names> {
        let names = match side {
            Side::Rtps => Names {
                there: self.rules.zenoh_name(name),
                rtps: name.into(),
            },
            Side::Zenoh => {
                let rtps = self.rules.rtps_name(name)?;
                Names {
                    there: rtps.clone(),
                    rtps,
                }
            }
        };
        let decision = self.rules.decision(&names.rtps);
        decision.is_allowed.then_some(names)
    }

    /// Path on the other side and path of the origin. `None` if routing is refused.
    fn path<'s>(
        &self,
        plan: &mut Plan,
        side: Side,
        seen: &'s SeenEndpoint,
        names: &Names,
        there: &Indexed<'_>,
    ) -> Option<(BridgePath, &'s BridgePath)> {
        let from = seen.path.as_ref()?;
        let has_been_there = |id: &BridgeId| *id == self.own || there.view.known.contains(id);
        if from.ids().iter().any(has_been_there) {
            return None;
        }
        let prefix = seen.data.guid.prefix;
        if there.view.participants.contains(&prefix) {
            return None;
        }
        let refused = match from.through(self.own) {
            None => Err(format!("it has crossed {HOPS_MAX} bridges, the limit")),
            Some(path) => why_not(&seen.data).map_or(Ok(path), |reason| Err(reason.into())),
        };
        match refused {
            Ok(path) => Some((path, from)),
            Err(reason) => {
                plan.refused.insert(refusal(side, seen, names, reason));
                None
            }
        }
    }

    /// Whether a parallel bridge with a smaller id has routed the same origin to the
    /// other side.
    fn is_routed_by_another(&self, plan: &Plan, from: &BridgePath, there: &BridgePath) -> bool {
        let Some((last, before)) = there.ids().split_last() else {
            return false;
        };
        before == from.ids() && *last < self.own && plan.parallel.contains(last)
    }

    /// Whether a parallel bridge with a smaller id may still start to route it.
    fn leaves_time(&self, plan: &mut Plan, side: Side, seen: &SeenEndpoint) -> bool {
        let has_elder = plan.parallel.first().is_some_and(|first| *first < self.own);
        let waits = has_elder && !(self.has_aged)(side, seen.data.guid);
        plan.is_waiting |= waits;
        waits
    }

    /// Type hash. Zenoh needs one, so an endpoint without it is refused there.
    fn hash(
        &self,
        plan: &mut Plan,
        side: Side,
        seen: &SeenEndpoint,
        names: &Names,
    ) -> Result<Option<TypeHash>, ()> {
        let announced = user_data_value(&seen.data.qos.user_data, "typehash");
        let announced = announced.and_then(|text| text.parse().ok());
        let found = announced.or_else(|| {
            let ros_name = ros_type_name(&seen.place.type_name)?;
            (self.find_hash)(&ros_name)
        });
        if found.is_none() && side == Side::Rtps {
            let reason = "its process announces no type hash, and the type is not known here; add its package with --interfaces DIR, or source its workspace";
            plan.refused
                .insert(refusal(side, seen, names, reason.into()));
            return Err(());
        }
        Ok(found)
    }
}

struct Names {
    there: String,
    rtps: String,
}

/// Checks the names of an endpoint before they become a key. Zenoh reads `*`, `$`, `#`
/// and `?` in keys as wildcards, and the rules compare ROS names.
fn check_names(place: &Place) -> Result<(), String> {
    if validate_full(NameKind::Topic, &place.name).is_err() {
        return Err("its name is not one of ROS 2, so rules and keys do not fit it".into());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let type_name = &place.type_name;
    if type_name.is_empty() || type_name.len() > TYPE_BYTES_MAX || !type_name.chars().all(is_plain)
    {
        return Err("its type name is not one of DDS or ROS 2".into());
    }
    Ok(())
}

/// Counts the routes of each participant.
#[derive(Default)]
pub struct Shares(BTreeMap<(Side, GuidPrefix), usize>);

impl Shares {
    /// The number of another publisher of a participant.
    pub fn next(&mut self, side: Side, prefix: GuidPrefix) -> usize {
        let count = self.0.entry((side, prefix)).or_default();
        *count += 1;
        *count
    }

    /// The number of another service: the lowest among the participants that serve it. So nobody
    /// delays a service of others by serving it as well.
    pub fn next_service(&mut self, plan: &Plan, key: &ServiceKey) -> usize {
        let servers = plan.servers.get(key).into_iter().flatten();
        let numbers = servers.map(|prefix| self.next(key.side, *prefix));
        numbers.min().unwrap_or_default()
    }
}

/// Refuses the publishers and services of a participant above [`PEER_ROUTES_MAX`].
fn limit_shares(plan: &mut Plan) {
    let mut shares = Shares::default();
    // All of them are refused, only some are listed.
    let over: Vec<_> = plan
        .topics
        .extract_if(.., |(side, guid), _| {
            shares.next(*side, guid.prefix) > PEER_ROUTES_MAX
        })
        .collect();
    let refused = over.into_iter().map(|((side, guid), wanted)| Refusal {
        side,
        name: wanted.rtps_name,
        type_name: wanted.type_name,
        reason: above_share(guid.prefix),
    });
    plan.refused.extend(refused.take(SHARE_REFUSALS_MAX));
    let is_over = |key: &&ServiceKey| shares.next_service(plan, key) > PEER_ROUTES_MAX;
    let over: Vec<ServiceKey> = plan.services.keys().filter(is_over).cloned().collect();
    for (at, key) in over.into_iter().enumerate() {
        let servers = plan.servers.remove(&key).unwrap_or_default();
        let wanted = plan.services.remove(&key);
        if at < SHARE_REFUSALS_MAX
            && let (Some(wanted), Some(prefix)) = (wanted, servers.first())
        {
            plan.refused.insert(Refusal {
                side: key.side,
                name: wanted.rtps_name,
                type_name: key.type_name,
                reason: above_share(*prefix),
            });
        }
    }
}

fn above_share(prefix: GuidPrefix) -> String {
    format!(
        "participant {prefix} has more than {PEER_ROUTES_MAX} publishers and services, the limit of one; allow fewer of its names"
    )
}

fn refusal(side: Side, seen: &SeenEndpoint, names: &Names, reason: String) -> Refusal {
    Refusal {
        side,
        name: names.rtps.clone(),
        type_name: seen.place.type_name.clone(),
        reason,
    }
}

/// Reason why an endpoint cannot be routed, as the rest of a sentence.
fn why_not(data: &EndpointData) -> Option<&'static str> {
    let qos = &data.qos;
    if data.guid.entity.is_keyed() {
        return Some("its type has a key, and Zenoh carries no instances");
    }
    if qos.presentation.holds_samples() {
        return Some("it publishes coherent sets, or in the order of a group");
    }
    if !qos.partition.is_empty() {
        return Some("it is in a partition, which Zenoh does not have");
    }
    if qos.ownership == Ownership::Exclusive {
        return Some("its ownership is exclusive, which Zenoh does not have");
    }
    None
}

fn user_data(hash: Option<TypeHash>, path: &BridgePath) -> Vec<u8> {
    let hash = hash.map_or_else(String::new, |hash| format!("typehash={hash};"));
    format!("{hash}{}", path.user_data()).into_bytes()
}

/// QoS of the announced counterpart of a publisher: the publisher's own, as far as the
/// other side can use it.
fn publisher_qos(origin: &EndpointQos, vendor: VendorId, user_data: &[u8]) -> EndpointQos {
    let is_transient_local = origin.durability != Durability::Volatile;
    let announced = depth_of(origin.history).max(depth_of(origin.durability_service.history));
    let depth = match is_transient_local {
        true if announced == 1 && vendor == VendorId::FAST_DDS => DEPTH_UNKNOWN,
        true => announced,
        false => announced.max(DEPTH_MIN),
    };
    EndpointQos {
        reliability: origin.reliability,
        // Samples stored beyond the life of their publisher remain on their own side.
        durability: if is_transient_local {
            Durability::TransientLocal
        } else {
            Durability::Volatile
        },
        history: History::KeepLast(depth.clamp(1, DEPTH_MAX)),
        durability_service: DurabilityService::default(),
        deadline: origin.deadline,
        lifespan: origin.lifespan,
        // Messages do not assert liveliness here: the counterpart exists as long as the
        // origin.
        liveliness: Liveliness::Automatic,
        lease_duration: origin.lease_duration,
        transport_priority: origin.transport_priority,
        destination_order: origin.destination_order,
        representation: origin.representation.clone(),
        user_data: user_data.to_vec(),
        ..EndpointQos::default()
    }
}

fn depth_of(history: History) -> u32 {
    match history {
        History::KeepLast(depth) => depth,
        History::KeepAll => DEPTH_MAX,
    }
}

/// QoS of a bridge's subscription, which matches the publishers of one class.
pub fn subscription_qos(reliability: Reliability, is_transient_local: bool) -> EndpointQos {
    EndpointQos {
        reliability,
        durability: if is_transient_local {
            Durability::TransientLocal
        } else {
            Durability::Volatile
        },
        history: History::KeepLast(if is_transient_local {
            DEPTH_MAX
        } else {
            QUEUE_DEPTH
        }),
        representation: vec![XCDR1, XCDR2],
        ..EndpointQos::default()
    }
}

/// QoS of requests and replies.
pub fn service_qos(hash: Option<TypeHash>, path: &BridgePath) -> EndpointQos {
    EndpointQos {
        history: History::KeepLast(SERVICE_DEPTH),
        user_data: user_data(hash, path),
        ..EndpointQos::default()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
