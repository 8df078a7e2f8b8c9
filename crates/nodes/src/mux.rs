//! Services of `topic_tools mux`: choose, add, delete and list its inputs.
//!
//! Their types are of `topic_tools_interfaces`, which is no standard package. So they are
//! read from their definitions here.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros::component::ComponentError;
use pteros::msg::dynamic::{DynamicMessage, DynamicService, Value};
use pteros::msg::library::InterfaceLibrary;
use pteros::msg::schema::InterfaceKind;
use pteros::{ServiceOptions, info, warn};

use crate::topic_tools::Tool;

const PACKAGE: &str = "topic_tools_interfaces";
/// Selected in place of a topic, it leaves the output silent.
const NONE: &str = "__none";
/// Most inputs. `~/add` refuses more.
const INPUTS_MAX: usize = 1000;

const DEFINITIONS: [(&str, &str); 4] = [
    ("MuxAdd", "string topic\n---\nbool success\n"),
    ("MuxDelete", "string topic\n---\nbool success\n"),
    ("MuxList", "---\nstring[] topics\n"),
    (
        "MuxSelect",
        "string topic\n---\nstring prev_topic\nbool success\n",
    ),
];

struct Mux {
    tool: Arc<Tool>,
    inputs: Mutex<Vec<String>>,
}

/// Offers the services of a mux with these inputs. They last as long as the result.
pub(crate) fn serve(
    tool: &Arc<Tool>,
    inputs: Vec<String>,
) -> Result<impl Any + Send + use<>, ComponentError> {
    let mux = Arc::new(Mux {
        tool: tool.clone(),
        inputs: Mutex::new(inputs),
    });
    let mut services = Vec::new();
    for (name, topic, answer) in [
        (
            "MuxAdd",
            "~/add",
            Mux::add as fn(&Mux, &str, &mut DynamicMessage) -> bool,
        ),
        ("MuxDelete", "~/delete", Mux::delete),
        ("MuxSelect", "~/select", Mux::select),
        ("MuxList", "~/list", Mux::list),
    ] {
        let ty = service_type(name)?;
        let (mux, response) = (mux.clone(), ty.response().clone());
        let options = ServiceOptions::<DynamicService>::of_type(&ty, topic);
        let service = tool.node.create_service(options, move |request| {
            let mut answered = DynamicMessage::new(&response);
            let topic = request.field("topic").and_then(|topic| topic.as_str());
            let success = answer(&mux, topic.unwrap_or_default(), &mut answered);
            // Only a list has no such field.
            let _ = answered.set("success", success);
            answered
        });
        services.push(service?);
    }
    Ok(services)
}

fn service_type(name: &str) -> Result<DynamicService, ComponentError> {
    let mut library = InterfaceLibrary::default();
    for (name, text) in DEFINITIONS {
        library.insert_text(PACKAGE, InterfaceKind::Service, name, text, PACKAGE);
    }
    library.merge(pteros::interfaces::library());
    Ok(DynamicService::new(
        &library,
        &format!("{PACKAGE}/srv/{name}"),
    )?)
}

impl Mux {
    fn add(&self, topic: &str, _: &mut DynamicMessage) -> bool {
        let mut inputs = self.inputs.lock();
        let is_refused = topic == NONE
            || inputs.len() >= INPUTS_MAX
            || inputs.iter().any(|input| input == topic)
            || self.tool.resolve(topic).is_err();
        if is_refused {
            warn!(
                self.tool.node.logger(),
                "failed to add topic \"{topic}\" to mux: it is no new topic, or there are {INPUTS_MAX}"
            );
            return false;
        }
        inputs.push(topic.into());
        info!(self.tool.node.logger(), "added {topic} to mux");
        true
    }

    fn delete(&self, topic: &str, _: &mut DynamicMessage) -> bool {
        let is_selected = self
            .tool
            .input()
            .is_some_and(|input| self.is_same(&input, topic));
        let mut inputs = self.inputs.lock();
        let at = inputs.iter().position(|input| self.is_same(input, topic));
        let Some(at) = at.filter(|_| !is_selected) else {
            warn!(
                self.tool.node.logger(),
                "tried to delete topic \"{topic}\" from mux: it is selected, or no input"
            );
            return false;
        };
        inputs.remove(at);
        info!(self.tool.node.logger(), "deleted topic {topic} from mux");
        true
    }

    fn select(&self, topic: &str, response: &mut DynamicMessage) -> bool {
        let inputs = self.inputs.lock();
        let is_input = |topic: &str| inputs.iter().any(|input| self.is_same(input, topic));
        let previous = self.tool.input().filter(|input| is_input(input));
        let _ = response.set("prev_topic", previous.unwrap_or_default());
        let wanted = (topic != NONE).then(|| topic.to_owned());
        if !wanted.as_deref().is_none_or(is_input) {
            return false;
        }
        self.tool.select(wanted);
        info!(self.tool.node.logger(), "mux selected input: [{topic}]");
        true
    }

    fn list(&self, _: &str, response: &mut DynamicMessage) -> bool {
        let topics = self.inputs.lock().clone();
        response.set("topics", Value::Strings(topics)).is_ok()
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        match (self.tool.resolve(one), self.tool.resolve(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
    }
}
