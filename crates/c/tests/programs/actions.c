/* An action server and a client of C in one process. Prints "passed". */
#include <example_interfaces/action/fibonacci.h>
#include <pteros/pteros.h>
#include <pthread.h>
#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define CHECK(condition)                                                            \
  if (!(condition)) {                                                               \
    fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, pteros_error_message()); \
    return 1;                                                                       \
  }

typedef example_interfaces__action__Fibonacci_Goal Goal;
typedef example_interfaces__action__Fibonacci_Result Result;
typedef example_interfaces__action__Fibonacci_Feedback Feedback;

static pteros_goal_t *open_goal;
static int feedback_count;

static int decide(const void *goal, void *user) {
  (void)user;
  return ((const Goal *)goal)->order >= 0 ? PTEROS_GOAL_ACCEPT : PTEROS_GOAL_REJECT;
}

static void work(pteros_goal_t *goal, void *user) {
  (void)user;
  const Goal *wanted = pteros_goal_message(goal);
  if (wanted->order == 0) { /* ends when it is cancelled */
    open_goal = goal;
    return;
  }
  Feedback feedback;
  example_interfaces__action__Fibonacci_Feedback__init(&feedback);
  rosidl_runtime_c__int32__Sequence__init(&feedback.sequence, 2);
  feedback.sequence.data[1] = 1;
  pteros_goal_publish_feedback(goal, &feedback);
  example_interfaces__action__Fibonacci_Feedback__fini(&feedback);
  Result result;
  example_interfaces__action__Fibonacci_Result__init(&result);
  rosidl_runtime_c__int32__Sequence__init(&result.sequence, (size_t)wanted->order);
  for (int32_t at = 1; at < wanted->order; at++)
    result.sequence.data[at] =
        at == 1 ? 1 : result.sequence.data[at - 1] + result.sequence.data[at - 2];
  pteros_goal_succeed(goal, &result);
  example_interfaces__action__Fibonacci_Result__fini(&result);
  pteros_goal_free(goal);
}

static void see(const void *feedback, void *user) {
  (void)user;
  const Feedback *seen = feedback;
  feedback_count += seen->sequence.size == 2 && seen->sequence.data[1] == 1;
}

static void end_canceled(void *user) {
  (void)user;
  if (open_goal == NULL || !pteros_goal_is_canceling(open_goal)) return;
  Result result;
  example_interfaces__action__Fibonacci_Result__init(&result);
  pteros_goal_canceled(open_goal, &result);
  pteros_goal_free(open_goal);
  open_goal = NULL;
}

static void *spin(void *executor) {
  pteros_executor_spin(executor);
  return NULL;
}

static int ask(pteros_node_t *node) {
  pteros_action_client_t *client =
      pteros_action_client_new(node, &example_interfaces__action__Fibonacci__type, "fibonacci");
  CHECK(pteros_action_client_wait_for_server(client, 10 * SECOND) == PTEROS_OK);
  Goal goal = {.order = 7};
  pteros_client_goal_t *accepted =
      pteros_action_client_send_goal(client, &goal, 10 * SECOND, see, NULL, NULL);
  CHECK(accepted != NULL);
  int8_t status = 0;
  Result result;
  CHECK(example_interfaces__action__Fibonacci_Result__init(&result));
  CHECK(pteros_client_goal_result(accepted, 10 * SECOND, &status, &result) == PTEROS_OK);
  CHECK(status == PTEROS_GOAL_STATUS_SUCCEEDED);
  CHECK(result.sequence.size == 7 && result.sequence.data[6] == 8);
  pteros_client_goal_free(accepted);
  goal.order = -1;
  CHECK(pteros_action_client_send_goal(client, &goal, 10 * SECOND, NULL, NULL, NULL) == NULL);
  CHECK(pteros_error_status() == PTEROS_REJECTED);
  goal.order = 0;
  accepted = pteros_action_client_send_goal(client, &goal, 10 * SECOND, NULL, NULL, NULL);
  CHECK(accepted != NULL);
  CHECK(pteros_client_goal_result(accepted, SECOND / 100, &status, &result) == PTEROS_TIMEOUT);
  CHECK(pteros_client_goal_cancel(accepted, 10 * SECOND) == PTEROS_OK);
  CHECK(pteros_client_goal_result(accepted, 10 * SECOND, &status, &result) == PTEROS_OK);
  CHECK(status == PTEROS_GOAL_STATUS_CANCELED && result.sequence.size == 0);
  pteros_client_goal_free(accepted);
  example_interfaces__action__Fibonacci_Result__fini(&result);
  pteros_action_client_free(client);
  return 0;
}

int main(void) {
  pteros_context_t *context = pteros_context_new(0, NULL);
  pteros_node_t *node = pteros_node_new(context, "server", NULL);
  pteros_node_t *other = pteros_node_new(context, "client", NULL);
  pteros_action_server_t *server =
      pteros_action_server_new(node, &example_interfaces__action__Fibonacci__type, "fibonacci",
                               decide, NULL, work, NULL, NULL);
  pteros_timer_t *timer = pteros_timer_new(node, SECOND / 100, false, end_canceled, NULL, NULL);
  pteros_executor_t *executor = pteros_executor_new(context);
  CHECK(server != NULL && timer != NULL);
  CHECK(pteros_executor_add_node(executor, node) == PTEROS_OK);
  CHECK(pteros_executor_add_node(executor, other) == PTEROS_OK);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, spin, executor) == 0);
  int failed = ask(other);
  pteros_executor_cancel(executor);
  pthread_join(thread, NULL);
  pteros_timer_free(timer);
  pteros_action_server_free(server);
  pteros_node_free(node);
  pteros_node_free(other);
  pteros_executor_free(executor);
  pteros_context_free(context);
  if (failed || feedback_count < 1) return 1;
  puts("passed");
  return 0;
}
