//! Loggers of nodes, received on `/rosout`.

use std::time::Duration;

use pteros::args::Arguments;
use pteros::interfaces::rcl_interfaces::msg::{Log, LoggerLevel};
use pteros::interfaces::rcl_interfaces::srv;
use pteros::log::Severity;
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(10);

fn context(domain: u32, words: &str) -> Context {
    let words = format!("--ros-args --disable-stdout-logs {words}");
    let (arguments, _) = Arguments::parse(words.split_whitespace()).unwrap();
    Context::with_options(ContextOptions {
        arguments,
        ..ContextOptions::local(domain)
    })
    .unwrap()
}

fn subscribe_rosout(context: &Context) -> Subscription<Log> {
    let node = context.create_node("hearer").unwrap();
    let qos = QosProfile::rosout().keep_last(10_000);
    node.create_polled_subscription::<Log>("/rosout".qos(qos))
        .unwrap()
}

fn received_logs(subscription: &Subscription<Log>) -> Vec<(u8, String, String)> {
    let taken = std::iter::from_fn(|| subscription.take());
    taken
        .map(|log| (log.level, log.name.clone(), log.msg.clone()))
        .collect()
}

#[test]
fn enabled_messages_are_on_rosout_for_late_joiners_too() {
    let context = context(61, "--log-level robot.arm:=warn");
    let options = NodeOptions::new("arm").namespace("/robot");
    let node = context.create_node(options).unwrap();
    let log = node.logger();
    pteros::info!(log, "not {}", "said");
    pteros::warn!(log, "{} degrees", 81);
    let line = line!() - 1;
    let rosout = subscribe_rosout(&context);
    let said = rosout.take_timeout(TIMEOUT).unwrap();
    assert_eq!(
        (said.level, said.name.as_str(), said.msg.as_str()),
        (30, "robot.arm", "81 degrees")
    );
    assert_eq!((said.line, said.function.as_str()), (line, module_path!()));
    assert!(said.file.ends_with("logging.rs") && said.stamp.sec > 1_500_000_000);
    assert!(log.child("gripper").set_level(Some(Severity::Debug)));
    pteros::debug!(log.child("gripper"), "fine");
    pteros::debug!(log, "not said");
    pteros::fatal!(log, "the end");
    let gripper = (10, "robot.arm.gripper".to_owned(), "fine".to_owned());
    let end = (50, "robot.arm".to_owned(), "the end".to_owned());
    assert_eq!(received_logs(&rosout), [gripper, end]);
    let node = context.graph().publishers("/rosout");
    assert_eq!(node.len(), 1, "{node:?}");
}

#[test]
fn once_skip_first_and_throttle_macros_limit_messages() {
    let context = context(62, "");
    let log = context.create_node("talker").unwrap().logger();
    let _kept = context.create_node("talker").unwrap();
    let node = context.create_node("speaker").unwrap();
    let own = node.logger();
    let rosout = subscribe_rosout(&context);
    for turn in 0..3 {
        pteros::info_once!(own, "once {turn}");
        pteros::error_skip_first!(own, "later {turn}");
        pteros::warn_throttle!(own, Duration::from_secs(3600), "rarely {turn}");
        // A logger whose node is gone publishes nothing.
        pteros::info!(log, "gone");
    }
    let texts: Vec<_> = received_logs(&rosout)
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();
    assert_eq!(texts, ["once 0", "rarely 0", "later 1", "later 2"]);
}

#[test]
fn rosout_takes_a_thousand_messages_a_second_and_no_more() {
    let context = context(63, "");
    let node = context.create_node("chatty").unwrap();
    let log = node.logger();
    let rosout = subscribe_rosout(&context);
    for number in 0..5_000 {
        pteros::info!(log, "{number}");
    }
    let count = received_logs(&rosout).len();
    assert!((1_000..5_000).contains(&count), "{count}");
}

#[test]
fn rosout_can_be_switched_off() {
    let context = context(64, "--disable-rosout-logs");
    let node = context.create_node("quiet").unwrap();
    pteros::error!(node.logger(), "unheard");
    assert!(context.graph().publishers("/rosout").is_empty());
}

#[test]
fn logger_level_services_exist_where_enabled() {
    let context = context(65, "");
    let options = NodeOptions::new("arm").enable_logger_service(true);
    let node = context.create_node(options).unwrap();
    let asker = context.create_node("asker").unwrap();
    let set = asker
        .create_client::<srv::SetLoggerLevels>("/arm/set_logger_levels")
        .unwrap();
    let level = |name: &str, level| LoggerLevel {
        name: name.into(),
        level,
    };
    let levels = vec![level("arm", 10), level("arm.gripper", 40), level("arm", 7)];
    let mut call = set
        .call_async(&srv::SetLoggerLevelsRequest { levels })
        .unwrap();
    let mut answer = None;
    assert!(node.spin_until(
        || {
            answer = call.take().map(Result::unwrap);
            answer.is_some()
        },
        TIMEOUT
    ));
    let results = &answer.unwrap().results;
    assert_eq!(
        results.iter().map(|r| r.successful).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert!(results[2].reason.contains("7 is not a log level"));
    assert_eq!(node.logger().level(), Severity::Debug);
    assert_eq!(node.logger().child("gripper").level(), Severity::Error);
    let get = asker
        .create_client::<srv::GetLoggerLevels>("/arm/get_logger_levels")
        .unwrap();
    let names = vec!["arm".to_owned(), "other".to_owned()];
    let mut call = get
        .call_async(&srv::GetLoggerLevelsRequest { names })
        .unwrap();
    let mut answer = None;
    assert!(node.spin_until(
        || {
            answer = call.take().map(Result::unwrap);
            answer.is_some()
        },
        TIMEOUT
    ));
    let levels = answer.unwrap().levels.clone();
    assert_eq!(levels, [level("arm", 10), level("other", 0)]);
}
