//! What must be true after healing: discovery complete, everything reliable
//! delivered and acknowledged, events as the oracle counted them, the graph as
//! it is, quiet on the network, history for late joiners.

use std::collections::BTreeSet;

use pteros_rmw::EndpointSpec;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability, ResourceLimits};

use crate::cast::{Cast, ReaderRole, Verdict, WriterRole, is_lossless, is_reliable, verdict};
use crate::plan::Fault;
use crate::world::World;

const SECOND: u64 = 1_000_000_000;

/// Samples that a late joiner's queue holds where limits are tight.
const QUEUE_TIGHT: u32 = 3;

/// Samples that some late joiners want.
const DEPTH_LATE: u32 = 4;

impl World {
    /// I9: an address that never answered gets at most thrice what was sent in
    /// its name. The ghosts' own address never answers.
    pub(crate) fn check_amplification(&self) {
        let network = self.network();
        let mut wrong = Vec::new();
        for ((place, to), sent) in &network.astray {
            let received = network.injected.get(place).copied().unwrap_or(0);
            let is_victim = to.address[12..] == crate::misfortune::VICTIM;
            if is_victim && *sent > 3 * received {
                wrong.push(format!(
                    "I9 p{place} sent {sent} bytes to {to}, was sent {received} in its name"
                ));
            }
        }
        drop(network);
        self.cast.lock().fail_all(wrong);
    }

    /// I6: a moment after healing, readers that nobody lost have everything.
    pub(crate) fn check_repaired(&self) {
        if self.has_failed() {
            return;
        }
        let mut cast = self.cast.lock();
        if cast.blurred {
            return;
        }
        let mut wrong = Vec::new();
        for (w, writer) in living_writers(&cast) {
            // A flow controller has its own pace of repair.
            if !writer.paced && !writer.endpoint.is_acknowledged() && writer.is_steady(&cast) {
                wrong.push(format!(
                    "I6 w{w} is not acknowledged a moment after healing, though no match was lost"
                ));
            }
        }
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }

    /// I6: some time after healing, all who fit have met.
    pub(crate) fn check_met(&self) {
        if self.has_failed() {
            return;
        }
        let mut cast = self.cast.lock();
        let mut wrong = Vec::new();
        for (w, writer) in living_writers(&cast) {
            for (r, reader) in living_readers(&cast) {
                if verdict(&writer.endpoint.data, &reader.endpoint.data) != Some(Verdict::Fits) {
                    continue;
                }
                if !writer.is_matched(reader) || !reader.is_matched(writer) {
                    wrong.push(format!(
                        "I6 w{w} and r{r} fit and have not met: writer says {}, reader says {}",
                        writer.is_matched(reader),
                        reader.is_matched(writer)
                    ));
                }
            }
        }
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }

    /// Everything else that holds once leases of the dead have ended.
    pub(crate) fn check_rest(&self) {
        if self.has_failed() {
            return;
        }
        let now = self.now();
        let paused: Vec<bool> = self.places().iter().map(|p| p.was_paused).collect();
        let mut cast = self.cast.lock();
        let mut wrong = Vec::new();
        for (w, writer) in living_writers(&cast) {
            wrong.extend(gone_peers(&cast, &format!("w{w}"), &writer.bonds));
            let ghost = writer.has_stranger(&cast);
            if !ghost && !writer.endpoint.is_acknowledged() {
                wrong.push(format!("I6 w{w} is not acknowledged after healing"));
            }
            if !paused[writer.home.place] {
                wrong.extend(writer.check_watches(w, now));
            }
            for (r, reader) in living_readers(&cast) {
                wrong.extend(check_pair((w, writer), (r, reader)));
            }
        }
        for (r, reader) in living_readers(&cast) {
            wrong.extend(gone_peers(&cast, &format!("r{r}"), &reader.bonds));
            wrong.extend(reader.check_counts(r));
        }
        cast.fail_all(wrong);
        self.note_failure(&cast);
        drop(cast);
        self.check_graphs();
    }

