//! What clients and servers do: calls, replies, patience that ends, and what
//! they are told of each other.

use std::sync::Arc;

use pteros_rmw::Core;
use pteros_rmw::error::PublishError;
use pteros_rmw::event::{EndpointEvent, Events};
use pteros_rmw::sample::Item;
use pteros_rmw::service::{CALLS_MAX, SendError};
use pteros_rtps::id::Guid;

use super::{
    Asked, Asker, BYTES, CLIENT, CallRole, Ending, Key, Kind, MILLI, Replier, SERVER, Services,
};
use crate::message::Message;
use crate::script::Step;
use crate::world::World;

/// Requests taken and replies sent in one step.
const PER_STEP: usize = 10;

impl World {
    /// The living client of a number, and its place.
    fn client(&self, index: usize) -> Option<(Arc<Asker>, usize, Arc<Core>)> {
        let services = self.services.lock();
        let role = services.clients.get(index).filter(|role| !role.gone)?;
        let (asker, place) = (role.asker.clone(), role.home.place);
        drop(services);
        Some((asker, place, self.core(place)?))
    }

    fn server(&self, index: usize) -> Option<(Arc<Replier>, usize, Arc<Core>)> {
        let services = self.services.lock();
        let role = services.servers.get(index).filter(|role| !role.gone)?;
        let (replier, place) = (role.replier.clone(), role.home.place);
        drop(services);
        Some((replier, place, self.core(place)?))
    }

    /// Carries out a step of services.
    pub(crate) fn act_service(&self, step: Step) {
        match step {
            Step::Call(client) if self.client(client).is_some() => {
                let mut script = self.script.lock();
                let at = self.now() + script.around(2 * self.plan.period);
                script.plan(at, Step::Call(client));
                let patient = script.random.u8(0..3) > 0;
                drop(script);
                self.call(client, patient);
            }
            Step::GiveUp(call) => self.give_up(call),
            Step::Collect(client) => self.collect(client),
            Step::Serve(server) => self.serve(server),
            Step::Reply(server) => self.reply(server),
            _ => {}
        }
    }

    /// Where a step of services takes place.
    pub(crate) fn place_of_service_step(&self, step: Step) -> Option<usize> {
        Some(match step {
            Step::Call(client) | Step::Collect(client) => self.home_of_end(Kind::Client, client),
            Step::GiveUp(call) => {
                let client = self.services.lock().calls[call].client;
                self.home_of_end(Kind::Client, client)
            }
            Step::Serve(server) | Step::Reply(server) => self.home_of_end(Kind::Server, server),
            _ => return None,
        })
    }

    /// A client calls; the call's number, if it was accepted. Impatient ones give
    /// up some time.
    pub(super) fn call(&self, client: usize, patient: bool) -> Option<usize> {
        let (asker, place, core) = self.client(client)?;
        let call = {
            let mut services = self.services.lock();
            services.calls.push(CallRole {
                client,
                key: None,
                asked: asker.requests().matched(),
                ending: Some(Ending::Refused),
            });
            services.calls.len() - 1
        };
        let name = CLIENT | u32::try_from(client).unwrap_or(0);
        let mut message = Message::new(name, call as u64, BYTES);
        let start = self.now();
        self.places()[place].blocked = true;
        let sent = asker.send(&core, &mut message);
        self.places()[place].blocked = false;
        let waited = self.now() - start;
        self.say(format_args!(
            "c{client} called {call}: {sent:?}, waited {waited} ns"
        ));
        self.network().trace.number(waited ^ call as u64);
        self.note_wait(place, waited, &asker.requests().data.qos, "call");
        let mut services = self.services.lock();
        let role = &mut services.clients[client];
        let (open, keeps_all) = (role.open.len(), role.keeps_all);
        let wrong = match sent {
            Ok(key) => {
                role.open.insert(key, call);
                services.calls[call].key = Some(key);
                services.calls[call].ending = None;
                None
            }
            Err(SendError::NoServer) => None,
            Err(SendError::TooManyCalls { .. }) if open >= CALLS_MAX => None,
            Err(SendError::Publish(PublishError::TimedOut { .. })) if keeps_all => None,
            Err(error) => Some(format!("I11 c{client}: {error}")),
        };
        let accepted = services.calls[call].key.is_some();
        drop(services);
        self.cast.lock().fail_all(wrong);
        if accepted && !patient {
            let mut script = self.script.lock();
            let at = self.now() + script.random.u64(0..1_500 * MILLI);
            script.plan(at, Step::GiveUp(call));
        }
        self.settle(place);
        self.turn(place);
        accepted.then_some(call)
    }

