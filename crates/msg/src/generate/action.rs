//! Generated text of an action: names of its parts, and conversions of its
//! messages.

use alloc::format;
use alloc::string::String;

use super::generator::Generator;
use super::names::type_name;
use crate::hash::TypeHash;

pub(super) fn push_action(
    out: &mut String,
    generator: &Generator<'_>,
    full: &str,
    name: &str,
    hash: TypeHash,
) {
    let msg = &generator.options.msg_path;
    let rust = type_name(name);
    out.push_str(&format!(
        "    /// The action {full}.
    #[derive(Clone, Copy, Debug)]
    pub struct {rust};

    impl {msg}::Action for {rust} {{
        type Goal = {name}_Goal;
        type Result = {name}_Result;
        type Feedback = {name}_Feedback;
        type SendGoal = {name}_SendGoal;
        type GetResult = {name}_GetResult;
        type FeedbackMessage = {name}_FeedbackMessage;
        const TYPE_NAME: &'static str = \"{full}\";
        const TYPE_HASH: {msg}::hash::TypeHash = {};
{PARTS}    }}

",
        generator.hash_expression(hash),
        PARTS = action_parts(name)
    ));
}

/// How an action's messages are put together and taken apart.
fn action_parts(name: &str) -> String {
    let id = "[u8; 16]";
    format!(
        "
        fn goal_request(goal_id: {id}, goal: {name}_Goal) -> {name}_SendGoal_Request {{
            let mut request = {name}_SendGoal_Request {{ goal, ..Default::default() }};
            request.goal_id.uuid = goal_id;
            request
        }}

        fn goal_of(request: &{name}_SendGoal_Request) -> ({id}, &{name}_Goal) {{
            (request.goal_id.uuid, &request.goal)
        }}

        fn goal_response(accepted: bool, sec: i32, nanosec: u32) -> {name}_SendGoal_Response {{
            let mut response = {name}_SendGoal_Response {{ accepted, ..Default::default() }};
            response.stamp.sec = sec;
            response.stamp.nanosec = nanosec;
            response
        }}

        fn is_accepted(response: &{name}_SendGoal_Response) -> bool {{
            response.accepted
        }}

        fn result_request(goal_id: {id}) -> {name}_GetResult_Request {{
            let mut request = {name}_GetResult_Request::default();
            request.goal_id.uuid = goal_id;
            request
        }}

        fn result_goal(request: &{name}_GetResult_Request) -> {id} {{
            request.goal_id.uuid
        }}

        fn result_response(status: i8, result: {name}_Result) -> {name}_GetResult_Response {{
            {name}_GetResult_Response {{ status, result }}
        }}

        fn result_of(response: &{name}_GetResult_Response) -> (i8, &{name}_Result) {{
            (response.status, &response.result)
        }}

        fn feedback_message(goal_id: {id}, feedback: {name}_Feedback) -> {name}_FeedbackMessage {{
            let mut message = {name}_FeedbackMessage {{ feedback, ..Default::default() }};
            message.goal_id.uuid = goal_id;
            message
        }}

        fn feedback_of(message: &{name}_FeedbackMessage) -> ({id}, &{name}_Feedback) {{
            (message.goal_id.uuid, &message.feedback)
        }}
"
    )
}
