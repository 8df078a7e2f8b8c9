//! Actions of service clients and servers: calls, replies, abandoned calls, and
//! lost matches.

use std::sync::Arc;

use pteros_rtps::id::Guid;
use pteros_runtime::Core;
use pteros_runtime::error::PublishError;
use pteros_runtime::event::{EndpointEvent, EndpointEvents};
use pteros_runtime::sample::QueuedSample;
use pteros_runtime::service::{CALLS_MAX, SendRequestError};

use super::records::{
    CLIENT, CallKey, CallOutcome, CallRecord, ClientEnd, MESSAGE_BYTES, RequestKey, SERVER,
    ServerEnd, ServiceEndKind, Services,
};
use crate::world::graph::message::Message;
use crate::world::graph::schedule::SimEvent;
use crate::world::graph::world::GraphWorld;

const MILLI: u64 = 1_000_000;

/// Maximum requests taken in one event.
const PER_STEP: usize = 10;

impl GraphWorld {
    /// The living client of an index, its process and its context.
    fn client(&self, index: usize) -> Option<(Arc<ClientEnd>, usize, Arc<Core>)> {
        let services = self.services.lock();
        let record = services
            .clients
            .get(index)
            .filter(|record| !record.base.gone)?;
        let (end, process) = (record.end.clone(), record.base.location.process);
        drop(services);
        Some((end, process, self.sim.core(process)?))
    }

    fn server(&self, index: usize) -> Option<(Arc<ServerEnd>, usize, Arc<Core>)> {
        let services = self.services.lock();
        let record = services
            .servers
            .get(index)
            .filter(|record| !record.base.gone)?;
        let (end, process) = (record.end.clone(), record.base.location.process);
        drop(services);
        Some((end, process, self.sim.core(process)?))
    }

    pub fn apply_service_event(&self, event: SimEvent) {
        match event {
            SimEvent::Call(client) if self.client(client).is_some() => {
                let mut schedule = self.schedule.lock();
                let at = self.sim.now() + schedule.around(2 * self.plan.period);
                schedule.add(at, SimEvent::Call(client));
                let patient = schedule.random.u8(0..3) > 0;
                drop(schedule);
                self.call(client, patient);
            }
            SimEvent::AbandonCall(call) => self.abandon_call(call),
            SimEvent::TakeReplies(client) => self.collect(client),
            SimEvent::TakeRequests(server) => self.serve(server),
            SimEvent::Reply(server) => self.reply(server),
            _ => {}
        }
    }

    pub fn process_of_service_event(&self, event: SimEvent) -> Option<usize> {
        Some(match event {
            SimEvent::Call(client) | SimEvent::TakeReplies(client) => {
                self.process_of_end(ServiceEndKind::Client, client)
            }
            SimEvent::AbandonCall(call) => {
                let client = self.services.lock().calls[call].client;
                self.process_of_end(ServiceEndKind::Client, client)
            }
            SimEvent::TakeRequests(server) | SimEvent::Reply(server) => {
                self.process_of_end(ServiceEndKind::Server, server)
            }
            _ => return None,
        })
    }

    /// Calls a service. Returns the call's number if it was accepted. A call that
    /// is not `patient` is abandoned later.
    pub(super) fn call(&self, client: usize, patient: bool) -> Option<usize> {
        let (end, process, core) = self.client(client)?;
        let call = {
            let mut services = self.services.lock();
            services.calls.push(CallRecord {
                client,
                key: None,
                servers: end.requests().matched(),
                outcome: Some(CallOutcome::Refused),
            });
            services.calls.len() - 1
        };
        let name = CLIENT | u32::try_from(client).unwrap_or(0);
        let mut message = Message::new(name, call as u64, MESSAGE_BYTES);
        let start = self.sim.now();
        let sent = self.sim.blocking(process, || end.send(&core, &mut message));
        let waited = self.sim.now() - start;
        self.sim.trace_line(format_args!(
            "c{client} called {call}: {sent:?}, waited {waited} ns"
        ));
        self.sim.network().trace.number(waited ^ call as u64);
        self.check_wait(process, waited, &end.requests().data.qos, "call");
        let mut services = self.services.lock();
        let record = &mut services.clients[client];
        let (open, keeps_all) = (record.open.len(), record.base.keeps_all);
        let wrong = match sent {
            Ok(key) => {
                record.open.insert(key, call);
                services.calls[call].key = Some(key);
                services.calls[call].outcome = None;
                None
            }
            Err(SendRequestError::NoServer) => None,
            Err(SendRequestError::TooManyCalls { .. }) if open >= CALLS_MAX => None,
            Err(SendRequestError::Publish(PublishError::TimedOut { .. })) if keeps_all => None,
            Err(error) => Some(format!("I11 c{client}: {error}")),
        };
        let accepted = services.calls[call].key.is_some();
        drop(services);
        self.model.lock().fail_all(wrong);
        if accepted && !patient {
            let mut schedule = self.schedule.lock();
            let at = self.sim.now() + schedule.random.u64(0..1_500 * MILLI);
            schedule.add(at, SimEvent::AbandonCall(call));
        }
        self.sim.drain_ready(process);
        self.sim.poll_process(process);
        accepted.then_some(call)
    }

