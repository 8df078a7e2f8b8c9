/* Action server and client on Eclipse Cyclone DDS, with the wire format of
 * rmw_cyclonedds. Options and lines: ../README.md. */
#include "../node_peer.h"
#include "node.h"
#include "../action_peer.h"

#include "actions.h"

#define FIBONACCI(part) example_interfaces_action_dds__Fibonacci_##part
#define FIBONACCI_TYPE(part) &example_interfaces_action_dds__Fibonacci_##part##_desc

typedef FIBONACCI(SendGoal_Request_) GoalRequest;
typedef FIBONACCI(SendGoal_Response_) GoalReply;
typedef FIBONACCI(GetResult_Request_) ResultRequest;
typedef FIBONACCI(GetResult_Response_) ResultReply;
typedef FIBONACCI(FeedbackMessage_) Feedback;
typedef action_msgs_srv_dds__CancelGoal_Request_ CancelRequest;
typedef action_msgs_srv_dds__CancelGoal_Response_ CancelReply;
typedef action_msgs_msg_dds__GoalStatusArray_ StatusArray;
typedef action_msgs_msg_dds__GoalStatus_ Status;
typedef action_msgs_msg_dds__GoalInfo_ Info;

static struct node_options options;
static struct service sends, cancels, results;
static dds_entity_t feedback, status; /* writers of a server, readers of a client */

static void write_sample(dds_entity_t writer, const void *sample)
{
  check(dds_write(writer, sample), "write");
}

/* -- server ---------------------------------------------------------------- */

static dds_sequence_long numbers_of(const struct goal *goal)
{
  dds_sequence_long s = { (uint32_t)goal->length, (uint32_t)goal->length, (int32_t *)goal->numbers, false };
  return s;
}

static Info info_of(const struct goal *goal)
{
  Info info;
  memcpy(info.goal_id.uuid, goal->id, 16);
  info.stamp.sec = goal->sec;
  info.stamp.nanosec = goal->nanosec;
  return info;
}

static void publish_feedback(const struct goal *goal)
{
  Feedback message;
  memcpy(message.goal_id.uuid, goal->id, 16);
  message.feedback.numbers = numbers_of(goal);
  write_sample(feedback, &message);
}

static void publish_status(void)
{
  Status rows[GOALS_MAX];
  StatusArray message = { { (uint32_t)goal_count, (uint32_t)goal_count, rows, false } };
  for (int i = 0; i < goal_count; i++) {
    rows[i].goal_info = info_of(&goals[i]);
    rows[i].status = goals[i].status;
  }
  write_sample(status, &message);
}

static void reply_result(const struct requester *requester, const struct goal *goal)
{
  ResultReply reply = { requester->client, requester->number, goal->status, { numbers_of(goal) } };
  write_sample(results.writer, &reply);
}

static void answer_goal(const void *sample)
{
  const GoalRequest *r = (const GoalRequest *)sample;
  const struct goal *goal = take_goal(r->goal_id.uuid, r->goal.order);
  GoalReply reply = { r->client, r->number, goal != NULL, { goal ? goal->sec : 0, goal ? goal->nanosec : 0 } };
  write_sample(sends.writer, &reply);
  if (goal)
    publish_status();
}

static void answer_cancel(const void *sample)
{
  const CancelRequest *r = (const CancelRequest *)sample;
  int found[GOALS_MAX], count;
  Info infos[GOALS_MAX];
  uint8_t code = cancel_goals(r->goal_info.goal_id.uuid, r->goal_info.stamp.sec, r->goal_info.stamp.nanosec, found, &count);
  for (int i = 0; i < count; i++)
    infos[i] = info_of(&goals[found[i]]);
  CancelReply reply = { r->client, r->number, code, { (uint32_t)count, (uint32_t)count, infos, false } };
  write_sample(cancels.writer, &reply);
  if (count)
    publish_status();
}

static void answer_result(const void *sample)
{
  const ResultRequest *r = (const ResultRequest *)sample;
  const struct requester requester = { r->client, r->number };
  static const struct goal none;
  if (!request_result(r->goal_id.uuid, &requester))
    reply_result(&requester, &none);
}

/* As rmw_cyclonedds: no response before its client's reader is matched. */
static void answer_all(void)
{
  if (has_matched(sends.writer, true))
    take_all(sends.reader, answer_goal);
  if (has_matched(cancels.writer, true))
    take_all(cancels.reader, answer_cancel);
  if (has_matched(results.writer, true))
    take_all(results.reader, answer_result);
}

/* -- client ---------------------------------------------------------------- */

