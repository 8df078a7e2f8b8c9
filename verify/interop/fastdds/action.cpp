// Action server and client on eProsima Fast DDS, with the wire format of
// rmw_fastrtps. Options and lines: ../README.md. The structure is that of
// ../cyclone/action.c.

#include "../node_peer.h"
#include "node.hpp"
#include "../action_peer.h"

#include "actionsPubSubTypes.h"

namespace fib = example_interfaces::action::dds_;
namespace actions = action_msgs::msg::dds_;
namespace services = action_msgs::srv::dds_;

static node_options options;
static Service<fib::Fibonacci_SendGoal_Request_PubSubType, fib::Fibonacci_SendGoal_Response_PubSubType> sends;
static Service<services::CancelGoal_Request_PubSubType, services::CancelGoal_Response_PubSubType> cancels;
static Service<fib::Fibonacci_GetResult_Request_PubSubType, fib::Fibonacci_GetResult_Response_PubSubType> results;
static DataWriter *feedback_writer, *status_writer;
static DataReader *feedback_reader, *status_reader;

static void set_id(unique_identifier_msgs::msg::dds_::UUID_ &to, const uint8_t id[16])
{
  memcpy(to.uuid().data(), id, 16);
}

static const uint8_t *id_of(const unique_identifier_msgs::msg::dds_::UUID_ &id)
{
  return id.uuid().data();
}

// -- server -------------------------------------------------------------------

static std::vector<int32_t> numbers_of(const goal &goal)
{
  return std::vector<int32_t>(goal.numbers, goal.numbers + goal.length);
}

static actions::GoalInfo_ info_of(const goal &goal)
{
  actions::GoalInfo_ info;
  set_id(info.goal_id(), goal.id);
  info.stamp().sec(goal.sec);
  info.stamp().nanosec(goal.nanosec);
  return info;
}

static void publish_feedback(const struct goal *goal)
{
  fib::Fibonacci_FeedbackMessage_ message;
  set_id(message.goal_id(), goal->id);
  message.feedback().numbers(numbers_of(*goal));
  write_sample(feedback_writer, message);
}

static void publish_status()
{
  actions::GoalStatusArray_ message;
  for (int i = 0; i < goal_count; i++) {
    actions::GoalStatus_ row;
    row.goal_info(info_of(goals[i]));
    row.status(goals[i].status);
    message.status_list().push_back(row);
  }
  write_sample(status_writer, message);
}

static void reply_result(const requester *requester, const struct goal *goal)
{
  fib::Fibonacci_GetResult_Response_ reply;
  reply.status(goal->status);
  reply.result().numbers(numbers_of(*goal));
  results.answer(*requester, reply);
}

// As rmw_fastrtps: no response before its client's reader is matched.
static void answer_requests()
{
  if (has_matched(sends.writer))
    sends.take_requests([](const fib::Fibonacci_SendGoal_Request_ &request, const requester &who) {
      const goal *goal = take_goal(id_of(request.goal_id()), request.goal().order());
      fib::Fibonacci_SendGoal_Response_ reply;
      reply.accepted(goal != nullptr);
      reply.stamp().sec(goal ? goal->sec : 0);
      reply.stamp().nanosec(goal ? goal->nanosec : 0);
      sends.answer(who, reply);
      if (goal)
        publish_status();
    });
  if (has_matched(cancels.writer))
    cancels.take_requests([](const services::CancelGoal_Request_ &request, const requester &who) {
      int found[GOALS_MAX], count;
      const auto &info = request.goal_info();
      services::CancelGoal_Response_ reply;
      reply.return_code(cancel_goals(id_of(info.goal_id()), info.stamp().sec(), info.stamp().nanosec(), found, &count));
      for (int i = 0; i < count; i++)
        reply.goals_canceling().push_back(info_of(goals[found[i]]));
      cancels.answer(who, reply);
      if (count)
        publish_status();
    });
  if (has_matched(results.writer))
    results.take_requests([](const fib::Fibonacci_GetResult_Request_ &request, const requester &who) {
      static const goal none{};
      if (!request_result(id_of(request.goal_id()), &who))
        reply_result(&who, &none);
    });
}

