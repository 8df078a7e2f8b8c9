//! Parameter updates: passes `/parameter_events` on to the viewers that asked for them. The
//! subscription begins with the first of these viewers and ends with the last.

use std::sync::Arc;

use parking_lot::Mutex;
use pteros::error::CreateError;
use pteros::interfaces::rcl_interfaces::msg::ParameterEvent;
use pteros::names::is_hidden;
use pteros::parameter::{Parameter, ParameterValue};
use pteros::qos::QosProfile;
use pteros::{NamedQosExt, Sample, Subscription};
use tungstenite::Message;

use crate::parameters::row;
use crate::protocol::{self, Level};
use crate::server::Server;
use crate::wanted_parameters::{ParameterUpdate, WantedParameters};

const TOPIC: &str = "/parameter_events";

/// The next message with what waits for a viewer, if anything does.
pub fn next_message(wanted: &Mutex<WantedParameters>) -> Option<Message> {
    let next = wanted.lock().next()?;
    Some(match next {
        ParameterUpdate::Rows(rows) => Message::text(format!(
            r#"{{"op":"parameterValues","parameters":[{rows}]}}"#
        )),
        ParameterUpdate::Skipped(count) => {
            let text = format!("{count} parameter updates were skipped, read the parameters again");
            protocol::status(Level::Warning, None, &text)
        }
    })
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
    // Made once, and before the lock that all viewers share.
    let rows = set.chain(deleted).map(|(name, value)| {
        let name: Arc<str> = format!("{node}.{name}").into();
        let row: Arc<str> = row(&name, &value).to_string().into();
        (name, row)
    });
    let rows: Vec<(Arc<str>, Arc<str>)> = rows.collect();
    server.with_viewers(|viewers| {
        for client in viewers.clients.values() {
            let mut wanted = client.wanted_parameters.lock();
            let mut is_new = false;
            for (name, row) in &rows {
                is_new |= wanted.note(name, row);
            }
            drop(wanted);
            if is_new {
                client.outbox.wake();
            }
        }
    });
}
