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
//!
//! A bridge is one participant on each side, and peers accept a limited number of endpoints
//! of one participant. So all routes share a budget ([`Rules::endpoints_max`]) by max-min
//! fairness among the participants that they come from. A parallel bridge routes names of
//! which this one routes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pteros_msg::hash::TypeHash;
use pteros_msg::message::ros_type_name;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::qos::{
    Durability, DurabilityService, EndpointQos, History, Liveliness, Ownership, Reliability, XCDR1,
    XCDR2,
};
use pteros_rtps::time::Duration;
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

/// How long a bridge leaves an endpoint to a parallel bridge with a smaller id.
const STANDBY_DELAY: Duration = Duration::from_millis(1_000);
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
    /// All of them, those of participants with few endpoints first.
    pub order: Vec<RouteKey>,
    /// Participants above their share of the endpoints of a bridge.
    pub above_share: BTreeMap<(Side, GuidPrefix), AboveShare>,
    /// Allowed endpoints that cannot be routed.
    pub refused: BTreeSet<Refusal>,
    /// Parallel bridges: those on both sides beside this one.
    pub parallel: BTreeSet<BridgeId>,
    /// Some endpoint is routed after the standby delay of a parallel bridge.
    pub is_waiting: bool,
}

/// A planned topic or service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RouteKey {
    /// Key in [`Plan::topics`].
    Topic((Side, Guid)),
    /// Key in [`Plan::services`].
    Service(ServiceKey),
}

impl RouteKey {
    /// Endpoints that it takes on each side, at most.
    pub fn endpoints(&self) -> usize {
        match self {
            Self::Topic(_) => 1,
            Self::Service(_) => 2,
        }
    }
}

/// Endpoints of a participant above its share, which are not routed.
#[derive(Clone, Debug)]
pub struct AboveShare {
    /// Number of its publishers and services.
    pub count: usize,
    /// One of them.
    pub example: Refusal,
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
    /// How long an endpoint has existed.
    pub age: &'p dyn Fn(Side, Guid) -> Duration,
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
        let mut servers = Servers::new();
        for (side, here, there) in [(Side::Rtps, &rtps, &zenoh), (Side::Zenoh, &zenoh, &rtps)] {
            for seen in &here.view.endpoints {
                if let Err(reason) = check_names(&seen.place) {
                    self.refuse_names(&mut plan, side, seen, reason);
                    continue;
                }
                match seen.place.role {
                    Role::Publisher => self.plan_topic(&mut plan, side, seen, there),
                    Role::Server => {
                        let key = self.plan_service(&mut plan, side, seen, here, there);
                        if let Some(key) = key {
                            servers.entry(key).or_default().push(seen.data.guid);
                        }
                    }
                    Role::Subscription | Role::Client | Role::Replies => {}
                }
            }
        }
        self.share(&mut plan, &servers);
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
    ) -> Option<ServiceKey> {
        let names = self.names(side, &seen.place.name)?;
        let (path, from) = self.path(plan, side, seen, &names, there)?;
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
            return None;
        }
        let hash = self.hash(plan, side, seen, &names).ok()?;
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
        plan.services.entry(key.clone()).or_insert(wanted);
        Some(key)
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
        let waits = has_elder && (self.age)(side, seen.data.guid) < STANDBY_DELAY;
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

    /// Orders the routes, and refuses those above the shares of their participants.
    ///
    /// Each route has the number of endpoints that its participant has with it, older ones
    /// first. Routes with small numbers go first. So no participant takes an endpoint that
    /// one with fewer needs, and the newest routes of those with the most are refused.
    fn share(&self, plan: &mut Plan, servers: &Servers) {
        let age = |side, origins: &[Guid]| origins.iter().map(|of| (self.age)(side, *of)).max();
        let topics = plan.topics.keys().map(|(side, origin)| {
            let origins = std::slice::from_ref(origin);
            (age(*side, origins), RouteKey::Topic((*side, *origin)))
        });
        let services = servers
            .iter()
            .map(|(key, origins)| (age(key.side, origins), RouteKey::Service(key.clone())));
        let mut routes: Vec<_> = topics.chain(services).collect();
        routes.sort_unstable_by(|(age, key), (other_age, other)| {
            (Reverse(age), key).cmp(&(Reverse(other_age), other))
        });
        let mut counts: BTreeMap<(Side, GuidPrefix), usize> = BTreeMap::new();
        let mut number = |side, prefix, endpoints| {
            let count = counts.entry((side, prefix)).or_default();
            *count += endpoints;
            (*count, (side, prefix))
        };
        let numbered = routes.into_iter().filter_map(|(_, key)| {
            let endpoints = key.endpoints();
            let number = match &key {
                RouteKey::Topic((side, origin)) => Some(number(*side, origin.prefix, endpoints)),
                // The lowest of its servers: nobody delays a service by serving it as well.
                RouteKey::Service(service) => {
                    let origins: BTreeSet<_> =
                        servers.get(service)?.iter().map(|of| of.prefix).collect();
                    let numbers = origins.into_iter();
                    let numbers = numbers.map(|of| number(service.side, of, endpoints));
                    numbers.min()
                }
            };
            number.map(|number| (number, key))
        });
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort_by_key(|((number, _), _)| *number);
        let mut endpoints = 0;
        for ((_, participant), key) in numbered {
            endpoints += key.endpoints();
            if endpoints <= self.rules.endpoints_max {
                plan.order.push(key);
            } else if let Some(example) =
                plan.refuse_share(self.rules.endpoints_max, &key, participant.1)
            {
                let above = plan.above_share.entry(participant);
                let above = above.or_insert(AboveShare { count: 0, example });
                above.count += 1;
            }
        }
    }
}

/// Servers of each service.
type Servers = BTreeMap<ServiceKey, Vec<Guid>>;

impl Plan {
    /// Removes a route above the share of its participant.
    fn refuse_share(
        &mut self,
        endpoints_max: usize,
        key: &RouteKey,
        participant: GuidPrefix,
    ) -> Option<Refusal> {
        let (side, name, type_name) = match key {
            RouteKey::Topic(key) => {
                let wanted = self.topics.remove(key)?;
                (key.0, wanted.rtps_name, wanted.type_name)
            }
            RouteKey::Service(key) => {
                let wanted = self.services.remove(key)?;
                (key.side, wanted.rtps_name, key.type_name.clone())
            }
        };
        let reason = format!(
            "participant {participant} has more publishers and services than its share of the {endpoints_max} endpoints of a bridge; its newest are left out. Allow fewer of its names, or start another bridge for some of them"
        );
        Some(Refusal {
            side,
            name,
            type_name,
            reason,
        })
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