    /// I11: nobody waits longer than its policies say.
    fn note_wait(
        &self,
        place: usize,
        waited: u64,
        qos: &pteros_rtps::qos::EndpointQos,
        what: &str,
    ) {
        if waited == 0 {
            return;
        }
        let mut cast = self.cast.lock();
        // Meanwhile the engine took datagrams in by itself.
        for reader in cast.readers.iter_mut() {
            reader.unsure |= reader.home.place == place;
        }
        let limit = u64::try_from(qos.max_blocking_time.as_nanos()).unwrap_or(u64::MAX);
        if waited > limit {
            cast.fail(format!(
                "I11 p{place}: a {what} waited {waited} ns, may wait {limit}"
            ));
        }
    }

    fn give_up(&self, call: usize) {
        let mut services = self.services.lock();
        let role = &services.calls[call];
        let client = role.client;
        let Some(key) = role.key.filter(|_| role.ending.is_none()) else {
            return;
        };
        services.calls[call].ending = Some(Ending::TimedOut);
        services.clients[client].open.remove(&key);
        if let (Asker::Engine(asker), Key::Engine(id)) = (&*services.clients[client].asker, key) {
            asker.forget(id);
        }
    }

    /// A client takes the replies and hears who is gone.
    fn collect(&self, client: usize) {
        let Some((asker, place, core)) = self.client(client) else {
            return;
        };
        let (requests, replies) = (asker.requests(), asker.replies());
        replies.slot.taken();
        self.note_breaks(requests.guid(), &requests.events);
        self.note_breaks(replies.data.guid, &replies.events);
        while let Some((key, item)) = asker.take(&core) {
            self.network().trace.number(item.meta.sequence as u64);
            let wrong = self.judge_reply(client, key, &item);
            self.cast.lock().fail_all(wrong);
        }
        for key in asker.end_abandoned() {
            let wrong = self.services.lock().judge_abandoned(client, key);
            self.cast.lock().fail_all(wrong);
        }
        let wrong = self.services.lock().judge_open(client);
        self.cast.lock().fail_all(wrong);
        self.settle(place);
    }

    fn note_breaks(&self, own: Guid, events: &Events) {
        events.slot.taken();
        while let Some(event) = events.take() {
            if let EndpointEvent::Matched {
                change: -1, peer, ..
            } = event
            {
                self.services.lock().breaks.insert((own, peer));
            }
        }
    }

    /// A server takes requests: it answers at once, later or never.
    fn serve(&self, server: usize) {
        let Some((replier, place, core)) = self.server(server) else {
            return;
        };
        let (requests, replies) = (replier.requests(), replier.replies());
        requests.slot.taken();
        self.note_breaks(requests.data.guid, &requests.events);
        self.note_breaks(replies.guid(), &replies.events);
        if let Replier::Engine(engine) = &*replier {
            // Each of those that it keeps may wait for room.
            self.places()[place].blocked = true;
            engine.flush(&core);
            self.places()[place].blocked = false;
        }
        for _ in 0..PER_STEP {
            let Some((asked, item)) = replier.take(&core) else {
                break;
            };
            self.network().trace.number(item.meta.sequence as u64);
            match self.judge_request(server, &item) {
                Ok(Some(call)) => self.plan_answer(server, call, asked),
                Ok(None) => {}
                Err(wrong) => self.fail(wrong),
            }
        }
        if requests.has_samples() {
            requests.slot.ready();
        }
        self.settle(place);
    }

    fn plan_answer(&self, server: usize, call: usize, asked: Asked) {
        let mut script = self.script.lock();
        let think = match script.random.u8(0..12) {
            0 if !script.healed => None,
            0..6 => Some(0),
            _ => Some(script.random.u64(0..500 * MILLI)),
        };
        if let Some(think) = think {
            script.plan(self.now() + think, Step::Reply(server));
        }
        drop(script);
        let mut services = self.services.lock();
        let role = &mut services.servers[server];
        match think {
            Some(_) => role.pending.push((call, asked)),
            None => {
                role.ignored.insert(call);
            }
        }
        drop(services);
        self.say(format_args!("s{server} took {call}, thinks {think:?} ns"));
    }

