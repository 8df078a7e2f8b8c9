//! Services that viewers may call, with their numbers and definitions.

use std::collections::{BTreeMap, BTreeSet};

use pteros::msg::dynamic::{DynamicService, DynamicType};
use pteros::msg::library::InterfaceLibrary;
use pteros::type_description::definition_text;
use serde_json::{Value, json};
use tungstenite::Message;

use crate::graph_snapshot::GraphSnapshot;
use crate::protocol::{self, CDR, ROS2_MSG};

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

    /// Follows the graph; returns what viewers are told. Services without a definition are
    /// left out.
    pub fn update(&mut self, library: &InterfaceLibrary, snapshot: &GraphSnapshot) -> Vec<Message> {
        let mut gone = Vec::new();
        self.by_name.retain(|name, service| {
            let now = snapshot.services.get(name);
            let stays = now.is_some_and(|now| now.type_name == service.ty.name());
            if !stays {
                gone.push(service.id);
            }
            stays
        });
        let mut new = BTreeSet::new();
        for (name, service) in &snapshot.services {
            if self.by_name.contains_key(name) {
                continue;
            }
            let Ok(ty) = DynamicService::new(library, &service.type_name) else {
                continue;
            };
            self.last_id += 1;
            let id = self.last_id;
            let row = service_row(library, id, name, &ty);
            new.insert(name.clone());
            self.by_name
                .insert(name.clone(), Advertised { id, ty, row });
        }
        let added = self.by_name.iter().filter(|(name, _)| new.contains(*name));
        let added = advertise(added.map(|(_, service)| service));
        let removed = json!({ "op": "unadvertiseServices", "serviceIds": gone });
        let removed = (!gone.is_empty()).then(|| protocol::text(&removed));
        removed.into_iter().chain(added).collect()
    }

    /// Name and type of a service.
    pub fn find(&self, id: u32) -> Option<(String, DynamicService)> {
        let mut services = self.by_name.iter();
        let (name, service) = services.find(|(_, service)| service.id == id)?;
        Some((name.clone(), service.ty.clone()))
    }
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
fn service_row(library: &InterfaceLibrary, id: u32, name: &str, ty: &DynamicService) -> Value {
    let text = |ty: &DynamicType| definition_text(&ty.description(), library);
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
