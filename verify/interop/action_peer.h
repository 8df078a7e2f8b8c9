/* Common part of the C and C++ action programs: goals of a server, commands
 * and lines. The stack implements `publish_feedback`, `publish_status` and
 * `send_result`. README.md in this folder describes options and lines. It
 * contains no DDS. */
#ifndef ACTION_PEER_H
#define ACTION_PEER_H

#include "node_peer.h"

enum { GOALS_MAX = 32, NUMBERS_MAX = 48, REQUESTERS_MAX = 4, ORDER_MAX = 45 };
enum { ACCEPTED = 1, EXECUTING = 2, CANCELING = 3, SUCCEEDED = 4, CANCELED = 5, ABORTED = 6 };
enum { CANCEL_NONE = 0, CANCEL_REJECTED = 1, CANCEL_UNKNOWN = 2, CANCEL_TERMINATED = 3 };

static const int64_t step_ns = 20000000;

struct goal {
  uint8_t id[16];
  uint8_t status;
  int32_t sec;
  uint32_t nanosec;
  int order, length;
  int32_t numbers[NUMBERS_MAX];
  struct requester requesters[REQUESTERS_MAX]; /* requester of its result */
  int requester_count;
};

static struct goal goals[GOALS_MAX];
static int goal_count;

static void publish_feedback(const struct goal *goal);
static void publish_status(void);
static void reply_result(const struct requester *requester, const struct goal *goal);

static const char *hex(const uint8_t id[16])
{
  static char text[33];
  for (int i = 0; i < 16; i++)
    snprintf(text + 2 * i, 3, "%02x", id[i]);
  return text;
}

/* " 0 1 1 2" */
static const char *row_of(const int32_t *numbers, size_t length)
{
  static char text[1024];
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < length && at + 13 < sizeof text; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, " %d", numbers[i]);
  return text;
}

static bool is_zero(const uint8_t id[16])
{
  static const uint8_t zero[16] = { 0 };
  return !memcmp(id, zero, 16);
}

static bool is_over(const struct goal *goal)
{
  return goal->status >= SUCCEEDED;
}

static struct goal *find_goal(const uint8_t id[16])
{
  for (int i = 0; i < goal_count; i++)
    if (!memcmp(goals[i].id, id, 16))
      return &goals[i];
  return NULL;
}

/* The new goal, or NULL if it is rejected. */
static struct goal *take_goal(const uint8_t id[16], int order)
{
  say("asked %s %d", hex(id), order);
  if (order < 0 || order > ORDER_MAX || goal_count == GOALS_MAX || find_goal(id))
    return NULL;
  struct goal *goal = &goals[goal_count++];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  memcpy(goal->id, id, 16);
  goal->sec = (int32_t)now.tv_sec;
  goal->nanosec = (uint32_t)now.tv_nsec;
  goal->status = EXECUTING;
  goal->order = order;
  goal->numbers[0] = 0;
  goal->numbers[1] = 1;
  goal->length = 2;
  return goal;
}

/* Marks the goals that a cancel request selects; their indices. With id and
 * stamp zero all; with a stamp those accepted until then, and the one with
 * that id. */
static uint8_t cancel_goals(const uint8_t id[16], int32_t sec, uint32_t nanosec, int *found, int *count)
{
  bool timed = sec || nanosec;
  const struct goal *named = is_zero(id) ? NULL : find_goal(id);
  say("cancel %s", hex(id));
  *count = 0;
  if (!is_zero(id) && !timed && !named)
    return CANCEL_UNKNOWN;
  if (named && !timed && is_over(named))
    return CANCEL_TERMINATED;
  for (int i = 0; i < goal_count; i++) {
    struct goal *goal = &goals[i];
    bool before = goal->sec < sec || (goal->sec == sec && goal->nanosec <= nanosec);
    bool meant = goal == named || (timed ? before : is_zero(id));
    if (!meant || is_over(goal))
      continue;
    goal->status = CANCELING;
    found[(*count)++] = i;
  }
  return CANCEL_NONE;
}

/* Responds now or when the goal has ended; false if there is no such goal. */
static bool request_result(const uint8_t id[16], const struct requester *requester)
{
  struct goal *goal = find_goal(id);
  say("wanted %s", hex(id));
  if (!goal)
    return false;
  if (is_over(goal))
    reply_result(requester, goal);
  else if (goal->requester_count < REQUESTERS_MAX)
    goal->requesters[goal->requester_count++] = *requester;
  return true;
}

/* One step of every goal, at most once per `step_ns`. */
static void work_on_goals(bool endless)
{
  static int64_t next;
  bool changed = false;
  if (now_ns() < next)
    return;
  next = now_ns() + step_ns;
  for (int i = 0; i < goal_count; i++) {
    struct goal *goal = &goals[i];
    if (is_over(goal))
      continue;
    if (goal->status == CANCELING)
      goal->status = CANCELED;
    else if (goal->length > goal->order && !endless)
      goal->status = SUCCEEDED;
    if (is_over(goal)) {
      changed = true;
      say("over %s %d", hex(goal->id), goal->status);
      for (int k = 0; k < goal->requester_count; k++)
        reply_result(&goal->requesters[k], goal);
      continue;
    }
    if (goal->length <= goal->order) {
      goal->numbers[goal->length] = goal->numbers[goal->length - 1] + goal->numbers[goal->length - 2];
      goal->length++;
    }
    publish_feedback(goal);
  }
  if (changed)
    publish_status();
}

/* -- commands of the client ------------------------------------------------ */

/* The stack implements these. The numbers are those of requests. */
static void send_goal(const uint8_t id[16], int order);
static void send_cancel(const uint8_t id[16]);
static void send_result(const uint8_t id[16]);

/* `goal N ORDER`, `cancel N`, `result N`: the goal whose id is sixteen times N. */
static void follow_orders(void)
{
  char line[128];
  while (take_order(line, sizeof line)) {
    char verb[16];
    unsigned n;
    int order = 0;
    uint8_t id[16];
    int parts = sscanf(line, "%15s %u %d", verb, &n, &order);
    memset(id, parts > 1 ? (int)n : 0, sizeof id);
    if (parts == 3 && !strcmp(verb, "goal"))
      send_goal(id, order);
    else if (parts == 2 && !strcmp(verb, "cancel"))
      send_cancel(id);
    else if (parts == 2 && !strcmp(verb, "result"))
      send_result(id);
    else
      say("refused %s", line);
  }
}

#endif
