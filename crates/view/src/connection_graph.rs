//! Connection graph: which nodes publish, subscribe and serve. A viewer gets all of it
//! first, and then what changes.

use std::collections::{BTreeMap, BTreeSet};

use pteros::graph::EndpointInfo;
use serde_json::{Map, Value, json};
use tungstenite::Message;

use crate::graph_snapshot::{GraphSnapshot, node_name};
use crate::protocol;

/// Nodes by topic or service.
type Rows = BTreeMap<String, BTreeSet<String>>;

/// What viewers know.
#[derive(Clone, Default, PartialEq)]
pub struct ConnectionGraph {
    published: Rows,
    subscribed: Rows,
    services: Rows,
}

impl ConnectionGraph {
    /// The connections of a snapshot.
    pub fn of(snapshot: &GraphSnapshot) -> Self {
        let nodes = |endpoints: &[EndpointInfo]| -> BTreeSet<String> {
            endpoints.iter().filter_map(node_name).collect()
        };
        let topics = || snapshot.topics.iter();
        let named = |(name, nodes): (&String, BTreeSet<String>)| {
            (!nodes.is_empty()).then(|| (name.clone(), nodes))
        };
        Self {
            published: topics()
                .filter_map(|(name, topic)| named((name, nodes(&topic.publishers))))
                .collect(),
            subscribed: topics()
                .filter_map(|(name, topic)| named((name, nodes(&topic.subscribers))))
                .collect(),
            services: snapshot
                .services
                .iter()
                .map(|(name, service)| (name.clone(), service.providers.clone()))
                .collect(),
        }
    }

    /// The message for a viewer that knows `before`.
    pub fn update_since(&self, before: &Self) -> Message {
        let changed = |now: &Rows, before: &Rows, ids: &str| -> Vec<Value> {
            let new = now
                .iter()
                .filter(|(name, nodes)| before.get(*name) != Some(*nodes));
            new.map(|(name, nodes)| {
                let mut row = Map::new();
                row.insert("name".into(), json!(name));
                row.insert(ids.into(), json!(nodes));
                Value::Object(row)
            })
            .collect()
        };
        let has_topic = |of: &Self, name: &String| {
            of.published.contains_key(name) || of.subscribed.contains_key(name)
        };
        let topics: BTreeSet<&String> = before
            .published
            .keys()
            .chain(before.subscribed.keys())
            .collect();
        let removed_topics: Vec<_> = topics
            .into_iter()
            .filter(|name| !has_topic(self, name))
            .collect();
        let services = before.services.keys();
        let removed_services: Vec<_> = services
            .filter(|name| !self.services.contains_key(*name))
            .collect();
        // A topic that lost its last publisher alone is told with no publishers.
        let emptied = |now: &Rows, before: &Rows, ids: &str| -> Vec<Value> {
            let gone = before
                .keys()
                .filter(|name| !now.contains_key(*name) && has_topic(self, name));
            gone.map(|name| json!({ "name": name, ids: [] })).collect()
        };
        let mut published = changed(&self.published, &before.published, "publisherIds");
        published.extend(emptied(&self.published, &before.published, "publisherIds"));
        let mut subscribed = changed(&self.subscribed, &before.subscribed, "subscriberIds");
        subscribed.extend(emptied(
            &self.subscribed,
            &before.subscribed,
            "subscriberIds",
        ));
        protocol::text(&json!({
            "op": "connectionGraphUpdate",
            "publishedTopics": published,
            "subscribedTopics": subscribed,
            "advertisedServices": changed(&self.services, &before.services, "providerIds"),
            "removedTopics": removed_topics,
            "removedServices": removed_services,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &str)]) -> Rows {
        let rows = rows.iter();
        rows.map(|(name, node)| ((*name).to_owned(), BTreeSet::from([(*node).to_owned()])))
            .collect()
    }

    #[test]
    fn an_update_has_what_changed() {
        let before = ConnectionGraph {
            published: rows(&[("/a", "/n"), ("/b", "/n")]),
            subscribed: rows(&[("/b", "/m"), ("/c", "/m")]),
            services: rows(&[("/s", "/n")]),
        };
        let now = ConnectionGraph {
            published: rows(&[("/a", "/n")]),
            subscribed: rows(&[("/b", "/o")]),
            services: Rows::new(),
        };
        let message = now.update_since(&before).into_text().unwrap();
        let update: Value = serde_json::from_str(&message).unwrap();
        assert_eq!(
            update["publishedTopics"],
            json!([{ "name": "/b", "publisherIds": [] }])
        );
        assert_eq!(
            update["subscribedTopics"],
            json!([{ "name": "/b", "subscriberIds": ["/o"] }])
        );
        assert_eq!(update["removedTopics"], json!(["/c"]));
        assert_eq!(update["removedServices"], json!(["/s"]));
    }
}
