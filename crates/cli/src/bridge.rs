//! `pteros bridge`: joins an RTPS domain with a Zenoh network, for nodes that have one
//! wire each. Works in `pteros_zenoh::bridge`.

use crate::cli_context::CliContext;
use crate::value_parsers::{positive_float, positive_seconds};
use anyhow::Result;
use clap::Args;
use pteros_pattern::{Extent, Pattern};
use std::time::Duration;

/// Arguments of `bridge`.
#[derive(Debug, Args)]
#[command(
    after_help = "Expressions match whole names as they are on the RTPS side, those of actions without /_action/…

The Zenoh side reads ZENOH_SESSION_CONFIG_URI and ZENOH_CONFIG_OVERRIDE, as every node on Zenoh."
)]
#[cfg_attr(
    not(feature = "zenoh"),
    allow(dead_code, reason = "checked, and then refused")
)]
pub struct BridgeVerb {
    /// Bridge only topics, services and actions with matching names; may be repeated
    /// [default: all]
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    allow: Vec<Expression>,
    /// Do not bridge those with matching names, even if they are allowed; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    deny: Vec<Expression>,
    /// Put a namespace (/robot1) before every name on the Zenoh side. Names there outside of
    /// it are not bridged
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Drop messages of a publisher above so many a second, on matching topics; may be
    /// repeated, and the first that matches counts
    #[arg(long, value_name = "REGEX=HZ", value_parser = rate)]
    rate: Vec<Rate>,
    /// Domain of the RTPS side [default: ROS_DOMAIN_ID, as on the Zenoh side]
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(0..=DOMAIN_ID_MAX))]
    rtps_domain: Option<u32>,
    /// Also print the counts of all routes so often
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    statistics: Option<Duration>,
}

const DOMAIN_ID_MAX: i64 = pteros::config::DOMAIN_ID_MAX as i64;

/// A regular expression for whole names.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(any(feature = "view", feature = "zenoh")),
    allow(dead_code, reason = "checked, and then refused")
)]
pub struct Expression(Pattern);

impl Expression {
    /// Whether the whole name matches.
    #[cfg(any(feature = "view", feature = "zenoh", test))]
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// Parses the value of a flag.
pub fn expression(text: &str) -> Result<Expression, String> {
    let whole = Pattern::new(text, Extent::Whole).map_err(|reason| {
        format!("no regular expression ({reason}); it must match whole names, as /camera/.* does")
    })?;
    if !whole.may_begin_with(b'/') {
        return Err(
            "matches no name, as each begins with a slash; write whole names, as /camera/.*".into(),
        );
    }
    Ok(Expression(whole))
}

/// A rate for matching topics.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "zenoh"),
    allow(dead_code, reason = "checked, and then refused")
)]
struct Rate {
    expression: Expression,
    hertz: f64,
}

fn rate(text: &str) -> Result<Rate, String> {
    // An expression may have the character, a number has not.
    let Some((names, hertz)) = text.rsplit_once('=') else {
        return Err("write an expression, = and messages per second, such as /camera/.*=5".into());
    };
    Ok(Rate {
        expression: expression(names)?,
        hertz: positive_float(hertz)?,
    })
}

#[cfg(not(feature = "zenoh"))]
impl BridgeVerb {
    /// Refuses: this program has no Zenoh.
    pub fn run(self, _cli: &CliContext) -> Result<()> {
        anyhow::bail!(crate::router::NO_ZENOH)
    }
}

#[cfg(feature = "zenoh")]
mod running {
    use super::{BridgeVerb, CliContext, Duration, Expression, Result};
    use crate::console::Console;
    use anyhow::{Context as _, bail};
    use pteros::config::WireChoice;
    use pteros::log::escape_line;
    use pteros::transport::RtpsReach;
    use pteros::{Context, ContextOptions};
    use pteros_zenoh::bridge::{
        Bridge, BridgeEvent, BridgeOptions, BridgeStatus, NameSelection, RouteCounts, RouteKind,
        RouteReport, RuleOptions, Side,
    };
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
    use std::time::Instant;

    /// How often the verb looks for Ctrl-C.
    const PERIOD: Duration = Duration::from_millis(100);
    /// Reports that wait for the console, as many as there may be routes that begin and
    /// end. Further ones are left out; the bridge never waits for the console.
    const REPORTS_MAX: usize = 16_384;

