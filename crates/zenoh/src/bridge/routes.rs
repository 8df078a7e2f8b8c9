//! Routes of a bridge: applies the plan, and reports start and end of each route.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use pteros_msg::message::ros_type_name;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::error::EndpointError;

use super::counters::{RouteCounters, RouteCounts};
use super::network::{Changed, Network};
use super::plan::{
    FindHash, Plan, Planner, Refusal, RouteKey, ServiceKey, WantedService, WantedTopic,
};
use super::rules::Rules;
use super::service_route::ServiceRoute;
use super::topic_route::{Counterpart, TopicClass, TopicGroup};
use super::view::{Side, SideView};
use crate::bridge_path::{BridgeId, BridgePath};
use crate::key::Role;

/// Endpoints of each side that one reconciliation starts.
pub const BEGUN_PER_LOOK: usize = 128;
/// Refusals that are reported, and participants that are reported to be above their share.
/// Later ones are not.
const REFUSALS_MAX: usize = 1_024;
/// Former bridges remembered per side. The endpoints of those forgotten may be routed
/// back until their leases end.
const BRIDGES_MAX: usize = 1_024;

/// Report of a route: all endpoints of one name, type and direction.
#[derive(Clone, PartialEq, Debug)]
pub struct RouteReport {
    /// Topic or service.
    pub kind: RouteKind,
    /// Side of the publishers or servers.
    pub from: Side,
    /// Name on the RTPS side.
    pub rtps_name: String,
    /// Name on the Zenoh side.
    pub zenoh_name: String,
    /// ROS type name.
    pub type_name: String,
    /// Number of publishers or servers.
    pub origins: usize,
    /// Messages forwarded, limited and failed.
    pub counts: RouteCounts,
}

/// Kind of forwarded data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RouteKind {
    /// The messages of publishers.
    Topic,
    /// The requests to a server, and its replies.
    Service,
}

/// A report of a bridge.
#[derive(Clone, PartialEq, Debug)]
pub enum BridgeEvent {
    /// A route has its first publisher or server.
    RouteBegan(RouteReport),
    /// A route has lost its last publisher or server.
    RouteEnded(RouteReport),
    /// An allowed endpoint cannot be routed. Reported once.
    Refused {
        /// Side of the endpoint.
        from: Side,
        /// Name on the RTPS side.
        rtps_name: String,
        /// ROS type name.
        type_name: String,
        /// Reason, as the rest of a sentence.
        reason: String,
    },
    /// A parallel bridge with a smaller id is on both sides. This bridge routes only what
    /// the other one does not.
    StandsBy {
        /// Id of the other bridge.
        elder: BridgeId,
    },
    /// No parallel bridge with a smaller id is left.
    Active,
}

/// The routes and counts of a bridge.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BridgeStatus {
    /// The present routes.
    pub routes: Vec<RouteReport>,
    /// Sum over all routes, also ended ones.
    pub total: RouteCounts,
    /// Number of publishers and services that are not routed, of each participant above its
    /// share.
    pub above_share: BTreeMap<(Side, GuidPrefix), usize>,
}

/// Settings of a bridge, fixed at its start.
pub struct Settings {
    /// Id of this bridge.
    pub own: BridgeId,
    /// Which names are routed, and how fast.
    pub rules: Rules,
    /// Finds the hash of a type.
    pub find_hash: Box<FindHash>,
    /// Receives reports.
    pub report: Box<dyn Fn(&BridgeEvent) + Send + Sync>,
}

/// The running routes and their endpoints. The bridge locks it.
pub struct Routes {
    settings: Settings,
    networks: [Arc<Network>; 2],
    own_path: BridgePath,
    changed: Arc<Changed>,
    topics: BTreeMap<(Side, Guid), TopicRoute>,
    groups: BTreeMap<TopicClass, Arc<TopicGroup>>,
    services: BTreeMap<ServiceKey, (WantedService, ServiceRoute)>,
    named: BTreeMap<RouteName, NamedRoute>,
    first_seen: HashMap<(Side, Guid), Instant>,
    refused: BTreeSet<Refusal>,
    above_share: BTreeMap<(Side, GuidPrefix), usize>,
    /// Participants that were reported to be above their share.
    reported: BTreeSet<(Side, GuidPrefix)>,
    /// All bridges seen so far, per side.
    known: [BTreeSet<BridgeId>; 2],
    elder: Option<BridgeId>,
    ended: RouteCounts,
}

