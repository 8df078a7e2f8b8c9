//! Coherent sets and ordered access (PRESENTATION, DDS 1.4 §2.2.3.6).
//!
//! This part of the oracle decides which writers form a publisher group, when
//! coherent sets begin and end, and what readers with coherent access may see.
//!
//! I17: a reader sees a set after its end, whole or not at all, and a missing set
//! is counted. With ordered group access the samples of a group come in the order
//! of writing.

use pteros_rtps::qos::{Durability, History, Presentation, Reliability};
use pteros_rtps::time::Duration;
use pteros_runtime::EndpointSpec;

use super::model::records::{EndpointLocation, Group, Set};
use super::world::GraphWorld;

/// RTPS 2.5 §9.6.2.2.2, access scopes.
const TOPIC: u8 = 1;
const GROUP: u8 = 2;

impl GraphWorld {
    /// Gives a subscription a random PRESENTATION. A writer gets that of its group.
    pub fn with_random_presentation(
        &self,
        mut spec: EndpointSpec,
        is_writer: bool,
    ) -> EndpointSpec {
        if !self.plan.coherent {
            return spec;
        }
        // A sample that waits for its set counts for the deadline when the set is
        // seen.
        spec.qos.deadline = Duration::INFINITE;
        let mut schedule = self.schedule.lock();
        if !is_writer && schedule.random.u8(0..4) > 0 {
            spec.qos.presentation = random_presentation(&mut schedule.random, 2);
        }
        if self.plan.ordered && schedule.random.u8(0..4) > 0 {
            let qos = &mut spec.qos;
            qos.reliability = Reliability::Reliable;
            qos.history = History::KeepAll;
            qos.lifespan = Duration::INFINITE;
            if !is_writer {
                qos.durability = Durability::Volatile;
                qos.presentation = random_presentation(&mut schedule.random, 0);
            }
        }
        spec
    }

    /// The publisher group of a new writer, if any.
    pub fn random_group(&self, location: EndpointLocation) -> Option<usize> {
        if !self.plan.coherent || self.schedule.lock().random.u8(0..4) == 0 {
            return None;
        }
        let same = |group: &Group| {
            (group.location.process, group.location.incarnation)
                == (location.process, location.incarnation)
        };
        let known = self.model.lock().groups.iter().position(same);
        if let Some(group) = known {
            self.end_set(group);
            return known;
        }
        let less = u8::from(!self.plan.ordered);
        let presentation = random_presentation(&mut self.schedule.lock().random, less);
        let core = self.sim.core(location.process)?;
        let engine = core.create_publisher_group(presentation);
        let mut model = self.model.lock();
        model.groups.push(Group {
            location,
            engine,
            open: None,
        });
        Some(model.groups.len() - 1)
    }

    /// Begins a coherent set before a write now and then.
    pub fn maybe_begin_set(&self, group: Option<usize>) {
        let Some(group) = group else { return };
        let begins = self.schedule.lock().random.u8(0..3) == 0;
        let mut model = self.model.lock();
        if !begins || model.groups[group].open.is_some() {
            return;
        }
        let set = model.sets.len();
        model.sets.push(Set::default());
        model.groups[group].open = Some(set);
        let engine = model.groups[group].engine.clone();
        drop(model);
        if let Err(error) = engine.begin_coherent_changes() {
            self.fail(format!("I11 a coherent set cannot begin: {error}"));
        }
    }

    /// Ends the open coherent set after a write now and then.
    pub fn maybe_end_set(&self, group: Option<usize>) {
        let Some(group) = group else { return };
        if self.schedule.lock().random.u8(0..3) == 0 {
            self.end_set(group);
        }
    }

    /// Ends all open sets of running processes.
    pub fn end_sets(&self) {
        let groups = self.model.lock().groups.len();
        (0..groups).for_each(|group| self.end_set(group));
    }

    /// Ends the open set of a writer's group before the writer is removed.
    pub fn end_set_of(&self, writer: usize) {
        let group = self.model.lock().writers[writer].group;
        if let Some(group) = group {
            self.end_set(group);
        }
    }

    fn end_set(&self, index: usize) {
        let now = self.sim.now();
        let mut guard = self.model.lock();
        let model = &mut *guard;
        let group = &mut model.groups[index];
        let location = group.location;
        let incarnations =
            self.sim.processes()[location.process].incarnations == location.incarnation;
        let Some(core) = self.sim.core(location.process).filter(|_| incarnations) else {
            return;
        };
        let Some(set) = group.open.take() else { return };
        let engine = group.engine.clone();
        let set = &mut model.sets[set];
        set.ended = true;
        let all = model.writers.iter().enumerate();
        let members = all.filter(|(_, w)| w.group == Some(index) && !w.gone);
        set.members = members.map(|(w, _)| w).collect();
        let of_group = engine.presentation().is_of_group() && !set.messages.is_empty();
        let mut ending = Vec::new();
        let members = model.writers.iter_mut().enumerate();
        for (w, writer) in members.filter(|(_, w)| w.group == Some(index) && !w.gone) {
            // The end of a set takes a sequence number of each writer with messages
            // in it.
            if of_group || set.of(w).next().is_some() {
                writer.written += 1;
                writer.set_ends.insert(writer.written);
                writer.times.push(now);
                writer.orders.push(model.orders);
                ending.push(w);
            }
        }
        // The end of a set asserts liveliness like a message.
        for w in ending {
            model.record_liveliness(w, now, false);
        }
        drop(guard);
        if let Err(error) = engine.end_coherent_changes(&core) {
            self.fail(format!("I11 a coherent set cannot end: {error}"));
        }
        self.sim
            .trace_line(format_args!("a coherent set of p{} ends", location.process));
        self.sim.drain_ready(location.process);
        self.sim.poll_process(location.process);
    }

    /// I17: checks all running readers after everything was taken.
    pub fn check_sets(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let model = self.model.lock();
        for (r, reader) in model.living_readers().filter(|(_, r)| r.holds_samples()) {
            wrong.extend(model.check_completeness(r, reader));
            // The reader waits 5 s for a writer, and a flow controller may take longer.
            let has_long_waits = self.plan.has_long_outages() || model.flow_was_late;
            wrong.extend(model.check_order(r, reader, has_long_waits));
        }
        wrong
    }
}

/// A random presentation. The higher `less`, the more often it has topic scope or
/// no ordered access.
fn random_presentation(random: &mut fastrand::Rng, less: u8) -> Presentation {
    let mut is_less = || random.u8(0..4) < less;
    Presentation {
        access_scope: if is_less() { TOPIC } else { GROUP },
        coherent: true,
        ordered: !is_less(),
    }
}
