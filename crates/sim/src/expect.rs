//! What else the oracle expects of single endpoints: volatile readers get no
//! history, expired samples reach nobody, the last sample reaches everybody,
//! silence is told at its time, counts add up.

use std::collections::BTreeMap;

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{Durability, History, Liveliness, Reliability};

use crate::cast::{Bond, Cast, ReaderRole, Verdict, WriterRole, is_reliable, verdict};
use crate::check::{living_readers, living_writers};
use crate::message::INSTANCES;
use crate::plan::Fault;
use crate::world::World;

/// Longer than anything is under way, stragglers, clogs and pauses included.
const UNDER_WAY_MAX: u64 = 6_000_000_000;

impl ReaderRole {
    /// I3: a volatile reader gets nothing from long before it was born.
    pub(crate) fn judge_age(&self, writer: &WriterRole, w: usize, number: i64) -> Option<String> {
        if self.endpoint.data.qos.durability >= Durability::TransientLocal {
            return None;
        }
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let written = *writer.times.get(index)?;
        (written + UNDER_WAY_MAX < self.born).then(|| {
            format!(
                "I3 a volatile reader born at {} got w{w} number {number} of {written}",
                self.born
            )
        })
    }

    /// I2: of a publisher of its own process, the only one that it ever had, a
    /// KEEP_LAST reader takes nothing older than its depth keeps.
    pub(crate) fn judge_depth(&self, writer: &WriterRole, number: i64) -> Option<String> {
        let History::KeepLast(depth) = self.endpoint.data.qos.history else {
            return None;
        };
        let is_plain = !writer.keyed && self.wants.is_none() && writer.group.is_none();
        let is_local = writer.home.place == self.home.place;
        if !is_plain || !is_local || self.bonds.len() > 1 {
            return None;
        }
        let behind = writer.written.saturating_sub(u64::try_from(number).ok()?);
        (behind >= u64::from(depth)).then(|| {
            format!("I2 number {number} was kept at depth {depth}, though {behind} came later")
        })
    }

    /// Notes what a call of the engine brought it.
    pub(crate) fn note_stir(&mut self, now: u64) {
        let received = self.endpoint.counts().received;
        if received != self.received {
            self.received = received;
            self.stirred = now;
            let span = self.endpoint.data.qos.deadline;
            self.deadline.expect(now, span, false);
            self.deadline.since = Some(now);
        }
    }

    /// Whether somebody counts the time from sample to sample.
    pub(crate) fn is_watched(&self) -> bool {
        !self.gone && !self.endpoint.data.qos.deadline.is_infinite()
    }

    /// I5: as many missed deadlines as there were. Exact where each sample was
    /// handed on when it came: none waited for an earlier one or for room.
    fn check_deadlines(&self, r: usize, now: u64) -> Option<String> {
        let qos = &self.endpoint.data.qos;
        let may_wait = qos.resource_limits.max_samples.is_some() || self.endpoint.held_up() > 0;
        if !self.is_watched() || self.unsure || may_wait {
            return None;
        }
        let mut deadline = self.deadline;
        deadline.expect(now, qos.deadline, false);
        (deadline.told != deadline.expected).then(|| {
            format!(
                "I5 r{r}: {} deadlines missed, told {}",
                deadline.expected, deadline.told
            )
        })
    }