struct TopicRoute {
    wanted: WantedTopic,
    class: TopicClass,
    // The group keeps it as well.
    _counterpart: Arc<Counterpart>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RouteName {
    kind: RouteKind,
    from: Side,
    rtps_name: String,
    type_name: String,
}

#[derive(Default)]
struct NamedRoute {
    origins: usize,
    counters: Arc<RouteCounters>,
}

impl Routes {
    /// Creates an empty set of routes.
    pub fn new(settings: Settings, networks: [Arc<Network>; 2], changed: &Arc<Changed>) -> Self {
        let own_path = BridgePath::default().through(settings.own);
        Self {
            own_path: own_path.unwrap_or_default(),
            settings,
            networks,
            changed: changed.clone(),
            topics: BTreeMap::new(),
            groups: BTreeMap::new(),
            services: BTreeMap::new(),
            named: BTreeMap::new(),
            first_seen: HashMap::new(),
            refused: BTreeSet::new(),
            above_share: BTreeMap::new(),
            reported: BTreeSet::new(),
            known: Default::default(),
            elder: None,
            ended: RouteCounts::default(),
        }
    }

    /// Path of the bridge's endpoints whose origins crossed no other bridge.
    pub fn own_path(&self) -> &BridgePath {
        &self.own_path
    }

    /// Reconciles the routes with both graphs. Returns whether work is left: for the next
    /// reconciliation, or until the standby delay ends.
    pub fn reconcile(&mut self) -> bool {
        let now = self.networks[0].core.platform.now();
        let mut views = Side::BOTH.map(|side| SideView::of(&self.network(side).core));
        for (view, known) in views.iter_mut().zip(&mut self.known) {
            if known.len() < BRIDGES_MAX {
                known.extend(&view.bridges);
            }
            view.known.extend(&*known);
        }
        self.note_first_seen(now, &views);
        let plan = self.plan(now, &views);
        self.report_elder(&plan);
        for refusal in &plan.refused {
            self.refuse(refusal.clone());
        }
        self.note_above_share(&plan);
        self.end_routes(&plan);
        let are_left = self.begin_routes(&plan);
        let present = Side::BOTH.map(|side| publishers(&views[index(side)]));
        let nobody = HashSet::new();
        for (class, group) in &self.groups {
            let of_topic = present[index(class.side)].get(class.name.as_str());
            group.note_publishers(of_topic.unwrap_or(&nobody));
        }
        self.update();
        plan.is_waiting || are_left
    }

    fn plan(&self, now: Instant, views: &[SideView; 2]) -> Plan {
        let age = |side, guid| {
            let seen = self.first_seen.get(&(side, guid));
            seen.map_or(Duration::ZERO, |seen| now.since(*seen))
        };
        let planner = Planner {
            own: self.settings.own,
            rules: &self.settings.rules,
            find_hash: &*self.settings.find_hash,
            age: &age,
        };
        let [rtps, zenoh] = views;
        planner.plan(rtps, zenoh)
    }

    fn note_first_seen(&mut self, now: Instant, views: &[SideView; 2]) {
        let before = std::mem::take(&mut self.first_seen);
        for side in Side::BOTH {
            for seen in &views[index(side)].endpoints {
                let key = (side, seen.data.guid);
                let first = before.get(&key).copied().unwrap_or(now);
                self.first_seen.insert(key, first);
            }
        }
    }

    fn report_elder(&mut self, plan: &Plan) {
        let elder = plan.parallel.first().copied();
        let elder = elder.filter(|elder| *elder < self.settings.own);
        if elder == self.elder {
            return;
        }
        self.elder = elder;
        let event = elder.map_or(BridgeEvent::Active, |elder| BridgeEvent::StandsBy { elder });
        (self.settings.report)(&event);
    }

    fn refuse(&mut self, refusal: Refusal) {
        if self.refused.len() >= REFUSALS_MAX || !self.refused.insert(refusal.clone()) {
            return;
        }
        self.report_refusal(refusal);
    }

    fn report_refusal(&self, refusal: Refusal) {
        (self.settings.report)(&BridgeEvent::Refused {
            from: refusal.side,
            type_name: shown_type(&refusal.type_name),
            rtps_name: refusal.name,
            reason: refusal.reason,
        });
    }

    /// Reports each participant above its share once.
    fn note_above_share(&mut self, plan: &Plan) {
        let above = plan.above_share.iter();
        self.above_share = above
            .clone()
            .map(|(of, above)| (*of, above.count))
            .collect();
        for (participant, above) in above {
            if self.reported.len() < REFUSALS_MAX && self.reported.insert(*participant) {
                self.report_refusal(above.example.clone());
            }
        }
    }

