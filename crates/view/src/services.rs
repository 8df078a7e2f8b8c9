//! Services: what viewers may call, and their calls. Requests and responses are decoded, so
//! that no malformed one reaches a robot. Services of actions' and nodes' own are included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros::ClientOptions;
use pteros::msg::dynamic::{DynamicMessage, DynamicService, DynamicType};
use pteros::qos::Representation;
use pteros::service::CallError;
use pteros::type_description::definition_text;
use serde_json::{Value, json};
use tungstenite::Message;

use crate::client::Client;
use crate::graph_snapshot::GraphSnapshot;
use crate::protocol::{self, CDR, JSON, ROS2_MSG};
use crate::requests::Requests;
use crate::server::Server;

/// Calls of one viewer without a response. Further ones fail.
const CALLS_MAX: usize = 64;
/// Time for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time until the server is matched with a new client.
const MATCH_TIMEOUT: Duration = Duration::from_secs(1);
/// Services in one message.
const SERVICES_PER_MESSAGE: usize = 4096;

/// The services that viewers were told of.
#[derive(Default)]
pub struct Services {
    by_name: BTreeMap<String, Advertised>,
    last_id: u32,
}

struct Advertised {
    id: u32,
    ty: DynamicService,
    row: Value,
}

impl Services {
    /// The message for a new viewer.
    pub fn advertise_all(&self) -> Option<Message> {
        advertise(self.by_name.values())
    }

    fn find(&self, id: u32) -> Option<(String, DynamicService)> {
        let mut services = self.by_name.iter();
        let (name, service) = services.find(|(_, service)| service.id == id)?;
        Some((name.clone(), service.ty.clone()))
    }
}

/// Tells the viewers of new services and of those that have gone. Services without a
/// definition are left out.
pub fn report(server: &Server, snapshot: &GraphSnapshot) {
    if !server.options.allowed.services {
        return;
    }
    server.with_viewers(|viewers| {
        let known = &mut viewers.services;
        let mut gone = Vec::new();
        known.by_name.retain(|name, service| {
            let now = snapshot.services.get(name);
            let stays = now.is_some_and(|now| now.type_name == service.ty.name());
            if !stays {
                gone.push(service.id);
            }
            stays
        });
        let mut new = BTreeSet::new();
        for (name, service) in &snapshot.services {
            if known.by_name.contains_key(name) {
                continue;
            }
            let Ok(ty) = DynamicService::new(&server.options.library, &service.type_name) else {
                continue;
            };
            known.last_id += 1;
            let id = known.last_id;
            let row = service_row(server, id, name, &ty);
            new.insert(name.clone());
            known
                .by_name
                .insert(name.clone(), Advertised { id, ty, row });
        }
        let added = known.by_name.iter().filter(|(name, _)| new.contains(*name));
        let added = advertise(added.map(|(_, service)| service));
        if !gone.is_empty() {
            let message = json!({ "op": "unadvertiseServices", "serviceIds": gone });
            viewers.broadcast(&protocol::text(&message));
        }
        if let Some(added) = added {
            viewers.broadcast(&added);
        }
    });
}

fn advertise<'a>(services: impl Iterator<Item = &'a Advertised>) -> Option<Message> {
    let rows: Vec<&Value> = services
        .map(|service| &service.row)
        .take(SERVICES_PER_MESSAGE)
        .collect();
    let message = json!({ "op": "advertiseServices", "services": rows });
    (!rows.is_empty()).then(|| protocol::text(&message))
}

/// Older viewers read `requestSchema` and `responseSchema`.
fn service_row(server: &Server, id: u32, name: &str, ty: &DynamicService) -> Value {
    let text = |ty: &DynamicType| definition_text(&ty.description(), &server.options.library);
    let part = |ty: &DynamicType, schema: &str| {
        json!({
            "encoding": CDR, "schemaName": ty.name(), "schemaEncoding": ROS2_MSG, "schema": schema,
        })
    };
    let (request, response) = (text(ty.request()), text(ty.response()));
    json!({
        "id": id,
        "name": name,
        "type": ty.name(),
        "request": part(ty.request(), &request),
        "response": part(ty.response(), &response),
        "requestSchema": request,
        "responseSchema": response,
    })
}

/// The calls of one viewer.
pub struct Calls {
    client: Arc<Client>,
    /// Calls without a response, with their service and deadline.
    waiting: Arc<Mutex<BTreeMap<u32, Waiting>>>,
}

