//! Policies of living endpoints that change (DDS 1.4 §2.2.3, column
//! "changeable").
//!
//! A change is judged first, then taken over by the endpoint and its machine,
//! then every match is judged anew: with endpoints of this process here, with
//! remote ones by discovery, which announces the endpoint again under its GUID.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};

use parking_lot::Mutex;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::matching::{Verdict, judge};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::error::QosChangeError;
use crate::graph::free_user_data;
use crate::instance::Lifecycle;
use crate::intake::Intake;
use crate::local::has_manual_lease;
use crate::matching::machine_qos;
use crate::qos::{QosProfile, change};
use crate::reader::ReaderEndpoint;
use crate::writer::WriterEndpoint;

/// What may change of a writer, where publishing looks at it.
pub(crate) struct WriterPolicies {
    announced: Mutex<Arc<EndpointData>>,
    lifespan: AtomicI64,
    code_point: AtomicU8,
    rank: AtomicI32,
    is_timed: bool,
    is_watched: AtomicBool,
    minds_time: AtomicBool,
    autodisposes: AtomicBool,
}

// Relaxed throughout: each stands for itself, and a change takes effect at some
// sample that is published meanwhile, whichever.
impl WriterPolicies {
    /// `is_timed`: the writer minds the time, whatever its policies.
    pub(crate) fn new(data: &Arc<EndpointData>, lifecycle: Lifecycle, is_timed: bool) -> Self {
        let this = Self {
            announced: Mutex::new(data.clone()),
            lifespan: AtomicI64::new(0),
            code_point: AtomicU8::new(0),
            rank: AtomicI32::new(0),
            is_timed,
            is_watched: AtomicBool::new(false),
            minds_time: AtomicBool::new(is_timed),
            autodisposes: AtomicBool::new(false),
        };
        this.store(data.clone(), lifecycle);
        this
    }

    fn store(&self, data: Arc<EndpointData>, lifecycle: Lifecycle) {
        let qos = &data.qos;
        self.lifespan
            .store(qos.lifespan.as_nanos(), Ordering::Relaxed);
        // Other values are announced only: each network maps them its own way.
        let code_point = u8::try_from(qos.transport_priority).unwrap_or(0);
        let code_point = if code_point > 63 { 0 } else { code_point };
        self.code_point.store(code_point, Ordering::Relaxed);
        self.rank.store(qos.transport_priority, Ordering::Relaxed);
        let is_watched = !qos.deadline.is_infinite() || has_manual_lease(qos);
        self.is_watched.store(is_watched, Ordering::Relaxed);
        let minds_time = self.is_timed || is_watched || !qos.lifespan.is_infinite();
        self.minds_time.store(minds_time, Ordering::Relaxed);
        let autodisposes = lifecycle.autodispose_unregistered_instances;
        self.autodisposes.store(autodisposes, Ordering::Relaxed);
        *self.announced.lock() = data;
    }
}

impl WriterEndpoint {
    /// What discovery announces now, changed policies included.
    pub fn announced(&self) -> Arc<EndpointData> {
        self.policies.announced.lock().clone()
    }

    /// LIFESPAN. Under its `state`: no message is made meanwhile whose time of
    /// publication was not looked at.
    pub(crate) fn lifespan(&self) -> Duration {
        Duration::from_nanos(self.policies.lifespan.load(Ordering::Relaxed))
    }

    /// TRANSPORT_PRIORITY as its datagrams carry it, 0 to 63.
    pub(crate) fn code_point(&self) -> u8 {
        self.policies.code_point.load(Ordering::Relaxed)
    }

    /// TRANSPORT_PRIORITY as it ranks paced writers.
    pub(crate) fn transport_priority(&self) -> i32 {
        self.policies.rank.load(Ordering::Relaxed)
    }

    /// Whether its machine watches DEADLINE or LIVELINESS: then a write moves
    /// its next deadline even when nothing is sent.
    pub(crate) fn is_watched(&self) -> bool {
        self.policies.is_watched.load(Ordering::Relaxed)
    }

    /// Whether some policy of its own looks at the clock when a message is
    /// published. Under its `state`, as [`WriterEndpoint::lifespan`].
    pub(crate) fn minds_time(&self) -> bool {
        self.policies.minds_time.load(Ordering::Relaxed)
    }

    /// Unregistering disposes, too.
    pub(crate) fn autodisposes(&self) -> bool {
        self.policies.autodisposes.load(Ordering::Relaxed)
    }
}

impl ReaderEndpoint {
    /// What discovery announces now: changed policies and the content filter
    /// included.
    pub fn announced(&self) -> Arc<EndpointData> {
        self.announced.lock().clone()
    }

    pub(crate) fn set_announced(&self, data: Arc<EndpointData>) {
        *self.announced.lock() = data;
    }
}