    impl BridgeVerb {
        /// Bridges until Ctrl-C.
        pub fn run(self, cli: &CliContext) -> Result<()> {
            if cli.arguments.wire.is_some() {
                bail!(
                    "--wire: a bridge has one side on RTPS and one on Zenoh; leave the argument out"
                );
            }
            let library = cli.library()?;
            let rates = self.rate.into_iter();
            let rates = rates.map(|rate| (selection(rate.expression), rate.hertz));
            let rules = RuleOptions {
                allow: selections(self.allow),
                deny: selections(self.deny),
                rates: rates.collect(),
                namespace: self.namespace.unwrap_or_default(),
                ..RuleOptions::default()
            };
            let open = |wire, domain_id| {
                let mut arguments = cli.arguments.clone();
                arguments.wire = Some(wire);
                let options = ContextOptions {
                    arguments,
                    use_environment: true,
                    domain_id,
                    ..ContextOptions::default()
                };
                Context::with_options(options)
            };
            let rtps = open(WireChoice::Rtps, self.rtps_domain).context("joining RTPS")?;
            if rtps.runtime().options().rtps_reach == RtpsReach::Off {
                bail!(
                    "ROS_AUTOMATIC_DISCOVERY_RANGE=OFF: the RTPS side of the bridge would reach no node; use LOCALHOST or SUBNET"
                );
            }
            let zenoh = open(WireChoice::Zenoh, None).context("joining Zenoh")?;
            let (send, reports) = sync_channel(REPORTS_MAX);
            let options = BridgeOptions {
                rules,
                find_hash: Box::new(move |name| library.type_hash(name).ok()),
                // The receiver has gone when the verb ends.
                report: Box::new(move |event| drop(send.try_send(event.clone()))),
                ..BridgeOptions::default()
            };
            let bridge = Bridge::start(rtps.runtime(), zenoh.runtime(), options)?;
            let output = Output(cli.console);
            output.start(&bridge, &rtps, &zenoh)?;
            let is_over = || bridge.has_ended() || rtps.is_shut_down() || zenoh.is_shut_down();
            let shown = output.follow(&bridge, &reports, self.statistics, is_over);
            let is_stopped = rtps.is_shut_down() || zenoh.is_shut_down();
            if bridge.has_ended() && !is_stopped {
                bail!("a thread of the bridge has panicked, see above; start the bridge again");
            }
            // The counts before everything ends, and no report of every end.
            let status = bridge.status();
            drop(reports);
            drop(bridge);
            shown?;
            output.end(&status)
        }
    }

    fn selections(expressions: Vec<Expression>) -> Vec<NameSelection> {
        expressions.into_iter().map(selection).collect()
    }

    fn selection(expression: Expression) -> NameSelection {
        Arc::new(move |name| expression.matches(name))
    }

    /// The output of the verb.
    struct Output(Console);

    impl Output {
        fn start(&self, bridge: &Bridge, rtps: &Context, zenoh: &Context) -> Result<()> {
            let id = bridge.id();
            let [rtps, zenoh] = [rtps, zenoh].map(Context::domain_id);
            let text = format!(
                "Bridge {id} joins domain {rtps} on RTPS with domain {zenoh} on Zenoh; Ctrl-C ends it"
            );
            self.show(
                &text,
                &json!({
                    "event": "started",
                    "id": id.to_string(),
                    "rtps_domain": rtps,
                    "zenoh_domain": zenoh,
                }),
            )
        }

        /// Prints reports until the end.
        fn follow(
            &self,
            bridge: &Bridge,
            reports: &Receiver<BridgeEvent>,
            statistics: Option<Duration>,
            is_over: impl Fn() -> bool,
        ) -> Result<()> {
            let mut last = Instant::now();
            while !is_over() {
                match reports.recv_timeout(PERIOD) {
                    Ok(event) => self.event(&event)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if statistics.is_some_and(|period| last.elapsed() >= period) {
                    last = Instant::now();
                    self.statistics(&bridge.status())?;
                }
            }
            Ok(())
        }

        fn event(&self, event: &BridgeEvent) -> Result<()> {
            match event {
                BridgeEvent::RouteBegan(route) => {
                    self.show(&format!("begin {}", line_of(route)), &value_of("began", route))
                }
                BridgeEvent::RouteEnded(route) => {
                    let counts = text_of(&route.counts);
                    let text = format!("end {}: {counts}", line_of(route));
                    self.show(&text, &value_of("ended", route))
                }
                BridgeEvent::Refused {
                    from,
                    rtps_name,
                    type_name,
                    reason,
                } => self.show(
                    &escape_line(&format!(
                        "not bridged: {rtps_name} [{type_name}] of {}: {reason}",
                        name_of(*from)
                    )),
                    &json!({
                        "event": "refused",
                        "from": from.to_string(),
                        "name": rtps_name,
                        "type": type_name,
                        "reason": reason,
                    }),
                ),
                BridgeEvent::StandsBy { elder } => self.show(
                    &format!(
                        "standby: bridge {elder} joins the same networks, and goes first for what it allows"
                    ),
                    &json!({ "event": "standby", "elder": elder.to_string() }),
                ),
                BridgeEvent::Active => {
                    let text = "active: no other bridge goes first any more";
                    self.show(text, &json!({ "event": "active" }))
                }
            }
        }

        fn statistics(&self, status: &BridgeStatus) -> Result<()> {
            for route in &status.routes {
                let counts = text_of(&route.counts);
                let text = format!("{}: {counts}", line_of(route));
                self.show(&text, &value_of("counts", route))?;
            }
            for ((side, participant), count) in &status.above_share {
                let side_name = name_of(*side);
                let text = format!(
                    "not bridged: {count} publishers and services of participant {participant} of {side_name}, above its share"
                );
                let value = json!({
                    "event": "above_share",
                    "from": side.to_string(),
                    "participant": participant.to_string(),
                    "count": count,
                });
                self.show(&text, &value)?;
            }
            Ok(())
        }

        fn end(&self, status: &BridgeStatus) -> Result<()> {
            let routes = status.routes.len();
            let text = format!(
                "{routes} routes at the end; in total {}",
                text_of(&status.total)
            );
            let mut value = value_of_counts(&status.total);
            value["event"] = json!("total");
            value["routes"] = json!(routes);
            self.show(&text, &value)
        }

        fn show(&self, text: &str, value: &Value) -> Result<()> {
            if self.0.json {
                self.0.json_line(value)?;
            } else {
                self.0.line(text)?;
            }
            Ok(())
        }
    }