static void send_goal(const uint8_t id[16], int order)
{
  GoalRequest r = { sends.next.client, ++sends.next.number, { { 0 } }, { order } };
  memcpy(r.goal_id.uuid, id, 16);
  write_sample(sends.writer, &r);
}

static void send_cancel(const uint8_t id[16])
{
  CancelRequest r = { cancels.next.client, ++cancels.next.number, { { { 0 } }, { 0, 0 } } };
  memcpy(r.goal_info.goal_id.uuid, id, 16);
  write_sample(cancels.writer, &r);
}

static void send_result(const uint8_t id[16])
{
  ResultRequest r = { results.next.client, ++results.next.number, { { 0 } } };
  memcpy(r.goal_id.uuid, id, 16);
  write_sample(results.writer, &r);
}

static void hear_goal(const void *sample)
{
  const GoalReply *r = (const GoalReply *)sample;
  if (r->client == sends.next.client)
    say("goal %lld %s", (long long)r->number, r->accepted ? "accepted" : "rejected");
}

static void hear_cancel(const void *sample)
{
  const CancelReply *r = (const CancelReply *)sample;
  if (r->client != cancels.next.client)
    return;
  say("canceling %lld %d %u", (long long)r->number, r->return_code, r->goals_canceling._length);
  for (uint32_t i = 0; i < r->goals_canceling._length; i++)
    say("canceled %s", hex(r->goals_canceling._buffer[i].goal_id.uuid));
}

static void hear_result(const void *sample)
{
  const ResultReply *r = (const ResultReply *)sample;
  if (r->client == results.next.client)
    say("result %lld %d%s", (long long)r->number, r->status, row_of(r->result.numbers._buffer, r->result.numbers._length));
}

static void hear_feedback(const void *sample)
{
  const Feedback *m = (const Feedback *)sample;
  say("feedback %s%s", hex(m->goal_id.uuid), row_of(m->feedback.numbers._buffer, m->feedback.numbers._length));
}

static void hear_status(const void *sample)
{
  const StatusArray *m = (const StatusArray *)sample;
  for (uint32_t i = 0; i < m->status_list._length; i++)
    say("status %s %d", hex(m->status_list._buffer[i].goal_info.goal_id.uuid), m->status_list._buffer[i].status);
}

/* -------------------------------------------------------------------------- */

static void open_ends(void)
{
  char name[256];
  bool serve = options.serve;
  snprintf(name, sizeof name, "%s/_action", options.name);
  sends = open_service(serve, name, "send_goal", FIBONACCI_TYPE(SendGoal_Request_), FIBONACCI_TYPE(SendGoal_Response_));
  cancels = open_service(serve, name, "cancel_goal", &action_msgs_srv_dds__CancelGoal_Request__desc,
                         &action_msgs_srv_dds__CancelGoal_Response__desc);
  results = open_service(serve, name, "get_result", FIBONACCI_TYPE(GetResult_Request_), FIBONACCI_TYPE(GetResult_Response_));
  dds_qos_t *plain = node_qos(10), *kept = node_qos(1);
  dds_qset_durability(kept, DDS_DURABILITY_TRANSIENT_LOCAL);
  snprintf(name, sizeof name, "rt%s/_action/feedback", options.name);
  feedback = (serve ? open_writer : open_reader)(FIBONACCI_TYPE(FeedbackMessage_), name, plain);
  snprintf(name, sizeof name, "rt%s/_action/status", options.name);
  status = (serve ? open_writer : open_reader)(&action_msgs_msg_dds__GoalStatusArray__desc, name, kept);
  dds_delete_qos(plain);
  dds_delete_qos(kept);
}

int main(int argc, char **argv)
{
  options = node_parse(argc, argv, "/fibonacci");
  catch_stop();
  participant = check(dds_create_participant((dds_domainid_t)options.domain, NULL, NULL), "create a participant");
  open_ends();
  say("ready");
  bool met = false;
  for (int64_t end = node_end(&options); !stop_requested && now_ns() < end; sleep_ns(1000000)) {
    if (!met && is_met(&sends) && is_met(&cancels) && is_met(&results) && has_matched(feedback, options.serve)
        && has_matched(status, options.serve)) {
      met = true;
      say("met");
    }
    if (options.serve) {
      answer_all();
      work_on_goals(options.endless);
      continue;
    }
    follow_orders();
    take_all(sends.reader, hear_goal);
    take_all(cancels.reader, hear_cancel);
    take_all(results.reader, hear_result);
    take_all(feedback, hear_feedback);
    take_all(status, hear_status);
  }
  return EXIT_OK;
}
