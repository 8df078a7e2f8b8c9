//! `pteros action send_goal`.

use super::lookup::{all_actions, feedback_topic};
use crate::cli_context::CliContext;
use crate::exit_errors::{Failed, Interrupted};
use crate::interface::type_names::find_action_type;
use crate::misspelt::refuse_misspelt;
use crate::remote_types;
use crate::server_type::check_action_server_type;
use crate::session::{DiscoveryFlags, Session};
use crate::value_parsers::positive_seconds;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::interfaces::action_msgs::srv::{CancelGoal, CancelGoalRequest, CancelGoalResponse};
use pteros::msg::dynamic::DynamicService;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros::msg::library::InterfaceLibrary;
use pteros::{
    Client, ClientOptions, NamedQosExt, Sample, Subscription, SubscriptionOptions,
    action::GoalStatus, service::CallError,
};
use pteros_net::shutdown_signal;
use serde_json::{Value, json};
use std::cell::Cell;
use std::io::Read;
use std::time::{Duration, Instant};

/// Period between two checks for Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// How long to wait for a match of the feedback subscription, once the server is
/// there.
const FEEDBACK_MATCH_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of a cancel request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `action send_goal`.
#[derive(Debug, Args)]
pub struct SendGoal {
    /// Print the feedback of the goal
    #[arg(short = 'f', long)]
    feedback: bool,
    /// Cancel the goal when it, or the wait for its server, lasts longer
    /// [default: wait until Ctrl-C, which cancels the goal, too]
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

/// A goal that was sent.
struct GoalSession<'s> {
    cli: &'s CliContext,
    session: Session,
    name: String,
    end: Option<Instant>,
    limit_ms: u64,
    feedback: Option<Subscription<DynamicMessage>>,
    uuid: [u8; 16],
    /// The goal id as feedback messages contain it.
    id: String,
    progress: Cell<Progress>,
}

/// How far a goal has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No server has it.
    Unsent,
    /// A server may have it.
    Sent,
    Accepted,
    /// It was rejected, or its result has arrived.
    Ended,
}