    /// Those of its writers with which it was matched once and still is, none
    /// of them strange; `None` if there are others.
    fn steady_writers<'c>(&self, cast: &'c Cast) -> Option<Vec<(&'c WriterRole, Bond)>> {
        let mut found = Vec::new();
        for (guid, bond) in &self.bonds {
            let writer = &cast.writers[*cast.by_guid.get(guid)?];
            let ours = writer.bonds.get(&self.endpoint.data.guid)?;
            let steady = bond.epochs == 1 && ours.epochs == 1 && bond.matched && ours.matched;
            if !steady {
                return None;
            }
            found.push((writer, *ours));
        }
        Some(found)
    }

    fn heard_of(&self, writer: Guid) -> &[i64] {
        self.heard.get(&writer).map_or(&[], |heard| &heard.numbers)
    }

    /// I1: with one steady reliable writer the newest sample always arrives,
    /// whatever was overwritten before it.
    fn check_newest(&self, cast: &Cast, r: usize) -> Option<String> {
        let writers = self.steady_writers(cast)?;
        let [(writer, bond)] = writers[..] else {
            return None;
        };
        let (offered, requested) = (&writer.endpoint.data.qos, &self.endpoint.data.qos);
        let counts = is_reliable(offered, requested) && offered.lifespan.is_infinite();
        if !counts || self.holds_samples() || bond.since > writer.written {
            return None;
        }
        let newest = self.heard_of(writer.endpoint.guid()).last().copied();
        let w = *cast.by_guid.get(&writer.endpoint.guid())?;
        // What was ended or is not wanted may have driven older ones out.
        let is_told = |n: i64| {
            let is_end = u64::try_from(n)
                .is_ok_and(|n| writer.ends.contains_key(&n) || writer.set_ends.contains(&n));
            !is_end && self.is_wanted(w, n)
        };
        let written = i64::try_from(writer.written).ok().filter(|n| is_told(*n))?;
        (newest != Some(written)).then(|| {
            format!("I1 r{r}: the newest sample is {newest:?}, its only writer wrote {written}")
        })
    }

    /// I2: of steady reliable writers, only what they wrote since the match can
    /// have been lost. What they kept from before and overwrote is history. Of
    /// others anything may be, once with each match.
    fn check_history_is_no_loss(&self, cast: &Cast, r: usize, slack: u64) -> Option<String> {
        let (mut most, mut cut) = (0, 0);
        for (guid, theirs) in &self.bonds {
            let writer = &cast.writers[*cast.by_guid.get(guid)?];
            let heard = self.heard_of(*guid);
            let ours = writer.bonds.get(&self.endpoint.data.guid);
            let steady = ours.filter(|ours| ours.epochs == 1 && theirs.epochs == 1);
            let (offered, requested) = (&writer.endpoint.data.qos, &self.endpoint.data.qos);
            let tells = is_reliable(offered, requested) && writer.home.place != self.home.place;
            let Some(ours) = steady.filter(|_| tells) else {
                // Who goes ends the instances of a topic with keys (seed 6132).
                let ends = match writer.keyed && writer.gone {
                    true => u64::from(INSTANCES),
                    false => 0,
                };
                let told = (writer.written + ends) * u64::from(theirs.epochs);
                most += told.saturating_sub(heard.len() as u64);
                continue;
            };
            // It may have heard what the writer had told others before.
            let before = writer.times.partition_point(|at| at + slack < theirs.at);
            let before = ours.since.saturating_sub(1).min(before as u64);
            let heard = heard.iter();
            let heard = heard.filter(|n| u64::try_from(**n).is_ok_and(|n| n > before));
            most += writer.written.saturating_sub(before + heard.count() as u64);
            // Of one set a late joiner's depth may have left a part, which counts
            // as lost with it (seed 4834).
            let mut parts = BTreeMap::<usize, u64>::new();
            for (_, set) in writer.in_set.range(..=before) {
                *parts.entry(*set).or_default() += 1;
            }
            let part = parts.values().max().copied().unwrap_or(0);
            cut += part.saturating_sub(1);
        }
        let counts = self.endpoint.counts();
        if counts.incomplete_sets > 0 {
            most += cut;
        }
        let lost = counts.lost;
        (lost > most).then(|| {
            format!("I2 r{r}: lost {lost}, though its writers wrote only {most} that it did not get since they were matched")
        })
    }

    /// I2: between the first and the last sample of a best-effort writer every
    /// number was received or lost.
    fn check_best_effort(&self, cast: &Cast, r: usize) -> Option<String> {
        let writers = self.steady_writers(cast)?;
        let [(writer, _)] = writers[..] else {
            return None;
        };
        let (offered, requested) = (&writer.endpoint.data.qos, &self.endpoint.data.qos);
        let counts = self.endpoint.counts();
        let countable = !is_reliable(offered, requested)
            && requested.durability == Durability::Volatile
            && writer.home.place != self.home.place
            && offered.lifespan.is_infinite()
            && !writer.keyed
            && self.wants.is_none()
            && writer.set_ends.is_empty()
            && counts.overwritten == 0;
        let heard = self.heard_of(writer.endpoint.guid());
        let (first, last) = (heard.first()?, heard.last()?);
        let told = counts.received + counts.lost;
        let expected = last.abs_diff(*first) + 1;
        (countable && told != expected).then(|| {
            format!(
                "I2 r{r}: {first} to {last} of a best-effort writer, received {} and lost {}",
                counts.received, counts.lost
            )
        })
    }

    /// I5: with nothing written for long, the manual writers are silent and
    /// the automatic ones alive.
    fn check_alive(&self, cast: &Cast, r: usize) -> Option<String> {
        let matched = self.bonds.iter().filter(|(_, bond)| bond.matched);
        let writers: Option<Vec<&WriterRole>> = matched
            .map(|(guid, _)| Some(&cast.writers[*cast.by_guid.get(guid)?]))
            .collect();
        let writers = writers?;
        let silent = writers.iter().filter(|writer| {
            let qos = &writer.endpoint.data.qos;
            qos.liveliness != Liveliness::Automatic && !qos.lease_duration.is_infinite()
        });
        let silent = silent.count();
        let expected = (writers.len() - silent, silent);
        (self.alive != expected).then(|| {
            let (alive, silent) = expected;
            format!(
                "I5 r{r}: {alive} writers live and {silent} are silent, told {:?}",
                self.alive
            )
        })
    }

    /// I5: missed deadlines go on being told while nothing comes.
    fn check_deadline(&self, r: usize, now: u64) -> Option<String> {
        let deadline = self.endpoint.data.qos.deadline;
        let span = u64::try_from(deadline.as_nanos()).ok()?;
        let due = self.received > 0 && !deadline.is_infinite();
        let silence = now.saturating_sub(self.stirred);
        (due && silence > span).then(|| {
            format!("I5 r{r}: {silence} ns of silence without a missed deadline of {span} ns")
        })
    }
}