    /// I11: no call blocks longer than max_blocking_time.
    fn check_wait(
        &self,
        process: usize,
        waited: u64,
        qos: &pteros_rtps::qos::EndpointQos,
        what: &str,
    ) {
        if waited == 0 {
            return;
        }
        let mut model = self.model.lock();
        model.mark_unsure(process);
        let limit = u64::try_from(qos.max_blocking_time.as_nanos()).unwrap_or(u64::MAX);
        if waited > limit {
            model.fail(format!(
                "I11 p{process}: a {what} waited {waited} ns, may wait {limit}"
            ));
        }
    }

    fn abandon_call(&self, call: usize) {
        let mut services = self.services.lock();
        let record = &services.calls[call];
        let client = record.client;
        let Some(key) = record.key.filter(|_| record.outcome.is_none()) else {
            return;
        };
        services.calls[call].outcome = Some(CallOutcome::TimedOut);
        services.clients[client].open.remove(&key);
        if let (ClientEnd::Engine(end), CallKey::Engine(id)) = (&*services.clients[client].end, key)
        {
            end.close_call(id);
        }
    }

    /// A client takes replies and learns of lost servers.
    fn collect(&self, client: usize) {
        let Some((end, process, core)) = self.client(client) else {
            return;
        };
        let (requests, replies) = (end.requests(), end.replies());
        replies.slot.begin_take();
        self.record_lost_matches(requests.guid(), &requests.events);
        self.record_lost_matches(replies.data.guid, &replies.events);
        while let Some((key, item)) = end.take(&core) {
            self.sim.network().trace.number(item.meta.sequence as u64);
            let wrong = self.check_reply(client, key, &item);
            self.model.lock().fail_all(wrong);
        }
        for key in end.end_abandoned() {
            let wrong = self.services.lock().check_abandoned_call(client, key);
            self.model.lock().fail_all(wrong);
        }
        let wrong = self.services.lock().check_open_count(client);
        self.model.lock().fail_all(wrong);
        self.sim.drain_ready(process);
    }

    fn record_lost_matches(&self, own: Guid, events: &EndpointEvents) {
        events.slot.begin_take();
        while let Some(event) = events.take() {
            if let EndpointEvent::Matched {
                change: -1, peer, ..
            } = event
            {
                self.services.lock().lost_matches.insert((own, peer));
            }
        }
    }

    /// A server takes requests. It replies at once, later or never.
    fn serve(&self, server: usize) {
        let Some((end, process, core)) = self.server(server) else {
            return;
        };
        let (requests, replies) = (end.requests(), end.replies());
        requests.slot.begin_take();
        self.record_lost_matches(requests.data.guid, &requests.events);
        self.record_lost_matches(replies.guid(), &replies.events);
        if let ServerEnd::Engine(engine) = &*end {
            // Each reply that it still holds may block until there is room.
            self.sim.blocking(process, || engine.flush(&core));
        }
        for _ in 0..PER_STEP {
            let Some((request, item)) = end.take(&core) else {
                break;
            };
            self.sim.network().trace.number(item.meta.sequence as u64);
            match self.check_request(server, &item) {
                Ok(Some(call)) => self.schedule_reply(server, call, request),
                Ok(None) => {}
                Err(wrong) => self.fail(wrong),
            }
        }
        if requests.has_samples() {
            requests.slot.mark_ready();
        }
        self.sim.drain_ready(process);
    }

    fn schedule_reply(&self, server: usize, call: usize, request: RequestKey) {
        let mut schedule = self.schedule.lock();
        let reply_delay = match schedule.random.u8(0..12) {
            0 if !schedule.healed => None,
            0..6 => Some(0),
            _ => Some(schedule.random.u64(0..500 * MILLI)),
        };
        if let Some(reply_delay) = reply_delay {
            schedule.add(self.sim.now() + reply_delay, SimEvent::Reply(server));
        }
        drop(schedule);
        let mut services = self.services.lock();
        let record = &mut services.servers[server];
        match reply_delay {
            Some(_) => record.pending.push((call, request)),
            None => {
                record.ignored.insert(call);
            }
        }
        drop(services);
        self.sim.trace_line(format_args!(
            "s{server} took {call}, replies after {reply_delay:?} ns"
        ));
    }