    fn name_of(side: Side) -> &'static str {
        match side {
            Side::Rtps => "RTPS",
            Side::Zenoh => "Zenoh",
        }
    }

    fn kind_of(kind: RouteKind) -> &'static str {
        match kind {
            RouteKind::Topic => "topic",
            RouteKind::Service => "service",
        }
    }

    fn line_of(route: &RouteReport) -> String {
        let renamed = if route.zenoh_name == route.rtps_name {
            String::new()
        } else {
            format!(" ({} on Zenoh)", route.zenoh_name)
        };
        escape_line(&format!(
            "{} {}{renamed} [{}] from {} to {}",
            kind_of(route.kind),
            route.rtps_name,
            route.type_name,
            name_of(route.from),
            name_of(route.from.other()),
        ))
        .into_owned()
    }

    fn text_of(counts: &RouteCounts) -> String {
        format!(
            "{} forwarded, {} above the rate, {} failed",
            counts.forwarded, counts.limited, counts.failed
        )
    }

    fn value_of_counts(counts: &RouteCounts) -> Value {
        json!({
            "forwarded": counts.forwarded,
            "above_rate": counts.limited,
            "failed": counts.failed,
        })
    }

    fn value_of(event: &str, route: &RouteReport) -> Value {
        let mut value = value_of_counts(&route.counts);
        value["event"] = json!(event);
        value["kind"] = json!(kind_of(route.kind));
        value["from"] = json!(route.from.to_string());
        value["name"] = json!(route.rtps_name);
        value["zenoh_name"] = json!(route.zenoh_name);
        value["type"] = json!(route.type_name);
        value["origins"] = json!(route.origins);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_matches_whole_names() {
        let camera = expression("/camera/.*|/tf").unwrap();
        assert!(camera.matches("/camera/image") && camera.matches("/tf"));
        assert!(!camera.matches("/tf_static") && !camera.matches("/my/tf"));
        let wrong = expression("/a(").unwrap_err();
        assert!(
            wrong.starts_with("no regular expression (unclosed group)"),
            "{wrong}"
        );
        let large = expression("/(a{1000}){1000}").unwrap_err();
        assert!(large.contains("more than 1048576 bytes"), "{large}");
        // A parenthesis too many does not escape from the whole name.
        assert!(expression("/a)|(.*").is_err());
    }

    #[test]
    fn an_expression_that_matches_no_name_is_refused() {
        for some in [
            "/a", ".*", "[^a]b", "a?/b", "a|/b", r"^/a$", r"\S+", "a*(/b)?",
        ] {
            assert!(expression(some).is_ok(), "{some}");
        }
        for none in ["", "chatter", "camera/.*", "a|b", "a+/b", "[a-z]/b", "^a"] {
            let wrong = expression(none).unwrap_err();
            assert!(wrong.contains("begins with a slash"), "{none}: {wrong}");
        }
        assert!(rate("=5").is_err());
    }

    #[test]
    fn a_rate_is_an_expression_and_a_number() {
        let of_two = rate("/a=b|/c=2.5").unwrap();
        assert!(of_two.expression.matches("/a=b") && of_two.expression.matches("/c"));
        assert!((of_two.hertz - 2.5).abs() < f64::EPSILON);
        assert!(rate("/a").unwrap_err().contains("such as /camera/.*=5"));
        assert!(rate("/a=fast").unwrap_err().contains("'fast'"));
        assert!(rate("/a=0").is_err() && rate("(=1").is_err());
    }
}
