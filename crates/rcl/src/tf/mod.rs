//! tf buffer: transforms of the last seconds, look-ups with interpolation, and the
//! texts of their errors (tf2's `BufferCore`).

mod buffer;
mod error;
mod history;
mod isometry;
mod report;
mod transformable;
mod tree;

pub use buffer::{TransformBuffer, TransformBufferOptions, TransformFuture, empty_frame_id_error};
pub use error::{FrameEdge, InvalidTransform, LookupError};
pub use isometry::Isometry;
pub use report::FrameInfo;
pub use transformable::Transformable;
pub use tree::{Authority, check, without_leading_slash};

use crate::time::Time;

/// Requests the latest time at which all frames between two are known (tf2's
/// TimePointZero).
pub const LATEST: Time = Time::from_nanos(0);

#[cfg(test)]
mod tests {
    use pteros_interfaces::geometry_msgs::msg::TransformStamped;

    use super::*;

    fn seconds(word: &str) -> Time {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
        Time::from_nanos((word.parse::<f64>().unwrap() * 1e9).round() as i64)
    }

    fn set(buffer: &TransformBuffer, child: &str, parent: &str, pose: &str, is_static: bool) {
        let (ahead, stamp) = pose.split_once('@').unwrap_or((pose, "0"));
        let mut transform = TransformStamped::default();
        transform.header.frame_id = parent.into();
        transform.child_frame_id = child.into();
        transform.header.stamp = seconds(stamp).into();
        transform.transform.translation.x = ahead.parse().unwrap();
        transform.transform.rotation.w = 1.0;
        // Rows have transforms that are refused.
        let _ = buffer.set_transform(&transform, "rows", is_static);
    }

    fn answer(row: &str) -> String {
        let buffer = TransformBuffer::default();
        let mut steps: Vec<Vec<_>> = row.split("; ").map(|it| it.split(' ').collect()).collect();
        let question = steps.pop().unwrap();
        for step in steps {
            match step.as_slice() {
                ["clear"] => buffer.clear(),
                [kind, child, parent, poses @ ..] => {
                    for pose in poses {
                        set(&buffer, child, parent, pose, *kind == "static");
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        let found = match question.as_slice() {
            ["lookup", target, source, time] => {
                buffer.lookup_transform(target, source, seconds(time))
            }
            ["full", target, to, source, from, fixed] => {
                buffer.lookup_transform_full(target, seconds(to), source, seconds(from), fixed)
            }
            other => panic!("{other:?}"),
        };
        match found {
            Ok(found) => {
                let stamp = Time::from(&found.header.stamp).as_secs_f64();
                format!("{}@{stamp}", found.transform.translation.x)
            }
            Err(error) => {
                let (exception, text) = error.as_tf2();
                format!("{exception} {text}").trim_end().to_owned()
            }
        }
    }

    #[test]
    fn the_rows_of_the_behaviour_table_hold() {
        let rows = include_str!("../../tests/behaviour/tf.txt").lines();
        let mut count = 0;
        for row in rows.filter(|row| !row.starts_with('#')) {
            let (question, expected) = row.split_once(" -> ").expect(row);
            let expected = expected.split(" | ").next().unwrap_or_default();
            assert_eq!(answer(question), expected, "{row}");
            count += 1;
        }
        assert!(count > 80);
    }
}