    /// Ends the routes that the plan lacks or has changed.
    fn end_routes(&mut self, plan: &Plan) {
        let ended = self
            .topics
            .extract_if(.., |key, route| plan.topics.get(key) != Some(&route.wanted));
        let ended: Vec<_> = ended.collect();
        for ((side, origin), route) in ended {
            let is_last = self
                .groups
                .get(&route.class)
                .is_some_and(|of| of.remove(origin));
            if is_last {
                self.groups.remove(&route.class);
            }
            self.end_named(&RouteName::of_topic(side, &route.wanted));
        }
        let ended = self.services.extract_if(.., |key, (wanted, _)| {
            plan.services.get(key) != Some(&*wanted)
        });
        let ended: Vec<_> = ended.collect();
        for (key, (wanted, route)) in ended {
            drop(route);
            self.end_named(&RouteName::of_service(&key, &wanted));
        }
    }

    /// Starts new routes in the order of the plan, up to [`BEGUN_PER_LOOK`] endpoints.
    /// Returns whether some are left.
    fn begin_routes(&mut self, plan: &Plan) -> bool {
        let mut endpoints = 0;
        for key in &plan.order {
            let is_present = match key {
                RouteKey::Topic(key) => self.topics.contains_key(key),
                RouteKey::Service(key) => self.services.contains_key(key),
            };
            if is_present {
                continue;
            }
            endpoints += key.endpoints();
            if endpoints > BEGUN_PER_LOOK {
                return true;
            }
            let (name, outcome) = match key {
                RouteKey::Topic(key) => {
                    let Some(wanted) = plan.topics.get(key) else {
                        continue;
                    };
                    let name = RouteName::of_topic(key.0, wanted);
                    let outcome = self.begin_topic(*key, wanted, &name);
                    (name, outcome)
                }
                RouteKey::Service(key) => {
                    let Some(wanted) = plan.services.get(key) else {
                        continue;
                    };
                    let name = RouteName::of_service(key, wanted);
                    let outcome = self.begin_service(key, wanted, &name);
                    (name, outcome)
                }
            };
            self.note_begin(name, outcome);
        }
        false
    }

    fn begin_topic(
        &mut self,
        (side, origin): (Side, Guid),
        wanted: &WantedTopic,
        name: &RouteName,
    ) -> Result<(), String> {
        let [here, there] = [side, side.other()].map(|side| self.network(side).clone());
        let counters = self.counters(name);
        let counterpart = Counterpart::new(&there, wanted, &counters, &self.changed);
        let counterpart = Arc::new(counterpart.map_err(|error| error.to_string())?);
        let class = TopicClass::of(side, wanted);
        let group = self.groups.entry(class.clone()).or_insert_with(|| {
            TopicGroup::new(&here, class.clone(), &self.own_path, &self.changed)
        });
        group.add(origin, &counterpart);
        let route = TopicRoute {
            wanted: wanted.clone(),
            class,
            _counterpart: counterpart,
        };
        self.topics.insert((side, origin), route);
        Ok(())
    }

    fn begin_service(
        &mut self,
        key: &ServiceKey,
        wanted: &WantedService,
        name: &RouteName,
    ) -> Result<(), String> {
        let [here, there] = [key.side, key.side.other()].map(|side| self.network(side).clone());
        let counters = self.counters(name);
        let route = ServiceRoute::new(
            &here,
            &there,
            &self.own_path,
            (key, wanted),
            &counters,
            &self.changed,
        );
        let route = route.map_err(|error| error.to_string())?;
        self.services.insert(key.clone(), (wanted.clone(), route));
        Ok(())
    }

    /// Counters of a route, also before it starts.
    fn counters(&mut self, name: &RouteName) -> Arc<RouteCounters> {
        let route = self.named.entry(name.clone()).or_default();
        route.counters.clone()
    }

    fn note_begin(&mut self, name: RouteName, outcome: Result<(), String>) {
        if let Err(reason) = outcome {
            if self
                .named
                .get(&name)
                .is_some_and(|route| route.origins == 0)
            {
                self.named.remove(&name);
            }
            return self.refuse_route(name, reason);
        }
        let route = self.named.entry(name.clone()).or_default();
        route.origins += 1;
        if route.origins == 1 {
            let report = self.report_of(&name);
            (self.settings.report)(&BridgeEvent::RouteBegan(report));
        }
    }

    fn refuse_route(&mut self, name: RouteName, reason: String) {
        self.refuse(Refusal {
            side: name.from,
            name: name.rtps_name,
            type_name: name.type_name,
            reason,
        });
    }

    fn end_named(&mut self, name: &RouteName) {
        let Some(route) = self.named.get_mut(name) else {
            return;
        };
        route.origins = route.origins.saturating_sub(1);
        if route.origins > 0 {
            return;
        }
        let report = self.report_of(name);
        self.ended = self.ended.plus(report.counts);
        self.named.remove(name);
        (self.settings.report)(&BridgeEvent::RouteEnded(report));
    }

