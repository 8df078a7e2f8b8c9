//! `pteros service call`.

use crate::interface::named::known_service_type;
use crate::outcome::Interrupted;
use crate::python_repr;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use crate::told;
use crate::topic::stamps::Template;
use crate::values::{positive_float, positive_seconds};
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::{CallError, DynamicServiceType, ServiceOptions};
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant, SystemTime};

/// How long one wait lasts before Ctrl-C is looked at again.
const SLICE: Duration = Duration::from_millis(50);

/// Arguments of `service call`.
#[derive(Debug, Args)]
pub struct Call {
    /// Call again and again, so many times a second
    #[arg(short = 'r', long, value_name = "HZ", value_parser = positive_float)]
    rate: Option<f64>,
    /// Give up when a call, or the wait for its server, lasts longer [default: wait until Ctrl-C]
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
    pub fn run(self, shared: &Shared) -> Result<()> {
        let (session, ty) = self.service_type(shared)?;
        let name = ty.name().to_owned();
        let mut template = Template::from_yaml(ty.request(), &self.yaml()?)?;
        let client = session.node.create_dynamic_client(
            &self.service_name,
            &ty,
            ServiceOptions::default(),
        )?;
        let console = shared.console;
        let limit = self.timeout.unwrap_or(Duration::MAX);
        let mut next = Instant::now();
        loop {
            let started = Instant::now();
            let left = || limit.saturating_sub(started.elapsed());
            if !client.wait_for_service(left().min(SLICE)) {
                console.remark("waiting for service to become available...");
                while !client.wait_for_service(left().min(SLICE)) {
                    interrupted(&session)?;
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
            let answer = loop {
                if let Some(answer) = call.take() {
                    break answer?;
                }
                interrupted(&session)?;
                if left().is_zero() {
                    return Err(CallError::TimedOut {
                        service: client.service_name().into(),
                        waited_ms: millis(limit),
                    }
                    .into());
                }
                session.spin_once(left().min(SLICE));
            };
            if console.json {
                let answer: serde_json::Value = serde_json::from_str(&answer.to_json())?;
                let service = client.service_name();
                console.json_line(&json!({ "service": service, "response": answer }))?;
            } else {
                console.line(format!("response:\n{}\n", python_repr::message(&answer)))?;
            }
            let Some(rate) = self.rate else {
                return Ok(());
            };
            next += Duration::try_from_secs_f64(1.0 / rate)
                .with_context(|| format!("--rate {rate}: too slow for a clock"))?;
            while Instant::now() < next {
                interrupted(&session)?;
                session.spin_once(next.saturating_duration_since(Instant::now()).min(SLICE));
            }
        }
    }

    /// By its definition, or else as the service's server tells it.
    fn service_type(&self, shared: &Shared) -> Result<(Session, DynamicServiceType)> {
        let library = shared.library()?;
        let known = known_service_type(&library, &self.service_type);
        let known = known.and_then(|name| Ok(DynamicServiceType::new(&library, &name)?));
        let session = Session::open(shared, None)?;
        let unknown = match known {
            Ok(ty) => return Ok((session, ty)),
            Err(unknown) => unknown,
        };
        let name = session.service(&self.service_name)?;
        let graph = session.discover(&DiscoveryFlags::default());
        let told = told::of_service(&session, &graph, &name, &self.service_type);
        let ty = told.map_err(|silence| {
            unknown.context(format!(
                "nobody at service '{name}' tells its type ({silence})"
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

fn interrupted(session: &Session) -> Result<()> {
    match session.context.is_shut_down() {
        true => Err(Interrupted.into()),
        false => Ok(()),
    }
}