    /// I12: every context's graph is the truth.
    fn check_graphs(&self) {
        let mut nodes = BTreeSet::new();
        let mut endpoints = BTreeSet::new();
        let mut prefixes = BTreeSet::new();
        let of_services = self.service_endpoints();
        let cast = self.cast.lock();
        for (index, place) in self.places().iter().enumerate() {
            let Some(life) = &place.life else { continue };
            let prefix = life.core.prefix();
            prefixes.insert(prefix);
            for (key, name) in &life.nodes {
                let here = |home: &crate::cast::Home| home.place == index && home.node == *key;
                let writers = living_writers(&cast).filter(|(_, w)| here(&w.home));
                let readers = living_readers(&cast).filter(|(_, r)| here(&r.home));
                let mut writers: BTreeSet<Guid> = writers.map(|(_, w)| w.endpoint.guid()).collect();
                let mut readers: BTreeSet<Guid> =
                    readers.map(|(_, r)| r.endpoint.data.guid).collect();
                for (_, reader, writer) in of_services.iter().filter(|(home, ..)| here(home)) {
                    readers.insert(*reader);
                    writers.insert(*writer);
                }
                endpoints.extend(writers.iter().chain(&readers).copied());
                nodes.insert((prefix, name.clone(), readers, writers));
            }
        }
        let strangers = cast.strangers.clone();
        drop(cast);
        let mut wrong = Vec::new();
        for (index, place) in self.places().iter().enumerate() {
            let Some(life) = &place.life else { continue };
            let graph = life.core.graph();
            let set = |list: Vec<Guid>| list.into_iter().collect::<BTreeSet<Guid>>();
            let told_nodes: BTreeSet<_> = graph
                .nodes()
                .into_iter()
                .filter(|n| !strangers.contains(&n.participant))
                .map(|n| (n.participant, n.name, set(n.readers), set(n.writers)))
                .collect();
            let told: BTreeSet<Guid> = graph
                .endpoints()
                .into_iter()
                .map(|e| e.data.guid)
                .filter(|g| !strangers.contains(&g.prefix))
                .collect();
            let met: BTreeSet<_> = graph
                .participants()
                .into_iter()
                .map(|p| p.prefix)
                .chain([life.core.prefix()])
                .filter(|p| !strangers.contains(p))
                .collect();
            if told != endpoints {
                let extra: Vec<_> = told.difference(&endpoints).collect();
                let missing: Vec<_> = endpoints.difference(&told).collect();
                wrong.push(format!(
                    "I12 p{index}: endpoints in the graph that are none {extra:?}, missing {missing:?}"
                ));
            }
            if told_nodes != nodes {
                let extra: Vec<_> = told_nodes.difference(&nodes).collect();
                let missing: Vec<_> = nodes.difference(&told_nodes).collect();
                wrong.push(format!(
                    "I12 p{index}: nodes in the graph that are none {extra:?}, missing {missing:?}"
                ));
            }
            if met != prefixes {
                wrong.push(format!(
                    "I12 p{index}: knows {met:?}, alive are {prefixes:?}"
                ));
            }
        }
        let mut cast = self.cast.lock();
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }

    /// I7: with nothing to do, nothing but discovery is sent, and not much.
    pub(crate) fn check_quiet(&self) {
        if self.has_failed() {
            return;
        }
        let lenient = self.cast.lock().lenient;
        if lenient || self.is_haunted() {
            return;
        }
        self.network().users_sent = Some(0);
        let before = self.network().traffic;
        self.run_until(self.now() + 5 * SECOND);
        let mut network = self.network();
        let of_users = network.users_sent.take().unwrap_or(0);
        let sent = network.traffic.sent - before.sent;
        drop(network);
        if of_users > 0 {
            self.fail(format!(
                "I7 {of_users} datagrams of user endpoints with nothing to do"
            ));
        }
        // Per process: 34 copies of an announcement a second at the shortest
        // lease, and proofs of life to each other.
        let places = self.plan.hosts.len() as u64;
        let budget = 5 * places * (2 * 34 + 12 * places);
        if sent > budget {
            self.fail(format!(
                "I7 {sent} datagrams in 5 s of rest, expected {budget}"
            ));
        }
        self.note_failure(&self.cast.lock());
    }

