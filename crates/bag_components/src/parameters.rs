//! Parameters of the components, named as those of rosbag2's.

use std::path::PathBuf;
use std::time::Duration;

use pteros::Node;
use pteros::component::ComponentError;
use pteros_bag::TopicFilter;
use pteros_bag::topic_filter::NamePattern;

/// The bag's folder, from `storage.uri`.
pub(crate) fn folder(node: &Node) -> Result<PathBuf, ComponentError> {
    let uri = node
        .declare_parameter("storage.uri", String::new())?
        .value();
    if uri.is_empty() {
        return Err("parameter 'storage.uri' is empty; give the folder of the bag".into());
    }
    Ok(uri.into())
}

/// The topics, from the parameters below `record` or `play`.
pub(crate) fn filter(
    node: &Node,
    prefix: &str,
    all_by_default: bool,
) -> Result<TopicFilter, ComponentError> {
    let names = |name: &str| -> Result<Vec<String>, ComponentError> {
        let name = format!("{prefix}.{name}");
        Ok(node.declare_parameter(&name, Vec::<String>::new())?.value())
    };
    let pattern = |name: &str| -> Result<Option<NamePattern>, ComponentError> {
        let name = format!("{prefix}.{name}");
        let text = node.declare_parameter(&name, String::new())?.value();
        let given = (!text.is_empty()).then_some(text);
        Ok(given.as_deref().map(NamePattern::new).transpose()?)
    };
    let filter = TopicFilter {
        topics: names("topics")?,
        types: names("topic_types")?,
        services: names("services")?,
        actions: names("actions")?,
        exclude_topics: names("exclude_topics")?,
        exclude_types: names("exclude_topic_types")?,
        exclude_services: names("exclude_services")?,
        exclude_actions: names("exclude_actions")?,
        pattern: pattern("regex")?,
        exclude_pattern: pattern("exclude_regex")?,
        whole_names: prefix == "play",
        ..TopicFilter::default()
    };
    let chooses_all = all_by_default && filter.is_empty();
    Ok(TopicFilter {
        all_topics: chooses_all,
        all_services: chooses_all,
        all_actions: chooses_all,
        include_hidden: chooses_all,
        ..filter
    }
    .with_full_names()?)
}

/// A duration from `NAME.sec` and `NAME.nsec`.
pub(crate) fn duration(node: &Node, name: &str) -> Result<Duration, ComponentError> {
    let part = |unit: &str| -> Result<u64, ComponentError> {
        let name = format!("{name}.{unit}");
        let value = node.declare_parameter(&name, 0_i64)?.value();
        u64::try_from(value)
            .map_err(|_| format!("parameter '{name}' = {value}: give a number from 0").into())
    };
    Ok(Duration::from_secs(part("sec")?).saturating_add(Duration::from_nanos(part("nsec")?)))
}

/// A whole number from 0.
pub(crate) fn count(node: &Node, name: &str, default: i64) -> Result<u64, ComponentError> {
    let value = node.declare_parameter(name, default)?.value();
    u64::try_from(value)
        .map_err(|_| format!("parameter '{name}' = {value}: give a number from 0").into())
}
