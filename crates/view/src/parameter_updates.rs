//! Parameter updates: passes `/parameter_events` on to the viewers that asked for them. The
//! subscription begins with the first of these viewers and ends with the last.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros::error::CreateError;
use pteros::interfaces::rcl_interfaces::msg::ParameterEvent;
use pteros::names::is_hidden;
use pteros::parameter::{Parameter, ParameterValue};
use pteros::qos::QosProfile;
use pteros::{NamedQosExt, Sample, Subscription};
use serde_json::{Value, json};

use crate::parameters::row;
use crate::protocol;
use crate::server::Server;

/// Names that one viewer may ask for, and the longest.
const NAMES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 1024;
const TOPIC: &str = "/parameter_events";

/// The parameters whose updates a viewer wants.
#[derive(Default)]
pub struct WantedParameters {
    is_all: bool,
    names: BTreeSet<String>,
}

impl WantedParameters {
    /// Adds names; none at all means every parameter.
    ///
    /// # Errors
    /// Too many, or a name that is too long.
    pub fn add(&mut self, names: &[&str]) -> Result<(), String> {
        if names.is_empty() {
            self.is_all = true;
        }
        for name in names {
            if self.names.len() >= NAMES_MAX || name.len() > NAME_BYTES_MAX {
                return Err(format!(
                    "subscribeParameterUpdates: a viewer has at most {NAMES_MAX} names of {NAME_BYTES_MAX} bytes"
                ));
            }
            self.names.insert((*name).to_owned());
        }
        Ok(())
    }

    /// Removes names; none at all means every parameter.
    pub fn remove(&mut self, names: &[&str]) {
        if names.is_empty() {
            *self = Self::default();
        }
        for name in names {
            self.names.remove(*name);
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        !self.is_all && self.names.is_empty()
    }

    fn has(&self, name: &str) -> bool {
        self.is_all || self.names.contains(name)
    }
}

/// The subscription of a server.
#[derive(Default)]
pub struct ParameterUpdates(Mutex<Option<Subscription<ParameterEvent>>>);

impl ParameterUpdates {
    /// Subscribes if a viewer wants updates, and ends the subscription if none does.
    ///
    /// # Errors
    /// The subscription cannot be created, such as for access control.
    pub fn follow(&self, server: &Arc<Server>) -> Result<(), CreateError> {
        // Held to the end, so that two viewers do not overtake each other.
        let mut subscription = self.0.lock();
        let is_wanted = server.with_viewers(|viewers| {
            let mut clients = viewers.clients.values();
            clients.any(|client| !client.wanted_parameters.lock().is_empty())
        });
        if !is_wanted {
            *subscription = None;
        } else if subscription.is_none() {
            let own = Arc::downgrade(server);
            let pass_on = move |sample: Sample<ParameterEvent>| {
                if let Some(server) = own.upgrade() {
                    report(&server, &sample);
                }
            };
            let qos = TOPIC.qos(QosProfile::parameter_events());
            *subscription = Some(server.node.create_subscription(qos, pass_on)?);
        }
        Ok(())
    }
}

/// Tells each viewer the new values that it wants.
fn report(server: &Server, event: &ParameterEvent) {
    let node = &event.node;
    if is_hidden(node) || !(server.options.filter)(&format!("{node}/list_parameters")) {
        return;
    }
    let set = event.new_parameters.iter().chain(&event.changed_parameters);
    let set = set
        .map(Parameter::from_message)
        .map(|set| (set.name, set.value));
    let deleted = event.deleted_parameters.iter();
    let deleted = deleted.map(|one| (one.name.clone(), ParameterValue::NotSet));
    let rows = set.chain(deleted).map(|(name, value)| {
        let name = format!("{node}.{name}");
        let row = row(&name, &value);
        (name, row)
    });
    let rows: Vec<(String, Value)> = rows.collect();
    server.with_viewers(|viewers| {
        for client in viewers.clients.values() {
            let wanted = client.wanted_parameters.lock();
            let rows = rows.iter().filter(|(name, _)| wanted.has(name));
            let rows: Vec<&Value> = rows.map(|(_, row)| row).collect();
            if !rows.is_empty() {
                let message = json!({ "op": "parameterValues", "parameters": rows });
                client.outbox.send(protocol::text(&message));
            }
        }
    });
}