impl SendGoal {
    /// Sends one goal and waits for its result.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let name = session.topic(&self.action_name)?;
        let ActionTypes {
            name: ty,
            send_goal: asking,
            get_result: telling,
            feedback: feedback_type,
        } = self.types(cli, &session, &name)?;
        let mut request = DynamicMessage::new(asking.request());
        request.set_yaml("goal", &self.yaml()?).with_context(|| {
            format!(
                "the values are not a valid goal of {ty} (to see its fields: pteros interface show {ty})"
            )
        })?;
        let uuid = new_goal_id(&session);
        request.set_yaml("goal_id.uuid", &format!("{uuid:?}"))?;
        let feedback = if self.feedback {
            Some(feedback(&session, &feedback_type, &name)?)
        } else {
            None
        };
        let goal = GoalSession {
            cli,
            id: goal_id_of(&request)?,
            end: self.timeout.map(|timeout| Instant::now() + timeout),
            limit_ms: self.timeout.map_or(0, millis),
            feedback,
            session,
            name,
            uuid,
            progress: Cell::new(Progress::Unsent),
        };
        match goal.pursue(&asking, &request, &telling) {
            Err(error) if goal.is_open() => Err(goal.cancel_after(error)),
            outcome => outcome,
        }
    }

    /// The types from their definition, else from the action's server.
    fn types(&self, cli: &CliContext, session: &Session, action: &str) -> Result<ActionTypes> {
        let library = cli.library()?;
        let unknown = match find_action_type(&library, &self.action_type) {
            Ok(name) => return ActionTypes::from_library(&library, name),
            Err(unknown) => unknown,
        };
        let graph = session.discover(&DiscoveryFlags::default());
        check_action_server_type(&graph, action, &self.action_type)?;
        let types = ActionTypes::from_graph(session, action, &self.action_type);
        types.map_err(|reason| {
            unknown.context(format!(
                "type '{}' is not defined here, and no endpoint of action '{action}' describes it ({reason})",
                self.action_type
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

/// The message types of an action.
struct ActionTypes {
    name: String,
    send_goal: DynamicService,
    get_result: DynamicService,
    feedback: DynamicType,
}

impl ActionTypes {
    fn from_library(library: &InterfaceLibrary, name: String) -> Result<Self> {
        let feedback = library.describe(&format!("{name}_FeedbackMessage"))?;
        Ok(Self {
            send_goal: DynamicService::new(library, &format!("{name}_SendGoal"))?,
            get_result: DynamicService::new(library, &format!("{name}_GetResult"))?,
            feedback: DynamicType::new(&feedback)?,
            name,
        })
    }

    fn from_graph(session: &Session, action: &str, name: &str) -> Result<Self> {
        let service = |part: &str, suffix: &str| {
            let service = format!("{action}/_action/{part}");
            remote_types::of_service(session, &service, &format!("{name}{suffix}"))
        };
        Ok(Self {
            name: name.into(),
            send_goal: service("send_goal", "_SendGoal")?,
            get_result: service("get_result", "_GetResult")?,
            feedback: session
                .node
                .fetch_topic_type(&feedback_topic(action), remote_types::TYPE_TIMEOUT)?,
        })
    }
}

/// A unique goal id from the participant's GUID and a counter.
fn new_goal_id(session: &Session) -> [u8; 16] {
    let mut id = session.context.guid().to_bytes();
    id[12..].copy_from_slice(&1_u32.to_be_bytes());
    id
}

fn feedback(
    session: &Session,
    ty: &DynamicType,
    action: &str,
) -> Result<Subscription<DynamicMessage>> {
    let options = SubscriptionOptions::of_type(ty, feedback_topic(action).keep_last(1_000));
    Ok(session
        .node
        .create_polled_subscription::<DynamicMessage>(options)?)
}

fn goal_id_of(message: &DynamicMessage) -> Result<String> {
    Ok(message.to_yaml_at("goal_id.uuid", &YamlOptions::default())?)
}

fn yaml_of(message: &DynamicMessage, path: &str) -> Result<String> {
    Ok(message.to_yaml_at(path, &YamlOptions::default())?)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl GoalSession<'_> {
    /// Sends the goal, waits for its result and prints it.
    fn pursue(
        &self,
        asking: &DynamicService,
        request: &DynamicMessage,
        telling: &DynamicService,
    ) -> Result<()> {
        if !self.send(asking, request)? {
            self.progress.set(Progress::Ended);
            self.print(&json!({ "accepted": false }), "Goal was rejected.")?;
            return Err(Failed.into());
        }
        self.progress.set(Progress::Accepted);
        let hex: String = self.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let console = self.cli.console;
        if !console.json {
            console.line(format!("Goal accepted with ID: {hex}\n"))?;
        }
        let mut request = DynamicMessage::new(telling.request());
        request.set_yaml("goal_id.uuid", &format!("{:?}", self.uuid))?;
        let response = self.call(&self.client("get_result", telling)?, &request)?;
        self.progress.set(Progress::Ended);
        self.print_result(&response, &hex)
    }

    /// Whether the server may have a goal without a result.
    fn is_open(&self) -> bool {
        matches!(self.progress.get(), Progress::Sent | Progress::Accepted)
    }

    fn client(&self, part: &str, ty: &DynamicService) -> Result<Client<DynamicService>> {
        let name = format!("{}/_action/{part}", self.name);
        let options = ClientOptions::of_type(ty, name);
        Ok(self.session.node.create_client(options)?)
    }

    /// Sends the goal. Returns whether it is accepted.
    fn send(&self, ty: &DynamicService, request: &DynamicMessage) -> Result<bool> {
        let client = self.client("send_goal", ty)?;
        let console = self.cli.console;
        if !console.json {
            console.line("Waiting for an action server to become available...")?;
        }
        let mut is_checked = false;
        while !client.wait_for_service(POLL_PERIOD) {
            let graph = self.session.context.graph();
            if !is_checked {
                is_checked = true;
                let graph = self.session.discover(&DiscoveryFlags::default());
                let actions = all_actions(&graph);
                // Our own subscription to the feedback is in the graph, too.
                let is_there = !graph.publishers(&feedback_topic(&self.name)).is_empty();
                let names = actions.iter().map(|action| action.name.as_str());
                let others = names.filter(|name| is_there || *name != self.name);
                refuse_misspelt("action", &self.name, others, "pteros action list")?;
            }
            let own = ty.name().strip_suffix("_SendGoal").unwrap_or(ty.name());
            check_action_server_type(&graph, &self.name, own)?;
            self.check_deadline(|| CallError::NoServer {
                service: client.service_name().into(),
                service_type: ty.name().into(),
                waited_ms: self.limit_ms,
            })?;
        }
        if let Some(feedback) = &self.feedback {
            // Feedback before the match is lost.
            feedback.wait_for_matched(1, FEEDBACK_MATCH_TIMEOUT);
        }
        if !console.json {
            let goal = yaml_of(request, "goal")?;
            console.line(format!("Sending goal:\n     {goal}"))?;
        }
        let response = self.call(&client, request)?;
        let response: Value = serde_json::from_str(&response.to_json())?;
        Ok(response["accepted"] == json!(true))
    }

    /// Calls the service, and prints feedback meanwhile.
    fn call(
        &self,
        client: &Client<DynamicService>,
        request: &DynamicMessage,
    ) -> Result<Sample<DynamicMessage>> {
        while !client.wait_for_service(POLL_PERIOD) {
            self.check_deadline(|| self.timeout_error(client))?;
        }
        let mut call = client.call_async(request)?;
        if self.progress.get() == Progress::Unsent {
            self.progress.set(Progress::Sent);
        }
        loop {
            self.print_feedback()?;
            if let Some(response) = call.take() {
                self.print_feedback()?;
                return Ok(response?);
            }
            self.check_deadline(|| self.timeout_error(client))?;
            self.session.spin_once(POLL_PERIOD);
        }
    }

    fn timeout_error(&self, client: &Client<DynamicService>) -> CallError {
        client.timed_out(Duration::from_millis(self.limit_ms))
    }

    /// Fails after Ctrl-C or the timeout.
    fn check_deadline(&self, late: impl FnOnce() -> CallError) -> Result<()> {
        self.session.check_interrupted()?;
        if self.end.is_some_and(|end| Instant::now() >= end) {
            Err(late().into())
        } else {
            Ok(())
        }
    }

    fn print_feedback(&self) -> Result<()> {
        let Some(feedback) = &self.feedback else {
            return Ok(());
        };
        while let Some(message) = feedback.take() {
            if goal_id_of(&message)? != self.id {
                continue;
            }
            let console = self.cli.console;
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

    fn print_result(&self, response: &DynamicMessage, id: &str) -> Result<()> {
        let all: Value = serde_json::from_str(&response.to_json())?;
        let number = all["status"].as_i64().and_then(|n| i8::try_from(n).ok());
        let status = GoalStatus::from_id(number.unwrap_or_default());
        if status == GoalStatus::Unknown {
            bail!("action '{}': the server no longer has the goal", self.name);
        }
        let text = format!(
            "Result:\n    {}\nGoal finished with status: {}",
            yaml_of(response, "result")?,
            status.to_string().to_uppercase()
        );
        let json = json!({
            "accepted": true,
            "goal_id": id,
            "status": status.to_string(),
            "result": all["result"],
        });
        self.print(&json, &text)?;
        match status {
            GoalStatus::Succeeded => Ok(()),
            _ => Err(Failed.into()),
        }
    }

    fn print(&self, json: &Value, text: &str) -> Result<()> {
        let console = self.cli.console;
        if console.json {
            Ok(console.json_line(json)?)
        } else {
            Ok(console.line(text)?)
        }
    }

    /// Cancels the goal, because the verb ends with `error`. Returns the error of the
    /// verb.
    ///
    /// Ctrl-C and SIGTERM have ended the session, so another one cancels. A second
    /// signal ends the wait for the response.
    fn cancel_after(&self, error: anyhow::Error) -> anyhow::Error {
        let is_interrupted = self.session.context.is_shut_down();
        let error = if is_interrupted {
            Interrupted::now().into()
        } else {
            error
        };
        let cancel = || -> Result<()> {
            if !is_interrupted {
                return self.cancel(&self.session);
            }
            shutdown_signal()?.clear();
            // The node of the ended session has its name still.
            let name = format!("_pteros_cli_{}_cancel", std::process::id());
            self.cancel(&Session::open(self.cli, Some(&name))?)
        };
        if let Err(reason) = cancel() {
            let action = &self.name;
            let note = format!("the goal of action '{action}' may go on: {reason:#}");
            self.cli.console.note(note);
        }
        error
    }

    fn cancel(&self, session: &Session) -> Result<()> {
        self.cli.console.note("Canceling goal...");
        let name = format!("{}/_action/cancel_goal", self.name);
        let client = session.node.create_client::<CancelGoal>(&name)?;
        let mut request = CancelGoalRequest::default();
        request.goal_info.goal_id.uuid = self.uuid;
        let end = Instant::now() + CANCEL_TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let response = client.call(&request, left)?;
            if !response.goals_canceling.is_empty() {
                self.cli.console.note("Goal canceled.");
                return Ok(());
            }
            match response.return_code {
                // The server has not decided yet whether it accepts the goal.
                CancelGoalResponse::ERROR_UNKNOWN_GOAL_ID
                    if self.progress.get() == Progress::Sent && !left.is_zero() =>
                {
                    session.spin_once(POLL_PERIOD);
                }
                CancelGoalResponse::ERROR_UNKNOWN_GOAL_ID => {
                    bail!("the server does not know the goal")
                }
                CancelGoalResponse::ERROR_GOAL_TERMINATED => {
                    self.cli.console.note("The goal has ended.");
                    return Ok(());
                }
                _ => bail!("the server refused to cancel it"),
            }
        }
    }
}