    /// Whether somebody still knows a stranger, whose lease may be for ever and who
    /// is asked for acknowledgements that never come: by users' writers, and by
    /// those of the graph (seed 6050).
    fn is_haunted(&self) -> bool {
        let strangers = self.cast.lock().strangers.clone();
        let places = self.places();
        let living = places.iter().filter_map(|place| place.life.as_ref());
        let mut known = living.flat_map(|life| life.core.graph().participants());
        known.any(|participant| strangers.contains(&participant.prefix))
    }

    /// I4: a late joiner gets what transient-local writers keep.
    pub(crate) fn check_late_joiners(&self) {
        if self.has_failed() {
            return;
        }
        let wanted: Vec<(usize, EndpointSpec)> = {
            let cast = self.cast.lock();
            let mut topics = BTreeSet::new();
            for (_, writer) in living_writers(&cast) {
                let data = &writer.endpoint.data;
                topics.insert((data.topic.clone(), data.type_name.clone()));
            }
            let places = self.places();
            let live = places.iter().enumerate().filter(|(_, p)| p.life.is_some());
            let live: Vec<usize> = live.map(|(index, _)| index).collect();
            let spec = |(n, (topic, type_name)): (usize, (String, String))| {
                let place = *live.get(n % live.len().max(1))?;
                // Of several writers, nobody can say whose samples push out
                // whose.
                let on_topic = |w: &WriterRole| w.endpoint.data.topic == topic;
                let is_sole = living_writers(&cast).filter(|(_, w)| on_topic(w)).count() == 1;
                let history = match is_sole && self.script.lock().random.bool() {
                    true => History::KeepLast(DEPTH_LATE),
                    false => History::KeepAll,
                };
                let small = self.plan.has(Fault::Tight) && history == History::KeepAll;
                let max_samples = small.then_some(QUEUE_TIGHT);
                let spec = EndpointSpec {
                    topic,
                    type_name,
                    qos: EndpointQos {
                        reliability: Reliability::Reliable,
                        durability: Durability::TransientLocal,
                        history,
                        resource_limits: ResourceLimits {
                            max_samples,
                            ..ResourceLimits::default()
                        },
                        ..EndpointQos::default()
                    },
                    ..EndpointSpec::default()
                };
                Some((place, spec))
            };
            topics.into_iter().enumerate().filter_map(spec).collect()
        };
        let joined: Vec<usize> = wanted
            .into_iter()
            .filter_map(|(place, spec)| self.add_reader(place, self.varied(spec, false)))
            .collect();
        self.run_until(self.now() + 3 * SECOND);
        if self.has_failed() {
            return;
        }
        let mut cast = self.cast.lock();
        let mut wrong = Vec::new();
        for r in joined {
            for (w, writer) in living_writers(&cast) {
                wrong.extend(check_history((w, writer), (r, &cast.readers[r])));
            }
            // What was overwritten before it came is none of its losses.
            let lost = cast.readers[r].endpoint.counts().lost;
            if lost > 0 {
                wrong.push(format!("I2 late r{r} lost {lost} with nothing written"));
            }
        }
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }
}

pub(crate) fn living_writers(cast: &Cast) -> impl Iterator<Item = (usize, &WriterRole)> {
    cast.writers.iter().enumerate().filter(|(_, w)| !w.gone)
}

pub(crate) fn living_readers(cast: &Cast) -> impl Iterator<Item = (usize, &ReaderRole)> {
    cast.readers.iter().enumerate().filter(|(_, r)| !r.gone)
}

type Bonds = std::collections::BTreeMap<Guid, crate::cast::Bond>;

/// I5, I6: nobody is matched with the dead.
fn gone_peers(cast: &Cast, name: &str, bonds: &Bonds) -> Vec<String> {
    let matched = bonds.iter().filter(|(_, bond)| bond.matched);
    let dead = matched.filter(|(peer, _)| {
        let index = cast.by_guid.get(peer).copied();
        let gone = |index: usize| match peer.entity.is_writer() {
            true => cast.writers[index].gone,
            false => cast.readers[index].gone,
        };
        !cast.is_stranger(**peer) && index.is_none_or(gone)
    });
    dead.map(|(peer, _)| format!("I5 {name} is still matched with {peer}, which is gone"))
        .collect()
}