    /// A server replies to one of its pending requests, not always the oldest.
    fn reply(&self, server: usize) {
        let Some((end, process, core)) = self.server(server) else {
            return;
        };
        let draw = self.schedule.lock().random.usize(..);
        let (call, request) = {
            let mut services = self.services.lock();
            let record = &mut services.servers[server];
            if record.pending.is_empty() {
                return;
            }
            let which = draw % record.pending.len();
            let (call, request) = record.pending.swap_remove(which);
            record.answered.insert(call);
            (call, request)
        };
        let name = SERVER | u32::try_from(server).unwrap_or(0);
        let mut message = Message::new(name, call as u64, MESSAGE_BYTES);
        let start = self.sim.now();
        let sent = self
            .sim
            .blocking(process, || end.reply(&core, &request, &mut message));
        let waited = self.sim.now() - start;
        self.sim.trace_line(format_args!(
            "s{server} answered {call}: {sent:?}, waited {waited} ns"
        ));
        self.sim.network().trace.number(waited ^ call as u64);
        self.check_wait(process, waited, &end.replies().data.qos, "reply");
        if let Err(error) = sent {
            let mut services = self.services.lock();
            let record = &mut services.servers[server];
            // The server sees the failure. The client has to abandon the call.
            record.answered.remove(&call);
            record.ignored.insert(call);
            let may_stay_open =
                matches!(error, PublishError::TimedOut { .. }) && record.base.keeps_all;
            drop(services);
            if !may_stay_open {
                self.fail(format!("I11 s{server}: {error}"));
            }
        }
        self.sim.drain_ready(process);
        self.sim.poll_process(process);
    }

    /// I13: a reply belongs to an open call of this client, its server has replied
    /// to that call, and the content is that server's.
    fn check_reply(&self, client: usize, key: CallKey, item: &QueuedSample) -> Option<String> {
        let publisher = item.meta.publisher;
        let is_of_attacker = self.model.lock().is_attacker(publisher);
        let mut services = self.services.lock();
        let services = &mut *services;
        let open = services.clients[client].open.remove(&key);
        let Some(call) = open else {
            // The user skips replies to abandoned calls.
            if matches!(key, CallKey::Cyclone(_)) {
                return None;
            }
            return Some(format!(
                "I13 c{client}: a reply to {key:?}, which is not open"
            ));
        };
        let outcome = if is_of_attacker {
            CallOutcome::FromAttacker
        } else {
            CallOutcome::Answered
        };
        services.calls[call].outcome = Some(outcome);
        services.answered += 1;
        if is_of_attacker {
            return None;
        }
        let server = services.by_guid.get(&publisher).copied();
        let Some(server) = server else {
            return Some(format!(
                "I13 c{client}: a reply by {publisher}, which never existed"
            ));
        };
        let said = Message::check(&item.body);
        let name = SERVER | u32::try_from(server).unwrap_or(0);
        let is_own = matches!(said, Ok((n, c, _)) if (n, c) == (name, call as u64));
        let has_answered = services.servers[server].answered.contains(&call);
        (!is_own || !has_answered).then(|| {
            format!("I13 c{client}: call {call} got {said:?} by s{server}, which has answered it: {has_answered}")
        })
    }

    /// I13: a request belongs to an accepted call of its sender, and comes once.
    /// `None` for the attacker's requests, which get no reply.
    fn check_request(&self, server: usize, item: &QueuedSample) -> Result<Option<usize>, String> {
        let publisher = item.meta.publisher;
        if self.model.lock().is_attacker(publisher) {
            return Ok(None);
        }
        let mut services = self.services.lock();
        let services = &mut *services;
        let record = &services.servers[server];
        let (name, number, _) =
            Message::check(&item.body).map_err(|why| format!("I13 s{server}: a request: {why}"))?;
        let client = (name & !CLIENT) as usize;
        let call = usize::try_from(number).unwrap_or(usize::MAX);
        let asks = services.clients.get(client).filter(|c| {
            c.base.service == record.base.service && c.end.requests().guid() == publisher
        });
        let known = services.calls.get(call).filter(|c| c.client == client);
        let (Some(_), Some(known), true) = (asks, known, name & CLIENT != 0) else {
            return Err(format!(
                "I13 s{server}: a request of {publisher} claims to be call {number} of {name:#x}"
            ));
        };
        // During the send it is not known yet whether the call is accepted.
        let is_refused = known.outcome == Some(CallOutcome::Refused)
            && !self.has_call_in_progress(client, services);
        if is_refused {
            return Err(format!(
                "I13 s{server}: took call {call}, which was refused"
            ));
        }
        if !services.servers[server].taken.insert(call) {
            return Err(format!("I13 s{server}: took call {call} twice"));
        }
        Ok(Some(call))
    }

    fn has_call_in_progress(&self, client: usize, services: &Services) -> bool {
        let process = services.clients[client].base.location.process;
        self.sim.processes()[process].blocked
    }
}