// -- client -------------------------------------------------------------------

static void send_goal(const uint8_t id[16], int order)
{
  fib::Fibonacci_SendGoal_Request_ request;
  set_id(request.goal_id(), id);
  request.goal().order(order);
  sends.ask(request);
}

static void send_cancel(const uint8_t id[16])
{
  services::CancelGoal_Request_ request;
  set_id(request.goal_info().goal_id(), id);
  cancels.ask(request);
}

static void send_result(const uint8_t id[16])
{
  fib::Fibonacci_GetResult_Request_ request;
  set_id(request.goal_id(), id);
  results.ask(request);
}

static void hear_all()
{
  sends.take_replies([](long long number, const fib::Fibonacci_SendGoal_Response_ &reply) {
    say("goal %lld %s", number, reply.accepted() ? "accepted" : "rejected");
  });
  cancels.take_replies([](long long number, const services::CancelGoal_Response_ &reply) {
    say("canceling %lld %d %zu", number, reply.return_code(), reply.goals_canceling().size());
    for (const auto &info : reply.goals_canceling())
      say("canceled %s", hex(id_of(info.goal_id())));
  });
  results.take_replies([](long long number, const fib::Fibonacci_GetResult_Response_ &reply) {
    const auto &numbers = reply.result().numbers();
    say("result %lld %d%s", number, reply.status(), row_of(numbers.data(), numbers.size()));
  });
  take_all<fib::Fibonacci_FeedbackMessage_>(feedback_reader, [](const auto &message, const SampleInfo &) {
    const auto &numbers = message.feedback().numbers();
    say("feedback %s%s", hex(id_of(message.goal_id())), row_of(numbers.data(), numbers.size()));
  });
  take_all<actions::GoalStatusArray_>(status_reader, [](const auto &message, const SampleInfo &) {
    for (const auto &row : message.status_list())
      say("status %s %d", hex(id_of(row.goal_info().goal_id())), row.status());
  });
}

// -----------------------------------------------------------------------------

static void open_ends()
{
  char name[256];
  snprintf(name, sizeof name, "%s/_action", options.name);
  sends.open(options.serve, name, "send_goal");
  cancels.open(options.serve, name, "cancel_goal");
  results.open(options.serve, name, "get_result");
  snprintf(name, sizeof name, "rt%s/_action/feedback", options.name);
  if (options.serve)
    feedback_writer = open_writer<fib::Fibonacci_FeedbackMessage_PubSubType>(name, 10, false);
  else
    feedback_reader = open_reader<fib::Fibonacci_FeedbackMessage_PubSubType>(name, 10, false);
  snprintf(name, sizeof name, "rt%s/_action/status", options.name);
  if (options.serve)
    status_writer = open_writer<actions::GoalStatusArray_PubSubType>(name, 1, true);
  else
    status_reader = open_reader<actions::GoalStatusArray_PubSubType>(name, 1, true);
}

static bool is_met()
{
  bool topics = options.serve ? has_matched(feedback_writer) && has_matched(status_writer)
                              : has_matched(feedback_reader) && has_matched(status_reader);
  return topics && sends.is_met() && cancels.is_met() && results.is_met();
}

int main(int argc, char **argv)
{
  options = node_parse(argc, argv, "/fibonacci");
  catch_stop();
  open_participant(options.domain);
  open_ends();
  say("ready");
  bool met = false;
  for (int64_t end = node_end(&options); !stop_requested && now_ns() < end; sleep_ns(1000000)) {
    if (!met && is_met()) {
      met = true;
      say("met");
    }
    if (!options.serve) {
      follow_orders();
      hear_all();
    } else {
      answer_requests();
      work_on_goals(options.endless);
    }
  }
  close_participant();
  return EXIT_OK;
}