impl WriterRole {
    fn is_matched(&self, reader: &ReaderRole) -> bool {
        let guid = reader.endpoint.data.guid;
        self.bonds.get(&guid).is_some_and(|bond| bond.matched)
    }

    /// Whether all its readers live, and know it as it knows them.
    fn is_steady(&self, cast: &Cast) -> bool {
        let matched = self.bonds.iter().filter(|(_, bond)| bond.matched);
        let mut readers = matched.map(|(peer, bond)| {
            let known = !bond.late && !cast.is_stranger(*peer);
            let index = cast.by_guid.get(peer).filter(|_| known);
            index.and_then(|index| cast.readers.get(*index))
        });
        let guid = self.endpoint.guid();
        readers.all(|reader| {
            let bond = reader.filter(|r| !r.gone).and_then(|r| r.bonds.get(&guid));
            bond.is_some_and(|bond| bond.matched && !bond.late)
        })
    }

    /// The numbers of its last so many messages.
    fn last_messages(&self, count: u64) -> Vec<i64> {
        let messages = (1..=self.written).rev();
        let messages = messages.filter(|n| !self.set_ends.contains(n));
        let last = messages.take(usize::try_from(count).unwrap_or(usize::MAX));
        let mut last: Vec<i64> = last.filter_map(|n| i64::try_from(n).ok()).collect();
        last.reverse();
        last
    }

    fn has_stranger(&self, cast: &Cast) -> bool {
        let matched = self.bonds.iter().filter(|(_, bond)| bond.matched);
        matched.into_iter().any(|(peer, _)| cast.is_stranger(*peer))
    }

    /// I5: as many missed deadlines and lapses as there were.
    fn check_watches(&self, w: usize, now: u64) -> Vec<String> {
        let qos = &self.endpoint.data.qos;
        let mut deadline = self.deadline;
        deadline.expect(now, qos.deadline, false);
        let mut liveliness = self.liveliness;
        liveliness.expect(now, qos.lease_duration, true);
        let mut wrong = Vec::new();
        if deadline.told != deadline.expected {
            wrong.push(format!(
                "I5 w{w}: {} deadlines missed, told {}",
                deadline.expected, deadline.told
            ));
        }
        if liveliness.told != liveliness.expected && !liveliness.unsure {
            wrong.push(format!(
                "I5 w{w}: liveliness lost {} times, told {}",
                liveliness.expected, liveliness.told
            ));
        }
        wrong
    }
}

impl ReaderRole {
    fn is_matched(&self, writer: &WriterRole) -> bool {
        let guid = writer.endpoint.guid();
        self.bonds.get(&guid).is_some_and(|bond| bond.matched)
    }

    /// I2: what was received was taken, overwritten or expired.
    fn check_counts(&self, r: usize) -> Option<String> {
        let counts = self.endpoint.counts();
        let gone = self.taken + counts.overwritten + counts.expired + counts.purged;
        if counts.received != gone {
            return Some(format!(
                "I2 r{r}: received {}, but took {}, overwrote {}, let {} expire",
                counts.received, self.taken, counts.overwritten, counts.expired
            ));
        }
        (counts.lost != self.lost).then(|| {
            format!(
                "I2 r{r}: counts {} lost, told of {}",
                counts.lost, self.lost
            )
        })
    }
}