    fn report_of(&self, name: &RouteName) -> RouteReport {
        let route = self.named.get(name);
        RouteReport {
            kind: name.kind,
            from: name.from,
            zenoh_name: self.settings.rules.zenoh_name(&name.rtps_name),
            rtps_name: name.rtps_name.clone(),
            type_name: shown_type(&name.type_name),
            origins: route.map_or(0, |route| route.origins),
            counts: route.map_or_else(RouteCounts::default, |route| route.counters.counts()),
        }
    }

    /// Subscribes, serves and ends calls, according to the matches of the routes.
    fn update(&mut self) {
        let mut failed: Vec<(RouteName, EndpointError)> = Vec::new();
        for (class, group) in &self.groups {
            if let Err(error) = group.update() {
                let of_class = |route: &&TopicRoute| route.class == *class;
                if let Some(route) = self.topics.values().find(of_class) {
                    failed.push((RouteName::of_topic(class.side, &route.wanted), error));
                }
            }
        }
        for (key, (wanted, route)) in &mut self.services {
            if let Err(error) = route.update() {
                failed.push((RouteName::of_service(key, wanted), error));
            }
        }
        for (name, error) in failed {
            self.refuse_route(name, error.to_string());
        }
    }

    /// The present routes, and the sum of all counts.
    pub fn status(&self) -> BridgeStatus {
        let routes: Vec<RouteReport> = self.named.keys().map(|name| self.report_of(name)).collect();
        let counts = routes.iter().map(|route| route.counts);
        BridgeStatus {
            total: counts.fold(self.ended, RouteCounts::plus),
            above_share: self.above_share.clone(),
            routes,
        }
    }

    /// Ends all routes, when the bridge stops.
    pub fn end_all(&mut self) {
        self.end_routes(&Plan::default());
    }

    fn network(&self, side: Side) -> &Arc<Network> {
        &self.networks[index(side)]
    }
}

impl RouteName {
    fn of_topic(side: Side, wanted: &WantedTopic) -> Self {
        Self {
            kind: RouteKind::Topic,
            from: side,
            rtps_name: wanted.rtps_name.clone(),
            type_name: wanted.type_name.clone(),
        }
    }

    fn of_service(key: &ServiceKey, wanted: &WantedService) -> Self {
        Self {
            kind: RouteKind::Service,
            from: key.side,
            rtps_name: wanted.rtps_name.clone(),
            type_name: key.type_name.clone(),
        }
    }
}

/// Index of a side in arrays.
fn index(side: Side) -> usize {
    match side {
        Side::Rtps => 0,
        Side::Zenoh => 1,
    }
}

/// The publishers of each topic.
fn publishers(view: &SideView) -> HashMap<&str, HashSet<Guid>> {
    let endpoints = view.endpoints.iter();
    let writers = endpoints.filter(|seen| seen.place.role == Role::Publisher);
    let mut topics: HashMap<&str, HashSet<Guid>> = HashMap::new();
    for seen in writers {
        let of_topic = topics.entry(&seen.place.name).or_default();
        of_topic.insert(seen.data.guid);
    }
    topics
}

fn shown_type(dds_name: &str) -> String {
    ros_type_name(dds_name).unwrap_or_else(|| dds_name.into())
}

#[cfg(test)]
mod tests {
    use pteros_rtps::discovery::data::EndpointData;
    use pteros_rtps::id::{EntityId, GuidPrefix, VendorId};
    use pteros_rtps::qos::EndpointQos;

    use super::super::view::SeenEndpoint;
    use super::*;
    use crate::key::Place;

    /// Regression: each topic's group got the publishers of all topics, so that time and memory
    /// grew by the square of their number.
    #[test]
    fn a_group_is_told_the_publishers_of_its_topic_alone() {
        let seen = |number: u16| {
            let [high, low] = number.to_be_bytes();
            let entity = EntityId::new([0, high, low], EntityId::KIND_WRITER_NO_KEY);
            let guid = GuidPrefix([9; 12]).with(entity);
            let topic = format!("rt/topic_{}", number / 3);
            let data = EndpointData::new(guid, &topic, "a::msg::dds_::B_", EndpointQos::default());
            SeenEndpoint {
                place: Place::of(&data).unwrap(),
                path: None,
                vendor: VendorId::default(),
                data: Arc::new(data),
            }
        };
        let view = SideView {
            endpoints: (0..2_100).map(seen).collect(),
            ..SideView::default()
        };
        let topics = publishers(&view);
        assert_eq!(topics.len(), 700);
        assert!(topics.values().all(|of_topic| of_topic.len() == 3));
    }
}