impl Core {
    /// Gives a writer the policies of `profile` from now on. Those that may
    /// change do: partition, free data, deadline, latency budget, ownership
    /// strength, transport priority, lifespan and what becomes of unregistered
    /// instances.
    ///
    /// Matches are judged anew: they end, begin, or are told to be impossible.
    /// Whoever is matched then is a late joiner like any other.
    ///
    /// # Errors
    /// See [`QosChangeError`]; nothing has changed then.
    pub fn set_writer_qos(
        &self,
        writer: &Arc<WriterEndpoint>,
        profile: &QosProfile,
    ) -> Result<(), QosChangeError> {
        if self.is_closed() {
            return Err(QosChangeError::ShutDown);
        }
        let now = self.env.now();
        let order = self.match_order.lock();
        let before = writer.announced();
        let is_grouped = writer.group.is_some();
        let after = changed(&before, is_grouped, profile, QosProfile::to_endpoint)?;
        let after = Arc::new(after);
        let moves = before.qos.partition != after.qos.partition;
        if moves {
            self.permit_change(&after).map_err(QosChangeError::Denied)?;
        }
        if moves && writer.group.as_ref().is_some_and(|group| group.is_open()) {
            return Err(QosChangeError::SetOpen);
        }
        let mut state = writer.state.lock();
        writer.policies.store(after.clone(), profile.lifecycle());
        let qos = machine_qos(&after.qos, writer.is_keyed);
        state.machine.set_qos(now, &qos);
        if let Some(registry) = &mut state.registry {
            registry.set_deadline(now, after.qos.deadline);
        }
        drop(state);
        if before.qos.transport_priority != after.qos.transport_priority {
            self.leave_rank(writer);
        }
        if before != after {
            self.graph.change_own_endpoint(&after);
            let readers: Vec<_> = self.table.read().readers.values().cloned().collect();
            for reader in readers {
                let theirs = reader.announced();
                self.rejudge(now, (writer, &reader), (&before, &theirs));
            }
            self.participant.lock().add_writer(now, after);
        }
        drop(order);
        self.serve_participant(now);
        self.serve_writer(now, writer);
        self.note_progress();
        Ok(())
    }

    /// Gives a reader the policies of `profile` from now on. Those that may
    /// change do: partition, free data, deadline, latency budget, time based
    /// filter and what becomes of instances that ended. Matches as with
    /// [`Core::set_writer_qos`]; "best available" stays what it became.
    ///
    /// # Errors
    /// See [`QosChangeError`]; nothing has changed then.
    pub fn set_reader_qos(
        &self,
        reader: &Arc<ReaderEndpoint>,
        profile: &QosProfile,
    ) -> Result<(), QosChangeError> {
        if self.is_closed() {
            return Err(QosChangeError::ShutDown);
        }
        let now = self.env.now();
        let order = self.match_order.lock();
        let before = reader.announced();
        let profile = profile.for_publishers([&*before.qos]);
        let is_grouped = reader.group.is_some();
        let after = changed(&before, is_grouped, &profile, QosProfile::to_reader)?;
        if before.qos.partition != after.qos.partition {
            self.permit_change(&after).map_err(QosChangeError::Denied)?;
        }
        let mut machine = reader.machine.lock();
        let qos = machine_qos(&after.qos, reader.is_keyed());
        machine.set_qos(now, &qos, reader.has_received());
        let mut intake = reader.intake();
        intake.set_qos(now, &after.qos, profile.lifecycle());
        drop(intake);
        if Intake::judges(&after.qos) {
            reader.call_judges();
        }
        drop(machine);
        if *before != after {
            let after = Arc::new(after);
            self.graph.change_own_endpoint(&after);
            reader.set_announced(after.clone());
            let writers: Vec<_> = self.table.read().writers.values().cloned().collect();
            for writer in writers {
                let theirs = writer.announced();
                self.rejudge(now, (&writer, reader), (&theirs, &before));
            }
            self.participant.lock().add_reader(now, after);
        }
        drop(order);
        self.serve_participant(now);
        self.serve_reader(now, reader);
        self.note_progress();
        Ok(())
    }

    /// Judges two endpoints of this context anew after one of them has changed;
    /// `before` is what they were.
    fn rejudge(
        &self,
        now: Instant,
        (writer, reader): (&Arc<WriterEndpoint>, &Arc<ReaderEndpoint>),
        before: (&EndpointData, &EndpointData),
    ) {
        let is_barred = self.is_barred(writer.guid()) || self.is_barred(reader.data.guid);
        if !writer.may_meet(reader) || is_barred {
            return;
        }
        let was = judge(before.0, before.1);
        let is = judge(&writer.announced(), &reader.announced());
        if was == Verdict::Matched && is == was {
            self.refresh(writer, reader);
        } else if is != was {
            if was == Verdict::Matched {
                self.part(now, writer, reader);
            }
            self.carry_out(now, writer, reader, is);
        }
    }
}

/// What an endpoint announces once it has the policies of `profile`.
fn changed(
    before: &EndpointData,
    is_grouped: bool,
    profile: &QosProfile,
    announced: impl FnOnce(&QosProfile) -> EndpointQos,
) -> Result<EndpointData, QosChangeError> {
    profile.validate()?;
    let mut qos = announced(profile);
    if is_grouped {
        // The group's, whatever the profile says.
        qos.presentation = before.qos.presentation;
    }
    // What ROS 2 puts first stays.
    let free = free_user_data(&before.qos.user_data).len();
    let prefix = before.qos.user_data.len().saturating_sub(free);
    let prefix = before.qos.user_data.iter().take(prefix).copied();
    qos.user_data.splice(0..0, prefix);
    let fixed = change::fixed(&before.qos, &qos);
    if !fixed.is_empty() {
        return Err(QosChangeError::Immutable(fixed));
    }
    Ok(EndpointData {
        qos: qos.into(),
        ..before.clone()
    })
}
