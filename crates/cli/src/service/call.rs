//! `pteros service call`.

use crate::cli_context::CliContext;
use crate::interface::type_names::find_service_type;
use crate::misspelt::refuse_misspelt;
use crate::pace::Pace;
use crate::python_repr;
use crate::remote_types;
use crate::server_type::check_server_type;
use crate::session::{DiscoveryFlags, Session};
use crate::topic::message_template::MessageTemplate;
use crate::value_parsers::{positive_float, positive_seconds};
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::ClientOptions;
use pteros::msg::dynamic::DynamicService;
use pteros::service::CallError;
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant, SystemTime};

/// Period between two checks for Ctrl-C.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// Arguments of `service call`.
#[derive(Debug, Args)]
pub struct Call {
    /// Call repeatedly at this rate
    #[arg(short = 'r', long, value_name = "HZ", value_parser = positive_float)]
    rate: Option<f64>,
    /// Timeout of a call and of the wait for its server
    /// [default: wait until Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
    /// Read the request from standard input
    #[arg(long, conflicts_with = "values")]
    stdin: bool,
    /// Name of the service (e.g. /add_two_ints)
    service_name: String,
    /// Type of the service (e.g. example_interfaces/srv/AddTwoInts)
    service_type: String,
    /// The request's fields in YAML (e.g. '{a: 1, b: 2}'); the others keep their defaults
    #[arg(
        default_value = "{}",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    values: String,
}

impl Call {
    /// Calls once, or at a rate until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let (session, ty) = self.service_type(cli)?;
        let name = ty.name().to_owned();
        let mut template = MessageTemplate::from_yaml(ty.request(), &self.yaml()?)?;
        let client = session
            .node
            .create_client::<DynamicService>(ClientOptions::of_type(&ty, &self.service_name))?;
        let console = cli.console;
        let limit = self.timeout.unwrap_or(Duration::MAX);
        let period = |rate: f64| {
            Duration::try_from_secs_f64(1.0 / rate)
                .with_context(|| format!("--rate {rate}: the period is too long for a clock"))
        };
        let period = self.rate.map(period).transpose()?;
        let mut pace = period.map(|period| Pace::new(period, Instant::now()));
        loop {
            let started = Instant::now();
            let left = || limit.saturating_sub(started.elapsed());
            if !client.wait_for_service(left().min(POLL_PERIOD)) {
                let graph = session.discover(&DiscoveryFlags::default());
                let services = graph.services();
                let own = client.service_name();
                check_server_type(&graph, own, &name)?;
                // This client is in the graph, too.
                let is_there = client.wait_for_service(Duration::ZERO);
                let names = services.iter().map(|service| service.name.as_str());
                let others = names.filter(|name| is_there || *name != own);
                refuse_misspelt("service", own, others, "pteros service list")?;
                console.note("waiting for service to become available...");
                while !client.wait_for_service(left().min(POLL_PERIOD)) {
                    session.check_interrupted()?;
                    let service = client.service_name();
                    check_server_type(&session.context.graph(), service, &name)?;
                    if left().is_zero() {
                        return Err(CallError::NoServer {
                            service: client.service_name().into(),
                            service_type: name.clone(),
                            waited_ms: millis(limit),
                        }
                        .into());
                    }
                }
            }
            let request = template.stamped(SystemTime::now())?;
            if !console.json {
                let text = python_repr::message(request);
                console.line(format!("requester: making request: {text}\n"))?;
            }
            let mut call = client.call_async(request)?;
            let response = loop {
                if let Some(response) = call.take() {
                    break response?;
                }
                session.check_interrupted()?;
                if left().is_zero() {
                    return Err(client.timed_out(limit).into());
                }
                session.spin_once(left().min(POLL_PERIOD));
            };
            if console.json {
                let response: serde_json::Value = serde_json::from_str(&response.to_json())?;
                let service = client.service_name();
                console.json_line(&json!({ "service": service, "response": response }))?;
            } else {
                let text = python_repr::received_message(&response);
                console.line(format!("response:\n{text}\n"))?;
            }
            let Some(pace) = &mut pace else {
                return Ok(());
            };
            while !pace.take(Instant::now()) {
                session.check_interrupted()?;
                session.spin_once(
                    pace.next()
                        .saturating_duration_since(Instant::now())
                        .min(POLL_PERIOD),
                );
            }
        }
    }

    /// The type from its definition, else from the service's server.
    fn service_type(&self, cli: &CliContext) -> Result<(Session, DynamicService)> {
        let library = cli.library()?;
        let known = find_service_type(&library, &self.service_type);
        let known = known.and_then(|name| Ok(DynamicService::new(&library, &name)?));
        let session = Session::open(cli, None)?;
        let unknown = match known {
            Ok(ty) => return Ok((session, ty)),
            Err(unknown) => unknown,
        };
        let name = session.service(&self.service_name)?;
        let graph = session.discover(&DiscoveryFlags::default());
        check_server_type(&graph, &name, &self.service_type)?;
        let remote = remote_types::of_service(&session, &name, &self.service_type);
        let ty = remote.map_err(|reason| {
            unknown.context(format!(
                "type '{}' is not defined here, and no endpoint of service '{name}' describes it ({reason})",
                self.service_type
            ))
        })?;
        Ok((session, ty))
    }

    fn yaml(&self) -> Result<String> {
        if !self.stdin {
            return Ok(self.values.clone());
        }
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading the request from standard input")?;
        Ok(text)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