impl World {
    /// Checks single readers and misfits when all is at rest.
    pub(crate) fn check_expectations(&self) {
        if self.has_failed() {
            return;
        }
        let now = self.now();
        let paused: Vec<bool> = self.places().iter().map(|p| p.was_paused).collect();
        let slack = self.plan.under_way_max();
        let mut cast = self.cast.lock();
        let mut wrong = Vec::new();
        for (r, reader) in living_readers(&cast) {
            wrong.extend(reader.check_newest(&cast, r));
            wrong.extend(reader.check_best_effort(&cast, r));
            wrong.extend(reader.check_history_is_no_loss(&cast, r, slack));
            wrong.extend(reader.check_alive(&cast, r));
            wrong.extend(reader.check_deadline(r, now));
            if !paused[reader.home.place] {
                wrong.extend(reader.check_deadlines(r, now));
            }
            for (w, writer) in living_writers(&cast) {
                wrong.extend(check_misfit((w, writer), (r, reader)));
            }
        }
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }

    /// I11: a publish that timed out had somebody to wait for.
    pub(crate) fn judge_time_out(&self, w: usize) -> Option<String> {
        let cast = self.cast.lock();
        let writer = &cast.writers[w];
        let matched = writer.bonds.iter().filter(|(_, bond)| bond.matched);
        let waited_for = matched.into_iter().any(|(guid, _)| {
            let index = cast.by_guid.get(guid).filter(|_| !cast.is_stranger(*guid));
            let reader = index.map(|index| &cast.readers[*index]);
            reader.is_none_or(|r| r.endpoint.data.qos.reliability == Reliability::Reliable)
        });
        // Of two processes with one GUID, the reader may be either's.
        if !waited_for && !cast.blurred {
            return Some(format!("I11 w{w}: timed out, though nobody is waited for"));
        }
        // Readers of its own process acknowledge nothing, their queues are full.
        let mut matched = writer.bonds.iter().filter(|(_, bond)| bond.matched);
        let place = writer.home.place;
        let is_alone = !matched.any(|(guid, _)| cast.home(*guid).is_some_and(|h| h.place == place));
        (is_alone && writer.endpoint.is_acknowledged())
            .then(|| format!("I11 w{w}: timed out, though all is acknowledged"))
    }

    /// I6: after a write the heartbeat follows at its quickest pace.
    pub(crate) fn judge_pace(&self, w: usize) -> Option<String> {
        let (endpoint, paced) = {
            let cast = self.cast.lock();
            (cast.writers[w].endpoint.clone(), cast.writers[w].paced)
        };
        if paced {
            return None;
        }
        let now = pteros_rtps::time::Instant::from_nanos(self.now());
        (!endpoint.heartbeat_follows(now))
            .then(|| format!("I6 w{w}: the heartbeat after a write comes late"))
    }

    /// I5: a match ended although its process was heard within the lease.
    pub(crate) fn judge_end(&self, place: usize, peer: Guid) -> Option<String> {
        let lease = u64::try_from(self.plan.lease.as_nanos()).ok()?;
        let cast = self.cast.lock();
        let index = *cast.by_guid.get(&peer)?;
        let (home, gone) = match peer.entity.is_writer() {
            true => (cast.writers[index].home, cast.writers[index].gone),
            false => (cast.readers[index].home, cast.readers[index].gone),
        };
        if gone || home.place == place || self.places()[place].was_paused {
            return None;
        }
        drop(cast);
        let heard = *self.network().heard.get(&(home.place, place))?;
        // Leases are renewed by ordinary traffic now and then only.
        let slack = 250_000_000;
        let silence = self.now().saturating_sub(heard);
        (silence + slack < lease).then(|| {
            format!("I5 p{place}: lost {peer}, which was heard {silence} ns ago, lease {lease}")
        })
    }

    /// Whether ends of matches can be judged by who was heard.
    pub(crate) fn can_judge_ends(&self) -> bool {
        let blurs = [
            Fault::Pause,
            Fault::Attack,
            Fault::Crash,
            Fault::Corrupt,
            Fault::Return,
        ];
        !blurs.iter().any(|fault| self.plan.has(*fault))
    }
}

/// I5: both sides of a misfit are told of it.
fn check_misfit(
    (w, writer): (usize, &WriterRole),
    (r, reader): (usize, &ReaderRole),
) -> Option<String> {
    let (ours, theirs) = (&writer.endpoint.data, &reader.endpoint.data);
    if verdict(ours, theirs) != Some(Verdict::OtherQos) {
        return None;
    }
    let told = (
        writer.misfits.contains_key(&theirs.guid),
        reader.misfits.contains_key(&ours.guid),
    );
    (told != (true, true)).then(|| {
        format!(
            "I5 w{w} and r{r} do not fit: writer told {}, reader told {}",
            told.0, told.1
        )
    })
}
