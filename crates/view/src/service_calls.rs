//! Calls of a viewer to services. Requests and responses are decoded, so that no malformed
//! one reaches a robot. A call ends with its response, or with a failure after 10 s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros::ClientOptions;
use pteros::msg::dynamic::{DynamicMessage, DynamicService};
use pteros::qos::Representation;
use pteros::service::CallError;

use crate::client::Client;
use crate::protocol::{self, CDR, JSON};
use crate::requests::Requests;
use crate::server::Server;

/// Calls of one viewer without a response. Further ones fail.
const CALLS_MAX: usize = 64;
/// Time for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time until the server is matched with a new client.
const MATCH_TIMEOUT: Duration = Duration::from_secs(1);
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