    /// A server answers one of those that wait, not always the oldest.
    fn reply(&self, server: usize) {
        let Some((replier, place, core)) = self.server(server) else {
            return;
        };
        let draw = self.script.lock().random.usize(..);
        let (call, asked) = {
            let mut services = self.services.lock();
            let role = &mut services.servers[server];
            if role.pending.is_empty() {
                return;
            }
            let which = draw % role.pending.len();
            let (call, asked) = role.pending.swap_remove(which);
            role.answered.insert(call);
            (call, asked)
        };
        let name = SERVER | u32::try_from(server).unwrap_or(0);
        let mut message = Message::new(name, call as u64, BYTES);
        let start = self.now();
        self.places()[place].blocked = true;
        let sent = replier.reply(&core, &asked, &mut message);
        self.places()[place].blocked = false;
        let waited = self.now() - start;
        self.say(format_args!(
            "s{server} answered {call}: {sent:?}, waited {waited} ns"
        ));
        self.network().trace.number(waited ^ call as u64);
        self.note_wait(place, waited, &replier.replies().data.qos, "reply");
        if let Err(error) = sent {
            let mut services = self.services.lock();
            let role = &mut services.servers[server];
            // Its server knows, and its client has to give up.
            role.answered.remove(&call);
            role.ignored.insert(call);
            let may_wait = matches!(error, PublishError::TimedOut { .. }) && role.keeps_all;
            drop(services);
            if !may_wait {
                self.fail(format!("I11 s{server}: {error}"));
            }
        }
        self.settle(place);
        self.turn(place);
    }

    /// I13: a reply is to an open call of this client, by a server that has
    /// answered it, with what that server said.
    fn judge_reply(&self, client: usize, key: Key, item: &Item) -> Option<String> {
        let publisher = item.meta.publisher;
        let is_strange = self.cast.lock().is_stranger(publisher);
        let mut services = self.services.lock();
        let services = &mut *services;
        let open = services.clients[client].open.remove(&key);
        let Some(call) = open else {
            // Its user passes over what nobody waits for any more.
            if matches!(key, Key::Headed(_)) {
                return None;
            }
            return Some(format!(
                "I13 c{client}: a reply to {key:?}, which is not open"
            ));
        };
        let ending = match is_strange {
            true => Ending::Haunted,
            false => Ending::Answered,
        };
        services.calls[call].ending = Some(ending);
        services.answered += 1;
        if is_strange {
            return None;
        }
        let server = services.by_guid.get(&publisher).copied();
        let Some(server) = server else {
            return Some(format!(
                "I13 c{client}: a reply by {publisher}, which never was"
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

    /// I13: a request is an accepted call of who sent it, and comes once. `None`
    /// for strangers', which are not answered.
    fn judge_request(&self, server: usize, item: &Item) -> Result<Option<usize>, String> {
        let publisher = item.meta.publisher;
        if self.cast.lock().is_stranger(publisher) {
            return Ok(None);
        }
        let mut services = self.services.lock();
        let services = &mut *services;
        let role = &services.servers[server];
        let (name, number, _) =
            Message::check(&item.body).map_err(|why| format!("I13 s{server}: a request: {why}"))?;
        let client = (name & !CLIENT) as usize;
        let call = usize::try_from(number).unwrap_or(usize::MAX);
        let asks = services
            .clients
            .get(client)
            .filter(|c| c.service == role.service && c.asker.requests().guid() == publisher);
        let known = services.calls.get(call).filter(|c| c.client == client);
        let (Some(_), Some(known), true) = (asks, known, name & CLIENT != 0) else {
            return Err(format!(
                "I13 s{server}: a request of {publisher} says it is call {number} of {name:#x}"
            ));
        };
        // While it is being sent it is not known yet whether it is accepted.
        let is_refused =
            known.ending == Some(Ending::Refused) && !self.is_calling(client, services);
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

    fn is_calling(&self, client: usize, services: &Services) -> bool {
        let place = services.clients[client].home.place;
        self.places()[place].blocked
    }
}