/// I1, I2: of a pair that was matched without a break.
fn check_pair(
    (w, writer): (usize, &WriterRole),
    (r, reader): (usize, &ReaderRole),
) -> Option<String> {
    let (offered, requested) = (&writer.endpoint.data.qos, &reader.endpoint.data.qos);
    let ours = writer.bonds.get(&reader.endpoint.data.guid)?;
    let theirs = reader.bonds.get(&writer.endpoint.guid())?;
    let steady = ours.epochs == 1 && theirs.epochs == 1 && ours.matched && theirs.matched;
    if !steady || !is_reliable(offered, requested) || ours.since > writer.written {
        return None;
    }
    let heard = reader.heard.get(&writer.endpoint.guid());
    let heard = heard.map_or(&[][..], |h| &h.numbers[..]);
    if requested.presentation.orders_group() {
        // Judged with all its writers.
        return None;
    }
    if is_lossless(offered, requested) {
        let got: BTreeSet<i64> = heard.iter().copied().collect();
        let missing: Vec<u64> = (ours.since..=writer.written)
            .filter(|n| !writer.ends.contains_key(n) && !writer.set_ends.contains(n))
            .filter(|n| !reader.holds_samples() || !writer.in_set.contains_key(n))
            .filter(|n| {
                let n = i64::try_from(*n).unwrap_or(0);
                reader.is_wanted(w, n) && !got.contains(&n)
            })
            .take(10)
            .collect();
        return (!missing.is_empty()).then(|| {
            format!(
                "I1 r{r} never got {missing:?} of w{w} (matched since {}, {} written)",
                ours.since, writer.written
            )
        });
    }
    // With a single writer, every number since the match is received or lost.
    if reader.bonds.len() == 1
        && requested.durability == Durability::Volatile
        && writer.home.place != reader.home.place
        && offered.lifespan.is_infinite()
        && !writer.keyed
        && reader.wants.is_none()
        && writer.set_ends.is_empty()
    {
        let counts = reader.endpoint.counts();
        let told = counts.received + counts.lost;
        // What came first may be older than the match, if another reader of
        // the process was sent it, or newer, if the reader met the writer
        // later and some were overwritten meanwhile.
        let first = heard.first().and_then(|n| u64::try_from(*n).ok());
        let first = first.unwrap_or(writer.written);
        // What the writer kept when it first told is history, and no loss.
        let kept = match offered.history {
            History::KeepLast(depth) => u64::from(depth),
            History::KeepAll => 0,
        };
        let sure = first.max(ours.since).saturating_add(kept);
        let least = (writer.written + 1).saturating_sub(sure);
        let most = writer.written + 1 - first.min(ours.since);
        let most = if counts.overwritten > 0 {
            u64::MAX
        } else {
            most
        };
        return (!(least..=most).contains(&told)).then(|| {
            format!(
                "I2 r{r}: {least} to {most} of w{w} since {first}, received {} and lost {}",
                counts.received, counts.lost
            )
        });
    }
    None
}

/// I4: of a late joiner and a writer that keeps samples.
fn check_history(
    (w, writer): (usize, &WriterRole),
    (r, reader): (usize, &ReaderRole),
) -> Option<String> {
    let data = &writer.endpoint.data;
    if verdict(data, &reader.endpoint.data) != Some(Verdict::Fits) {
        return None;
    }
    if data.qos.liveliness != Liveliness::Automatic {
        return None;
    }
    let kept = match data.qos.history {
        History::KeepLast(depth) => u64::from(depth),
        History::KeepAll => u64::from(data.qos.resource_limits.max_samples.unwrap_or(5_000)),
    };
    // The last messages are long past their lifespan.
    let kept = match data.qos.lifespan.is_infinite() {
        true => kept,
        false => 0,
    };
    let limited = data.qos.resource_limits.max_samples.is_some();
    if writer.keyed && limited && !writer.ends.is_empty() {
        // Which of the kept ones ends drive out is the engine's affair.
        return None;
    }
    let of_each = writer.keyed && matches!(data.qos.history, History::KeepLast(_));
    let mut offered: Vec<i64> = match of_each || !writer.ends.is_empty() {
        true => writer.kept_of_each(w, kept),
        false => writer.last_messages(kept),
    };
    offered.retain(|number| reader.is_wanted(w, *number));
    let expected = reader.last_of(writer, w, &offered);
    let heard = reader.heard.get(&writer.endpoint.guid());
    let heard = heard.map_or(&[][..], |h| &h.numbers[..]);
    // What a depth of each instance, or of what passes a filter, leaves out may
    // have been taken before the rest came.
    let is_exact = !writer.keyed && reader.wants.is_none();
    let fits = match is_exact {
        true => heard == expected,
        false => {
            expected.iter().all(|number| heard.contains(number))
                && heard.iter().all(|number| offered.contains(number))
        }
    };
    (!fits).then(|| {
        format!(
            "I4 late r{r} of w{w}: got {} ({:?}...), expected {} ({:?}...) to {}",
            heard.len(),
            &heard[..heard.len().min(5)],
            expected.len(),
            &expected[..expected.len().min(5)],
            writer.written
        )
    })
}
