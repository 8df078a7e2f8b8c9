//! `pteros action send_goal`.

use super::known::feedback_topic;
use crate::interface::named::known_action_type;
use crate::outcome::{Failed, Interrupted};
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::told;
use crate::values::positive_seconds;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::interfaces::action_msgs::srv::{CancelGoal, CancelGoal_Request};
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros::msg::library::InterfaceLibrary;
use pteros::qos::QosProfile;
use pteros::{
    CallError, DynamicClient, DynamicServiceType, GoalStatus, Graph, Sample, ServiceOptions,
    Subscription, SubscriptionOptions,
};
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};

/// How long one wait lasts before Ctrl-C is looked at again.
const SLICE: Duration = Duration::from_millis(50);
/// How long the server's feedback is waited for once it serves.
const MATCH: Duration = Duration::from_secs(1);
/// How long cancelling is waited for.
const CANCEL: Duration = Duration::from_secs(5);

/// Arguments of `action send_goal`.
#[derive(Debug, Args)]
pub struct SendGoal {
    /// Print what the goal has come to meanwhile
    #[arg(short = 'f', long)]
    feedback: bool,
    /// Cancel the goal when it, or the wait for its server, lasts longer [default:
    /// wait until Ctrl-C, which leaves the goal to its server]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
    /// Read the goal from standard input
    #[arg(long, conflicts_with = "goal")]
    stdin: bool,
    /// Name of the action (e.g. /fibonacci)
    action_name: String,
    /// Type of the action (e.g. example_interfaces/action/Fibonacci)
    action_type: String,
    /// The goal's fields in YAML (e.g. '{order: 10}'); the others keep their defaults
    #[arg(
        default_value = "{}",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    goal: String,
}

/// One goal on its way.
struct Way<'s> {
    shared: &'s Shared,
    session: Session,
    name: String,
    end: Option<Instant>,
    limit_ms: u64,
    feedback: Option<Subscription<DynamicMessage>>,
    /// As feedback names it.
    id: String,
}

impl SendGoal {
    /// Sends one goal and waits for its end.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let name = session.topic(&self.action_name)?;
        let Types {
            name: ty,
            asking,
            telling,
            feedback: feedback_type,
        } = self.types(shared, &session, &name)?;
        let mut request = DynamicMessage::new(asking.request());
        request.set_yaml("goal", &self.yaml()?).with_context(|| {
            format!(
                "the values are no goal of {ty} (to see its fields: pteros interface show {ty})"
            )
        })?;
        let uuid = new_id(&session);
        let listed = format!("{uuid:?}");
        request.set_yaml("goal_id.uuid", &listed)?;
        let feedback = match self.feedback {
            true => Some(feedback(&session, &feedback_type, &name)?),
            false => None,
        };
        let way = Way {
            shared,
            id: id_of(&request)?,
            end: self.timeout.map(|timeout| Instant::now() + timeout),
            limit_ms: self.timeout.map_or(0, millis),
            feedback,
            session,
            name,
        };
        let accepted = way.ask(&asking, &request)?;
        if !accepted {
            way.finish(&json!({ "accepted": false }), "Goal was rejected.")?;
            return Err(Failed.into());
        }
        let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        if !shared.console.json {
            let line = format!("Goal accepted with ID: {hex}\n");
            shared.console.line(line)?;
        }
        let mut wanted = DynamicMessage::new(telling.request());
        wanted.set_yaml("goal_id.uuid", &listed)?;
        let client = way.client("get_result", &telling)?;
        let answer = match way.call(&client, &wanted) {
            Err(error) if is_late(&error) => {
                way.cancel(uuid)?;
                return Err(error);
            }
            answer => answer?,
        };
        way.tell_end(&answer, &hex)
    }

    /// By its definition, or else as the action's server tells it.
    fn types(&self, shared: &Shared, session: &Session, action: &str) -> Result<Types> {
        let library = shared.library()?;
        let unknown = match known_action_type(&library, &self.action_type) {
            Ok(name) => return Types::of_library(&library, name),
            Err(unknown) => unknown,
        };
        let graph = session.discover(&DiscoveryFlags::default());
        let told = Types::told(session, &graph, action, &self.action_type);
        told.map_err(|silence| {
            unknown.context(format!(
                "nobody at action '{action}' tells its type ({silence})"
            ))
        })
    }

    fn yaml(&self) -> Result<String> {
        if !self.stdin {
            return Ok(self.goal.clone());
        }
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading the goal from standard input")?;
        Ok(text)
    }
}

/// What an action's messages are made of.
struct Types {
    name: String,
    asking: DynamicServiceType,
    telling: DynamicServiceType,
    feedback: DynamicType,
}

impl Types {
    fn of_library(library: &InterfaceLibrary, name: String) -> Result<Self> {
        let feedback = library.describe(&format!("{name}_FeedbackMessage"))?;
        Ok(Self {
            asking: DynamicServiceType::new(library, &format!("{name}_SendGoal"))?,
            telling: DynamicServiceType::new(library, &format!("{name}_GetResult"))?,
            feedback: DynamicType::new(&feedback)?,
            name,
        })
    }

    fn told(session: &Session, graph: &Graph, action: &str, name: &str) -> Result<Self> {
        let service = |part: &str, suffix: &str| {
            let service = format!("{action}/_action/{part}");
            told::of_service(session, graph, &service, &format!("{name}{suffix}"))
        };
        Ok(Self {
            name: name.into(),
            asking: service("send_goal", "_SendGoal")?,
            telling: service("get_result", "_GetResult")?,
            feedback: told::of_topic(session, graph, &feedback_topic(action))?,
        })
    }
}

