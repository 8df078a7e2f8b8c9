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
        type Goal = {name}Goal;
        type Result = {name}Result;
        type Feedback = {name}Feedback;
        type SendGoal = {name}SendGoal;
        type GetResult = {name}GetResult;
        type FeedbackMessage = {name}FeedbackMessage;
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
        fn goal_request(goal_id: {id}, goal: {name}Goal) -> {name}SendGoalRequest {{
            let mut request = {name}SendGoalRequest {{ goal, ..Default::default() }};
            request.goal_id.uuid = goal_id;
            request
        }}

        fn goal_of(request: &{name}SendGoalRequest) -> ({id}, &{name}Goal) {{
            (request.goal_id.uuid, &request.goal)
        }}

        fn goal_response(accepted: bool, sec: i32, nanosec: u32) -> {name}SendGoalResponse {{
            let mut response = {name}SendGoalResponse {{ accepted, ..Default::default() }};
            response.stamp.sec = sec;
            response.stamp.nanosec = nanosec;
            response
        }}

        fn is_accepted(response: &{name}SendGoalResponse) -> bool {{
            response.accepted
        }}

        fn result_request(goal_id: {id}) -> {name}GetResultRequest {{
            let mut request = {name}GetResultRequest::default();
            request.goal_id.uuid = goal_id;
            request
        }}

        fn result_goal(request: &{name}GetResultRequest) -> {id} {{
            request.goal_id.uuid
        }}

        fn result_response(status: i8, result: {name}Result) -> {name}GetResultResponse {{
            {name}GetResultResponse {{ status, result }}
        }}

        fn result_of(response: &{name}GetResultResponse) -> (i8, &{name}Result) {{
            (response.status, &response.result)
        }}

        fn feedback_message(goal_id: {id}, feedback: {name}Feedback) -> {name}FeedbackMessage {{
            let mut message = {name}FeedbackMessage {{ feedback, ..Default::default() }};
            message.goal_id.uuid = goal_id;
            message
        }}

        fn feedback_of(message: &{name}FeedbackMessage) -> ({id}, &{name}Feedback) {{
            (message.goal_id.uuid, &message.feedback)
        }}
"
    )
}