#[derive(Clone, Copy)]
struct Waiting {
    service: u32,
    until: Instant,
}

impl Calls {
    /// No calls.
    pub fn new(client: &Arc<Client>) -> Self {
        Self {
            client: client.clone(),
            waiting: Arc::default(),
        }
    }

    /// The next deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.lock().values().map(|call| call.until).min()
    }

    /// Fails the calls that have taken too long.
    pub fn expire(&self) {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        waiting.retain(|call, Waiting { service, until }| {
            let is_over = *until <= now;
            if is_over {
                let reason = format!("no response within {} s", TIMEOUT.as_secs());
                let failure = protocol::service_failure(*service, *call, &reason);
                self.client.outbox.send(failure);
            }
            !is_over
        });
    }

    /// Calls a service. The response, or the failure, is sent later.
    pub fn call(
        &self,
        server: &Arc<Server>,
        requests: &mut Requests,
        service: u32,
        call: u32,
        encoding: String,
        payload: Bytes,
    ) {
        let answer = Answer {
            client: self.client.clone(),
            waiting: self.waiting.clone(),
            service,
            call,
            is_json: encoding == JSON,
        };
        let begun = self.begin(server, requests, &answer, &encoding, payload);
        if let Err(reason) = begun {
            answer.fail(&reason);
        }
    }

    fn begin(
        &self,
        server: &Arc<Server>,
        requests: &mut Requests,
        answer: &Answer,
        encoding: &str,
        payload: Bytes,
    ) -> Result<(), String> {
        if !server.options.allowed.services {
            return Err("calls are not allowed; start pteros view with --allow services".into());
        }
        let found = server.with_viewers(|viewers| viewers.services.find(answer.service));
        let (name, ty) = found.ok_or("this service has gone")?;
        let request = match encoding {
            CDR => DynamicMessage::from_payload(ty.request(), &payload)
                .map_err(|error| error.to_string())?,
            JSON => std::str::from_utf8(&payload)
                .map_err(|error| error.to_string())
                .and_then(|text| {
                    DynamicMessage::from_yaml(ty.request(), text).map_err(|error| error.to_string())
                })?,
            other => return Err(format!("the encoding is {other}; use {CDR} or {JSON}")),
        };
        let mut waiting = self.waiting.lock();
        if waiting.len() >= CALLS_MAX || waiting.contains_key(&answer.call) {
            return Err(format!(
                "the call id is in use, or {CALLS_MAX} calls wait for a response"
            ));
        }
        let until = Instant::now() + TIMEOUT;
        let service = answer.service;
        waiting.insert(answer.call, Waiting { service, until });
        drop(waiting);
        let (server, answer) = (server.clone(), answer.clone());
        requests.run(move || {
            let failed = answer.clone();
            if let Err(error) = send(&server, &name, &ty, &request, answer) {
                failed.fail(&error.to_string());
            }
            Ok(())
        })
    }
}

fn send(
    server: &Server,
    name: &str,
    ty: &DynamicService,
    request: &DynamicMessage,
    answer: Answer,
) -> Result<(), CallError> {
    let options = ClientOptions::of_type(ty, name);
    let client = Arc::new(server.node.create_client::<DynamicService>(options)?);
    client.wait_for_service(MATCH_TIMEOUT);
    // The client lives until its response has come, or the call is over.
    let kept = client.clone();
    client.call_then(request, move |response| {
        match response {
            Ok(response) => answer.respond(&response),
            Err(error) => answer.fail(&error.to_string()),
        }
        drop(kept);
    })
}

/// Where a response goes.
#[derive(Clone)]
struct Answer {
    client: Arc<Client>,
    waiting: Arc<Mutex<BTreeMap<u32, Waiting>>>,
    service: u32,
    call: u32,
    is_json: bool,
}

impl Answer {
    fn respond(&self, response: &DynamicMessage) {
        // One that came too late was reported as a failure.
        if self.waiting.lock().remove(&self.call).is_none() {
            return;
        }
        let (encoding, payload) = if self.is_json {
            (JSON, response.to_json().into_bytes())
        } else {
            (CDR, response.to_payload(Representation::Xcdr1))
        };
        let frame = protocol::service_response_frame(self.service, self.call, encoding, &payload);
        self.client.outbox.send(frame);
    }

    fn fail(&self, reason: &str) {
        self.waiting.lock().remove(&self.call);
        let failure = protocol::service_failure(self.service, self.call, reason);
        self.client.outbox.send(failure);
    }
}
