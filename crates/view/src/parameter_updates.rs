//! Parameter updates: passes `/parameter_events` on to the viewers that asked for them. The
//! subscription begins with the first of these viewers and ends with the last.
//!
//! The newest row of each name waits for the viewer's thread, so that a slow viewer skips old
//! values instead of being cut off.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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

/// Names that one viewer may ask for, and the longest.
const NAMES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 1024;
/// Rows that wait for one viewer, and their bytes.
const ROWS_MAX: usize = 16_384;
const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes of the rows of one message; one row is sent in any case.
const MESSAGE_BYTES: usize = 64 << 10;
const TOPIC: &str = "/parameter_events";

/// The parameters whose updates a viewer wants, and the updates that wait for it.
#[derive(Default)]
pub struct WantedParameters {
    is_all: bool,
    names: BTreeSet<String>,
    waiting: Rows,
}

/// The newest row of each name, as JSON, in the order of the names' first updates.
#[derive(Default)]
struct Rows {
    order: VecDeque<Arc<str>>,
    rows: BTreeMap<Arc<str>, Arc<str>>,
    bytes: usize,
    skipped: u64,
}

impl Rows {
    fn insert(&mut self, name: &Arc<str>, row: &Arc<str>) {
        let before = self.rows.get(name);
        let kept = self.bytes - before.map_or(0, |row| row.len());
        let is_full = before.is_none() && self.rows.len() >= ROWS_MAX;
        if is_full || kept + row.len() > ROW_BYTES_MAX {
            self.skipped += 1;
            return;
        }
        self.bytes = kept + row.len();
        if self.rows.insert(name.clone(), row.clone()).is_none() {
            self.order.push_back(name.clone());
        }
    }

    fn pop(&mut self) -> Option<Arc<str>> {
        let row = self.rows.remove(&self.order.pop_front()?)?;
        self.bytes -= row.len();
        Some(row)
    }
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

    /// The next message with updates, or with how many were skipped.
    pub fn next_message(&mut self) -> Option<Message> {
        let rows = &mut self.waiting;
        if rows.order.is_empty() && rows.skipped > 0 {
            let text = format!(
                "{} parameter updates were skipped, read the parameters again",
                std::mem::take(&mut rows.skipped)
            );
            return Some(protocol::status(Level::Warning, None, &text));
        }
        let mut text = String::from(r#"{"op":"parameterValues","parameters":["#);
        let begin = text.len();
        while text.len() < MESSAGE_BYTES
            && let Some(row) = rows.pop()
        {
            if text.len() > begin {
                text.push(',');
            }
            text.push_str(&row);
        }
        if text.len() == begin {
            return None;
        }
        text.push_str("]}");
        Some(Message::text(text))
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
                if wanted.has(name) {
                    wanted.waiting.insert(name, row);
                    is_new = true;
                }
            }
            drop(wanted);
            if is_new {
                client.outbox.wake();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(wanted: &mut WantedParameters, name: &str, row: &str) {
        wanted.waiting.insert(&name.into(), &row.into());
    }

    fn text(wanted: &mut WantedParameters) -> String {
        wanted
            .next_message()
            .unwrap()
            .into_text()
            .unwrap()
            .to_string()
    }

    #[test]
    fn the_newest_row_of_each_name_waits() {
        let mut wanted = WantedParameters::default();
        for row in ["1", "2"] {
            insert(&mut wanted, "b", row);
            insert(&mut wanted, "a", row);
        }
        assert_eq!(
            text(&mut wanted),
            r#"{"op":"parameterValues","parameters":[2,2]}"#
        );
        assert!(wanted.next_message().is_none() && wanted.waiting.bytes == 0);
    }

    #[test]
    fn waiting_rows_are_bounded_and_the_skipped_counted() {
        let mut wanted = WantedParameters::default();
        for name in 0..ROWS_MAX + 5 {
            insert(&mut wanted, &name.to_string(), "1");
        }
        let large = "1".repeat(ROW_BYTES_MAX);
        insert(&mut wanted, "0", &large);
        assert_eq!(wanted.waiting.rows.len(), ROWS_MAX);
        assert!(wanted.waiting.bytes <= ROW_BYTES_MAX);
        let texts = std::iter::from_fn(|| wanted.next_message());
        let last = texts.last().unwrap().into_text().unwrap();
        assert!(last.contains("6 parameter updates were skipped"), "{last}");
    }

    #[test]
    fn a_message_is_short_however_many_rows_wait() {
        let mut wanted = WantedParameters::default();
        let row = "1".repeat(MESSAGE_BYTES / 2);
        (0..9).for_each(|name| insert(&mut wanted, &name.to_string(), &row));
        let lengths = std::iter::from_fn(|| wanted.next_message()).map(|message| message.len());
        assert!(lengths.max().unwrap() < 2 * MESSAGE_BYTES);
    }
}