/// Nobody else's: the participant's identity, and a number.
fn new_id(session: &Session) -> [u8; 16] {
    let mut id = session.context.guid().to_bytes();
    id[12..].copy_from_slice(&1_u32.to_be_bytes());
    id
}

fn feedback(
    session: &Session,
    ty: &DynamicType,
    action: &str,
) -> Result<Subscription<DynamicMessage>> {
    let options = SubscriptionOptions::new(QosProfile::default().keep_last(1_000));
    let topic = feedback_topic(action);
    Ok(session
        .node
        .create_dynamic_subscription(&topic, ty, options)?)
}

fn id_of(message: &DynamicMessage) -> Result<String> {
    Ok(message.to_yaml_at("goal_id.uuid", &YamlOptions::default())?)
}

fn yaml_of(message: &DynamicMessage, path: &str) -> Result<String> {
    Ok(message.to_yaml_at(path, &YamlOptions::default())?)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn is_late(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<CallError>(),
        Some(CallError::TimedOut { .. })
    )
}

impl Way<'_> {
    fn client(&self, part: &str, ty: &DynamicServiceType) -> Result<DynamicClient> {
        let name = format!("{}/_action/{part}", self.name);
        let options = ServiceOptions::default();
        Ok(self
            .session
            .node
            .create_dynamic_client(&name, ty, options)?)
    }

    /// Whether the goal is accepted.
    fn ask(&self, ty: &DynamicServiceType, request: &DynamicMessage) -> Result<bool> {
        let client = self.client("send_goal", ty)?;
        let console = self.shared.console;
        if !console.json {
            console.line("Waiting for an action server to become available...")?;
        }
        while !client.wait_for_service(SLICE) {
            self.check(|| CallError::NoServer {
                service: client.service_name().into(),
                service_type: ty.name().into(),
                waited_ms: self.limit_ms,
            })?;
        }
        if let Some(feedback) = &self.feedback {
            // What is told before that is not heard.
            feedback.wait_for_matched(1, MATCH);
        }
        if !console.json {
            let goal = yaml_of(request, "goal")?;
            console.line(format!("Sending goal:\n     {goal}"))?;
        }
        let answer = self.call(&client, request)?;
        let answer: Value = serde_json::from_str(&answer.to_json())?;
        Ok(answer["accepted"] == json!(true))
    }

    /// Calls, and prints feedback meanwhile.
    fn call(
        &self,
        client: &DynamicClient,
        request: &DynamicMessage,
    ) -> Result<Sample<DynamicMessage>> {
        while !client.wait_for_service(SLICE) {
            self.check(|| self.late(client))?;
        }
        let mut call = client.call_async(request)?;
        loop {
            self.tell_feedback()?;
            if let Some(answer) = call.take() {
                self.tell_feedback()?;
                return Ok(answer?);
            }
            self.check(|| self.late(client))?;
            self.session.spin_once(SLICE);
        }
    }

    fn late(&self, client: &DynamicClient) -> CallError {
        CallError::TimedOut {
            service: client.service_name().into(),
            waited_ms: self.limit_ms,
        }
    }

    /// Whether to wait on.
    fn check(&self, late: impl FnOnce() -> CallError) -> Result<()> {
        if self.session.context.is_shut_down() {
            return Err(Interrupted.into());
        }
        match self.end.is_some_and(|end| Instant::now() >= end) {
            true => Err(late().into()),
            false => Ok(()),
        }
    }

    fn tell_feedback(&self) -> Result<()> {
        let Some(feedback) = &self.feedback else {
            return Ok(());
        };
        while let Some(message) = feedback.take() {
            if id_of(&message)? != self.id {
                continue;
            }
            let console = self.shared.console;
            if console.json {
                let message: Value = serde_json::from_str(&message.to_json())?;
                console.json_line(&json!({ "feedback": message["feedback"] }))?;
            } else {
                let text = yaml_of(&message, "feedback")?;
                console.line(format!("Feedback:\n    {text}"))?;
            }
        }
        Ok(())
    }

    fn tell_end(&self, answer: &DynamicMessage, id: &str) -> Result<()> {
        let all: Value = serde_json::from_str(&answer.to_json())?;
        let number = all["status"].as_i64().and_then(|n| i8::try_from(n).ok());
        let status = GoalStatus::from_id(number.unwrap_or_default());
        if status == GoalStatus::Unknown {
            bail!(
                "action '{}': its server does not know the goal any more",
                self.name
            );
        }
        let text = format!(
            "Result:\n    {}\nGoal finished with status: {}",
            yaml_of(answer, "result")?,
            status.to_string().to_uppercase()
        );
        let json = json!({
            "accepted": true,
            "goal_id": id,
            "status": status.to_string(),
            "result": all["result"],
        });
        self.finish(&json, &text)?;
        match status {
            GoalStatus::Succeeded => Ok(()),
            _ => Err(Failed.into()),
        }
    }

    fn finish(&self, json: &Value, text: &str) -> Result<()> {
        let console = self.shared.console;
        match console.json {
            true => Ok(console.json_line(json)?),
            false => Ok(console.line(text)?),
        }
    }

    fn cancel(&self, id: [u8; 16]) -> Result<()> {
        self.shared.console.remark("Canceling goal...");
        let name = format!("{}/_action/cancel_goal", self.name);
        let client = self.session.node.create_client::<CancelGoal>(&name)?;
        let mut request = CancelGoal_Request::default();
        request.goal_info.goal_id.uuid = id;
        let answer = client.call(&request, CANCEL)?;
        match answer.goals_canceling.is_empty() {
            true => bail!("action '{}': the goal is not cancelled", self.name),
            false => self.shared.console.remark("Goal canceled."),
        }
        Ok(())
    }
}
