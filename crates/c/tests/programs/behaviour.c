/*
 * Plays rows of the client core's behaviour tables. `behaviour.rs` writes them as lines of
 * words, which tabs separate, to a file, and compares what this program prints.
 */
#include <example_interfaces/action/fibonacci.h>
#include <example_interfaces/srv/add_two_ints.h>
#include <inttypes.h>
#include <pteros/pteros.h>
#include <pthread.h>
#include <rosgraph_msgs/msg/clock.h>
#include <std_msgs/msg/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define TIMEOUT_S 20
#define WORDS_MAX 64
#define CHECK(condition) check(condition, #condition, __LINE__)

static void check(bool holds, const char *condition, int at) {
  if (holds) return;
  fprintf(stderr, "line %d: %s: %s\n", at, condition, pteros_error_message());
  exit(1);
}

/* A line of the file. */
static char line[4096];
static char *words[WORDS_MAX];
static size_t count;

/* Reads the words of a line. False at the end of the file. */
static bool read_line(FILE *file) {
  if (fgets(line, sizeof line, file) == NULL) return false;
  line[strcspn(line, "\n")] = '\0';
  count = 0;
  for (char *word = line; word != NULL && count < WORDS_MAX; count++) {
    words[count] = word;
    word = strchr(word, '\t');
    if (word != NULL) *word++ = '\0';
  }
  return true;
}

static bool is(size_t at, const char *word) { return at < count && strcmp(words[at], word) == 0; }

/* --- parameters --- */

/* A value of a row: its type and, but for PTEROS_PARAMETER_NOT_SET, its text. */
static pteros_parameter_value_t value_of(const char *kind, const char *text) {
  static bool bools[WORDS_MAX];
  static int64_t integers[WORDS_MAX];
  static double doubles[WORDS_MAX];
  static const char *strings[WORDS_MAX];
  static char elements[sizeof line];
  pteros_parameter_value_t value = {.value_type = atoi(kind), .string_value = text};
  value.bool_value = strcmp(text, "true") == 0;
  value.integer_value = strtoll(text, NULL, 10);
  value.double_value = strtod(text, NULL);
  strcpy(elements, text);
  for (char *rest = elements, *one; (one = strtok(rest, ",")) != NULL; rest = NULL) {
    bools[value.array_size] = strcmp(one, "true") == 0;
    integers[value.array_size] = strtoll(one, NULL, 10);
    doubles[value.array_size] = strtod(one, NULL);
    strings[value.array_size++] = one;
  }
  const void *arrays[] = {bools, integers, doubles, strings};
  if (value.value_type >= PTEROS_PARAMETER_BOOL_ARRAY)
    value.array_value = arrays[value.value_type - PTEROS_PARAMETER_BOOL_ARRAY];
  return value;
}

static void print_value(const char *name, const pteros_parameter_value_t *value, void *user) {
  if (strcmp(name, user) != 0) return;
  printf("value\t%d", value->value_type);
  switch (value->value_type) {
    case PTEROS_PARAMETER_BOOL: printf("\t%d", value->bool_value); break;
    case PTEROS_PARAMETER_INTEGER: printf("\t%" PRId64, value->integer_value); break;
    case PTEROS_PARAMETER_DOUBLE: printf("\t%.17g", value->double_value); break;
    case PTEROS_PARAMETER_STRING: printf("\t%s", value->string_value); break;
    default: break;
  }
  for (size_t at = 0; at < value->array_size; at++) switch (value->value_type) {
      case PTEROS_PARAMETER_BOOL_ARRAY: printf("\t%d", ((const bool *)value->array_value)[at]); break;
      case PTEROS_PARAMETER_INTEGER_ARRAY:
        printf("\t%" PRId64, ((const int64_t *)value->array_value)[at]);
        break;
      case PTEROS_PARAMETER_DOUBLE_ARRAY:
        printf("\t%.17g", ((const double *)value->array_value)[at]);
        break;
      default: printf("\t%s", ((const char *const *)value->array_value)[at]);
    }
}

static const char *refuse(const char *name, const pteros_parameter_value_t *value, void *user) {
  (void)name;
  const pteros_parameter_value_t *unlucky = user;
  bool is_found = value->value_type == unlucky->value_type &&
                  value->integer_value == unlucky->integer_value;
  return is_found ? "refused" : NULL;
}

/* A row is its overrides, its steps, and "end". Prints the outcome of the last step. */
static void parameters(FILE *file) {
  while (true) {
    const char *arguments[1 + 2 * WORDS_MAX] = {"--ros-args"};
    char *texts[WORDS_MAX];
    size_t overrides = 0;
    bool is_row = read_line(file);
    if (!is_row) return;
    for (; is(0, "override"); is_row = read_line(file)) {
      texts[overrides] = strdup(words[1]);
      arguments[1 + 2 * overrides] = "-p";
      arguments[2 + 2 * overrides] = texts[overrides];
      overrides++;
    }
    pteros_context_t *context = pteros_context_new((int)(1 + 2 * overrides), arguments);
    pteros_node_t *node = pteros_node_new(context, "node", NULL);
    CHECK(node != NULL);
    pteros_parameter_callback_t *callback = NULL;
    pteros_parameter_value_t unlucky;
    char outcome[sizeof line] = "", name[64] = "";
    for (; !is(0, "end"); CHECK(read_line(file))) {
      pteros_status_t status = PTEROS_OK;
      snprintf(name, sizeof name, "%s", is(0, "set") ? "" : words[1]);
      if (is(0, "refuse")) {
        unlucky = value_of(words[1], words[2]);
        callback = pteros_parameter_callback_new(node, refuse, &unlucky, NULL);
        CHECK(callback != NULL);
        continue;
      }
      pteros_parameter_value_t value = value_of(count > 2 ? words[2] : "0", count > 3 ? words[3] : "");
      if (is(0, "declare"))
        status = pteros_node_declare_parameter(node, words[1], &value);
      else if (is(0, "set"))
        status = pteros_node_set_parameter(node, words[1], &value);
      snprintf(outcome, sizeof outcome, "%s", status == PTEROS_OK ? "ok" : pteros_error_message());
      if (status != PTEROS_OK) name[0] = '\0';
    }
    if (name[0] == '\0')
      printf("%s", outcome);
    else if (pteros_node_has_parameter(node, name))
      CHECK(pteros_node_visit_parameters(node, name, print_value, name) == PTEROS_OK);
    else
      printf("not declared");
    printf("\n");
    pteros_parameter_callback_free(callback);
    pteros_node_free(node);
    pteros_context_free(context);
    while (overrides > 0) free(texts[--overrides]);
  }
}

/* --- ROS time --- */

static pteros_context_t *context;
static pteros_node_t *node;
static pteros_executor_t *executor;
static size_t calls;

static void tick(void *user) {
  (void)user;
  calls++;
}

static int64_t monotonic(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * SECOND + now.tv_nsec;
}

/* Spins until a condition holds, and then what is ready. */
#define SPIN_UNTIL(condition)                                                          \
  {                                                                                    \
    int64_t until = monotonic() + TIMEOUT_S * SECOND;                                  \
    while (!(condition) && monotonic() < until)                                        \
      pteros_executor_spin_once(executor, SECOND / 1000, NULL);                        \
    for (int turn = 0; turn < 4; turn++)                                               \
      CHECK(pteros_executor_spin_some(executor, NULL) == PTEROS_OK);                   \
  }

static void open_node(void) {
  context = pteros_context_new(0, NULL);
  node = pteros_node_new(context, "rows", NULL);
  executor = pteros_executor_new(context);
  CHECK(executor != NULL && pteros_executor_add_node(executor, node) == PTEROS_OK);
}

static void close_node(void) {
  pteros_executor_free(executor);
  pteros_node_free(node);
  pteros_context_free(context);
}

/* Plays "on", "off" or a time of /clock in nanoseconds; `told` is the last one. */
static void play(const pteros_publisher_t *clock, const char *step, int64_t *told, bool *is_on) {
  if (strcmp(step, "on") == 0 || strcmp(step, "off") == 0) {
    *is_on = strcmp(step, "on") == 0;
    pteros_parameter_value_t value = {.value_type = PTEROS_PARAMETER_BOOL, .bool_value = *is_on};
    CHECK(pteros_node_set_parameter(node, "use_sim_time", &value) == PTEROS_OK);
  } else {
    *told = strtoll(step, NULL, 10);
    rosgraph_msgs__msg__Clock message;
    CHECK(rosgraph_msgs__msg__Clock__init(&message));
    message.clock.sec = (int32_t)(*told / SECOND);
    message.clock.nanosec = (uint32_t)(*told % SECOND);
    CHECK(pteros_publisher_publish(clock, &message) == PTEROS_OK);
    rosgraph_msgs__msg__Clock__fini(&message);
  }
  if (*is_on) SPIN_UNTIL(pteros_node_now(node) == *told);
}

/*
 * A row is "timer", the time of its start and its period, or "source", and then its steps, each
 * with the number of calls or the time that follows. Prints what followed.
 */
static void times(FILE *file) {
  while (read_line(file)) {
    open_node();
    pteros_qos_t qos = PTEROS_QOS_DEFAULT;
    qos.depth = 1;
    pteros_publisher_t *clock =
        pteros_publisher_new(node, &rosgraph_msgs__msg__Clock__type, "/clock", &qos);
    CHECK(clock != NULL);
    int64_t told = 0;
    bool is_on = false;
    pteros_timer_t *timer = NULL;
    size_t at = 1;
    calls = 0;
    if (is(0, "timer")) {
      play(clock, "on", &told, &is_on);
      if (strcmp(words[1], "0") != 0) play(clock, words[1], &told, &is_on);
      timer = pteros_timer_new(node, strtoll(words[2], NULL, 10), true, tick, NULL, NULL);
      CHECK(timer != NULL);
      at = 3;
    }
    for (; at + 1 < count; at += 2) {
      if (is(at, "cancel"))
        CHECK(pteros_timer_cancel(timer) == PTEROS_OK);
      else if (is(at, "reset"))
        CHECK(pteros_timer_reset(timer) == PTEROS_OK);
      else if (strncmp(words[at], "period=", 7) == 0)
        CHECK(pteros_timer_set_period(timer, strtoll(words[at] + 7, NULL, 10)) == PTEROS_OK);
      else
        play(clock, words[at], &told, &is_on);
      size_t wanted = (size_t)strtoll(words[at + 1], NULL, 10);
      if (timer != NULL) {
        SPIN_UNTIL(calls >= wanted);
        printf("%zu ", calls);
      } else if (is_on)
        printf("%" PRId64 " ", pteros_node_now(node));
      else
        printf("%s ", pteros_node_now(node) > INT64_C(1500000000) * SECOND ? "system" : "?");
    }
    printf("\n");
    pteros_timer_free(timer);
    pteros_publisher_free(clock);
    close_node();
  }
}

/* --- goals --- */

static pteros_goal_t *accepted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_goal = PTHREAD_COND_INITIALIZER;

static int defer(const void *goal, void *user) {
  (void)goal;
  (void)user;
  return PTEROS_GOAL_ACCEPT_AND_DEFER;
}

static void keep(pteros_goal_t *goal, void *user) {
  (void)user;
  pthread_mutex_lock(&lock);
  accepted = goal;
  pthread_cond_signal(&has_goal);
  pthread_mutex_unlock(&lock);
}

static void *spin(void *user) {
  (void)user;
  pteros_executor_spin(executor);
  return NULL;
}

static pteros_status_t change(const char *step, pteros_client_goal_t *goal) {
  example_interfaces__action__Fibonacci_Result result;
  CHECK(example_interfaces__action__Fibonacci_Result__init(&result));
  pteros_status_t status = PTEROS_UNSUPPORTED;
  if (strcmp(step, "executing") == 0)
    status = pteros_goal_execute(accepted);
  else if (strcmp(step, "canceling") == 0)
    status = pteros_client_goal_cancel(goal, TIMEOUT_S * SECOND);
  else if (strcmp(step, "succeeded") == 0)
    status = pteros_goal_succeed(accepted, &result);
  else if (strcmp(step, "aborted") == 0)
    status = pteros_goal_abort(accepted, &result);
  else if (strcmp(step, "canceled") == 0)
    status = pteros_goal_canceled(accepted, &result);
  example_interfaces__action__Fibonacci_Result__fini(&result);
  return status;
}

/* A row is the steps of a goal. Prints its status, or "refused". */
static void goals(FILE *file) {
  static const char *names[] = {"unknown",   "accepted", "executing", "canceling",
                                "succeeded", "canceled", "aborted"};
  const pteros_action_type_t *type = &example_interfaces__action__Fibonacci__type;
  open_node();
  pteros_action_server_t *server =
      pteros_action_server_new(node, type, "rows", defer, NULL, keep, NULL, NULL);
  pteros_action_client_t *client = pteros_action_client_new(node, type, "rows");
  CHECK(server != NULL && client != NULL);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, spin, NULL) == 0);
  CHECK(pteros_action_client_wait_for_server(client, TIMEOUT_S * SECOND) == PTEROS_OK);
  while (read_line(file)) {
    accepted = NULL;
    example_interfaces__action__Fibonacci_Goal goal = {.order = 1};
    pteros_client_goal_t *sent =
        pteros_action_client_send_goal(client, &goal, TIMEOUT_S * SECOND, NULL, NULL, NULL);
    CHECK(sent != NULL);
    pthread_mutex_lock(&lock);
    while (accepted == NULL) pthread_cond_wait(&has_goal, &lock);
    pthread_mutex_unlock(&lock);
    pteros_status_t status = PTEROS_OK;
    for (size_t at = 0; at < count; at++) {
      CHECK(status == PTEROS_OK);
      int8_t before = pteros_goal_status(accepted);
      status = change(words[at], sent);
      CHECK(status == PTEROS_OK || pteros_goal_status(accepted) == before);
    }
    printf("%s\n", status == PTEROS_OK ? names[pteros_goal_status(accepted)] : "refused");
    pteros_client_goal_free(sent);
    pteros_goal_free(accepted);
  }
  pteros_executor_cancel(executor);
  pthread_join(thread, NULL);
  pteros_action_client_free(client);
  pteros_action_server_free(server);
  close_node();
}

/* --- graph --- */

#define ENTITIES_MAX 8

static struct {
  pteros_context_t *contexts[4];
  pteros_node_t *nodes[4];
  pteros_executor_t *executors[4];
  size_t context_count, node_count;
  struct {
    char kind; /* as the step begins; 0 once it is dropped */
    void *handle;
    char taken[64];
  } entities[ENTITIES_MAX];
  size_t entity_count;
} graph;

static void add_graph_node(const char *name, const char *node_namespace) {
  size_t at = graph.node_count++;
  CHECK(at < 4);
  pteros_context_t *in = graph.contexts[graph.context_count - 1];
  graph.nodes[at] = pteros_node_new(in, name, node_namespace);
  graph.executors[at] = pteros_executor_new(in);
  CHECK(graph.nodes[at] != NULL && graph.executors[at] != NULL);
  CHECK(pteros_executor_add_node(graph.executors[at], graph.nodes[at]) == PTEROS_OK);
}

static void add_graph_context(const char *name) {
  CHECK(graph.context_count < 4);
  graph.contexts[graph.context_count] = pteros_context_new(0, NULL);
  CHECK(graph.contexts[graph.context_count++] != NULL);
  add_graph_node(name, NULL);
}

static pteros_qos_t graph_qos(size_t from, size_t end) {
  pteros_qos_t qos = PTEROS_QOS_DEFAULT;
  for (size_t at = from; at < end && !is(at, "where"); at++) {
    const char *value = strchr(words[at], '=');
    int64_t number = value == NULL ? 0 : strtoll(value + 1, NULL, 10);
    if (is(at, "best_effort")) qos.reliability = PTEROS_RELIABILITY_BEST_EFFORT;
    else if (is(at, "transient_local")) qos.durability = PTEROS_DURABILITY_TRANSIENT_LOCAL;
    else if (is(at, "keep_all")) qos.history = PTEROS_HISTORY_KEEP_ALL;
    else if (is(at, "manual")) qos.liveliness = PTEROS_LIVELINESS_MANUAL_BY_TOPIC;
    else if (strncmp(words[at], "depth=", 6) == 0) qos.depth = (uint32_t)number;
    else if (strncmp(words[at], "deadline=", 9) == 0) qos.deadline_ns = number * SECOND;
    else if (strncmp(words[at], "lifespan=", 9) == 0) qos.lifespan_ns = number * SECOND;
    else if (strncmp(words[at], "lease=", 6) == 0) qos.liveliness_lease_ns = number * SECOND;
    else CHECK(false);
  }
  return qos;
}

/* A content filter from the words before `end`: an expression, "with" and its parameters. */
static pteros_content_filter_t filter_of(size_t from, size_t end) {
  static char expression[256];
  static const char *parameters[WORDS_MAX];
  pteros_content_filter_t filter = {expression, parameters, 0};
  expression[0] = '\0';
  for (; from < end && !is(from, "with"); from++) {
    if (expression[0] != '\0') strcat(expression, " ");
    strcat(expression, words[from]);
  }
  for (from++; from < end; from++) parameters[filter.parameter_count++] = words[from];
  return filter;
}

/* Plays "filter", the number of a subscription and a filter; "-" ends it. */
static const char *set_filter(size_t from, size_t end) {
  void *handle = graph.entities[strtoll(words[from + 1], NULL, 10) - 1].handle;
  pteros_content_filter_t filter = filter_of(from + 2, end);
  bool ends = strcmp(filter.expression, "-") == 0;
  pteros_status_t set = pteros_subscription_set_content_filter(handle, ends ? NULL : &filter);
  return set == PTEROS_OK ? "ok" : "refused";
}

static void ignore_request(const void *request, void *response, void *user) {
  (void)request;
  (void)response;
  (void)user;
}

static void drop_entity(size_t at) {
  void *handle = graph.entities[at].handle;
  switch (graph.entities[at].kind) {
    case 'p': pteros_publisher_free(handle); break;
    case 's': pteros_subscription_free(handle); break;
    case 'S': pteros_service_free(handle); break;
    case 'c': pteros_client_free(handle); break;
    default: break;
  }
  graph.entities[at].kind = 0;
}

static size_t entity_of(const char *word) { return (size_t)strtoll(word, NULL, 10) - 1; }

/* Plays the step of the words from `from` to before `end`. */
static void play_graph_step(size_t from, size_t end) {
  const pteros_node_t *on = graph.nodes[graph.node_count - 1];
  const pteros_message_type_t *type = &std_msgs__msg__String__type;
  const pteros_service_type_t *service = &example_interfaces__srv__AddTwoInts__type;
  const char *name = words[from + 1];
  if (is(from, "context")) {
    add_graph_context(name);
  } else if (is(from, "node")) {
    add_graph_node(words[from + 2], name);
  } else if (is(from, "drop")) {
    drop_entity(entity_of(name));
  } else if (is(from, "send")) {
    std_msgs__msg__String message;
    CHECK(std_msgs__msg__String__init(&message));
    CHECK(rosidl_runtime_c__String__assign(&message.data, words[from + 2]));
    CHECK(pteros_publisher_publish(graph.entities[entity_of(name)].handle, &message) == PTEROS_OK);
    std_msgs__msg__String__fini(&message);
  } else if (is(from, "filter")) {
    set_filter(from, end);
  } else {
    pteros_qos_t qos = graph_qos(from + 2, end);
    size_t where = from;
    while (where < end && !is(where, "where")) where++;
    pteros_content_filter_t filter = filter_of(where + 1, end);
    bool is_filtered = where < end;
    size_t at = graph.entity_count++;
    CHECK(at < ENTITIES_MAX);
    graph.entities[at].taken[0] = '\0';
    graph.entities[at].kind = is(from, "server") ? 'S' : words[from][0];
    void *handle = NULL;
    switch (graph.entities[at].kind) {
      case 'p': handle = pteros_publisher_new(on, type, name, &qos); break;
      case 's':
        handle = is_filtered ? pteros_subscription_new_filtered(on, type, name, &qos, &filter, NULL,
                                                                NULL, NULL)
                             : pteros_subscription_new(on, type, name, &qos, NULL, NULL, NULL);
        break;
      case 'S':
        handle = pteros_service_new(on, service, name, NULL, ignore_request, NULL, NULL);
        break;
      default: handle = pteros_client_new(on, service, name, NULL);
    }
    CHECK(handle != NULL || is_filtered);
    if (handle == NULL) graph.entities[at].kind = 0;
    graph.entities[at].handle = handle;
  }
}

/* Takes what has come, behind what had. */
static void take_all(size_t at) {
  std_msgs__msg__String message;
  CHECK(std_msgs__msg__String__init(&message));
  bool taken = true;
  while (true) {
    CHECK(pteros_subscription_take(graph.entities[at].handle, &message, NULL, &taken) == PTEROS_OK);
    if (!taken) break;
    if (graph.entities[at].taken[0] != '\0') strcat(graph.entities[at].taken, " ");
    strcat(graph.entities[at].taken, message.data.data);
  }
  std_msgs__msg__String__fini(&message);
}

/* Appends a name, unless it is there or each node has it. They come sorted. */
static void add_name(const char *name, const char *other, void *user) {
  (void)other;
  char *answer = user;
  if (strcmp(name, "/parameter_events") == 0 || strcmp(name, "/rosout") == 0) return;
  static const char *const nodes[] = {"/rows/", "/other/", "/ns/other/"};
  for (size_t at = 0; at < sizeof nodes / sizeof *nodes; at++)
    if (strncmp(name, nodes[at], strlen(nodes[at])) == 0) return;
  const char *last = strrchr(answer, ' ');
  if (strcmp(last == NULL ? answer : last + 1, name) == 0) return;
  if (answer[0] != '\0') strcat(answer, " ");
  strcat(answer, name);
}

/* The answer to the question that begins at `from`. */
static void answer_graph(size_t from, char *answer) {
  const pteros_node_t *on = graph.nodes[graph.node_count - 1];
  const pteros_context_t *in = graph.contexts[graph.context_count - 1];
  size_t at = count > from + 1 ? entity_of(words[from + 1]) : 0;
  answer[0] = '\0';
  if (is(from, "count")) {
    bool is_publishers = is(from + 1, "publishers");
    CHECK(is_publishers || is(from + 1, "subscriptions"));
    sprintf(answer, "%zu",
            is_publishers ? pteros_node_count_publishers(on, words[from + 2])
                          : pteros_node_count_subscriptions(on, words[from + 2]));
  } else if (is(from, "available")) {
    bool is_ready = pteros_client_service_is_ready(graph.entities[at].handle);
    strcpy(answer, is_ready ? "yes" : "no");
  } else if (is(from, "matched")) {
    void *handle = graph.entities[at].handle;
    sprintf(answer, "%zu",
            graph.entities[at].kind == 'p' ? pteros_publisher_matched_count(handle)
                                           : pteros_subscription_matched_count(handle));
  } else if (is(from, "filter")) {
    strcpy(answer, set_filter(from, count));
  } else if (is(from, "filtered")) {
    void *handle = graph.entities[at].handle;
    if (handle == NULL) strcpy(answer, "refused");
    else strcpy(answer, pteros_subscription_is_cft_enabled(handle) ? "yes" : "no");
  } else if (is(from, "take")) {
    take_all(at);
    strcpy(answer, graph.entities[at].taken);
  } else if (is(from, "topics")) {
    CHECK(pteros_graph_visit_topics(in, add_name, answer) == PTEROS_OK);
  } else {
    CHECK(is(from, "services"));
    CHECK(pteros_graph_visit_services(in, add_name, answer) == PTEROS_OK);
  }
}

/* A row is its steps, a ";" behind each but the last, "->" and the answer that is waited for. */
static void graphs(FILE *file) {
  while (read_line(file)) {
    memset(&graph, 0, sizeof graph);
    add_graph_context("rows");
    size_t from = 0, at = 0;
    for (; !is(at, "->"); at++) {
      if (!is(at, ";")) continue;
      play_graph_step(from, at);
      from = at + 1;
    }
    const char *wanted = words[at + 1];
    char answer[256] = "";
    count = at;
    int64_t until = monotonic() + TIMEOUT_S * SECOND;
    for (int same = 0; same < 3 && monotonic() < until;) {
      for (size_t one = 0; one < graph.node_count; one++)
        CHECK(pteros_executor_spin_some(graph.executors[one], NULL) == PTEROS_OK);
      answer_graph(from, answer);
      if (answer[0] == '\0') strcpy(answer, "-");
      same = strcmp(answer, wanted) == 0 ? same + 1 : 0;
      if (same == 0) pteros_executor_spin_once(graph.executors[0], SECOND / 1000, NULL);
    }
    printf("%s\n", answer);
    for (size_t one = 0; one < graph.entity_count; one++) drop_entity(one);
    for (size_t one = 0; one < graph.node_count; one++) {
      pteros_executor_free(graph.executors[one]);
      pteros_node_free(graph.nodes[one]);
    }
    for (size_t one = 0; one < graph.context_count; one++) pteros_context_free(graph.contexts[one]);
  }
}

/* --- log levels --- */

static int severity_of(const char *word) {
  static const char *names[] = {"debug", "info", "warn", "error", "fatal"};
  for (int at = 0; at < 5; at++)
    if (strcmp(word, names[at]) == 0) return PTEROS_LOG_DEBUG + 10 * at;
  CHECK(false);
  return 0;
}

/*
 * A row is arguments of a context, a ";" behind each, then "set" and a level of the node's
 * logger, and "enabled" with a severity.
 */
static void log_levels(FILE *file) {
  while (read_line(file)) {
    const char *arguments[WORDS_MAX] = {"rows", "--ros-args"};
    int argument_count = 2;
    size_t at = 0;
    for (; is(at, "--log-level"); at += 3) {
      arguments[argument_count++] = words[at];
      arguments[argument_count++] = words[at + 1];
    }
    context = pteros_context_new(argument_count, arguments);
    if (context == NULL) {
      printf("refused\n");
      continue;
    }
    node = pteros_node_new(context, "rows", NULL);
    CHECK(node != NULL);
    for (; is(at, "set"); at += 4)
      CHECK(pteros_log_set_level(node, severity_of(words[at + 2])) == PTEROS_OK);
    CHECK(is(at, "enabled"));
    printf("%s\n", pteros_log_is_enabled(node, severity_of(words[at + 2])) ? "yes" : "no");
    pteros_node_free(node);
    pteros_context_free(context);
  }
}

/* --- transforms --- */

static int64_t seconds_of(const char *word) {
  return (int64_t)(strtod(word, NULL) * (double)SECOND + 0.5);
}

/* Sends the transforms of the words from `from` to before `end`, and waits for them. */
static void send_transforms(const pteros_tf_broadcaster_t *broadcaster,
                            const pteros_tf_listener_t *listener, size_t from, size_t end) {
  pteros_transform_t transform = {.rotation = {0, 0, 0, 1}};
  for (size_t at = from + 3; at < end; at++) {
    const char *stamp = strchr(words[at], '@');
    transform.translation[0] = strtod(words[at], NULL);
    transform.time_ns = stamp == NULL ? 0 : seconds_of(stamp + 1);
    /* Rows have transforms that are refused. */
    pteros_tf_broadcaster_send(broadcaster, words[from + 2], words[from + 1], &transform);
  }
  /* What comes later on the same topic arrives later. */
  char mark[32];
  sprintf(mark, "mark%zu", from);
  CHECK(pteros_tf_broadcaster_send(broadcaster, "marks", mark, &transform) == PTEROS_OK);
  CHECK(pteros_tf_listener_lookup(listener, "marks", mark, 0, TIMEOUT_S * SECOND, &transform) ==
        PTEROS_OK);
}

/* A row is its steps, a ";" behind each, and a look-up. Prints its answer or "error". */
static void transforms(FILE *file) {
  while (read_line(file)) {
    open_node();
    pteros_tf_listener_t *listener = pteros_tf_listener_new(node);
    pteros_tf_broadcaster_t *moving = pteros_tf_broadcaster_new(node, false);
    pteros_tf_broadcaster_t *fixed = pteros_tf_broadcaster_new(node, true);
    CHECK(listener != NULL && moving != NULL && fixed != NULL);
    size_t from = 0;
    for (size_t at = 0; !is(at, "->"); at++) {
      if (!is(at, ";")) continue;
      send_transforms(is(from, "static") ? fixed : moving, listener, from, at);
      from = at + 1;
    }
    CHECK(is(from, "lookup"));
    pteros_transform_t found;
    pteros_status_t status = pteros_tf_listener_lookup(
        listener, words[from + 1], words[from + 2], seconds_of(words[from + 3]), 0, &found);
    if (status == PTEROS_OK)
      printf("%g@%g\n", found.translation[0], (double)found.time_ns / (double)SECOND);
    else
      printf("error\n");
    pteros_tf_broadcaster_free(fixed);
    pteros_tf_broadcaster_free(moving);
    pteros_tf_listener_free(listener);
    close_node();
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  FILE *file = fopen(argv[2], "r");
  CHECK(file != NULL);
  if (strcmp(argv[1], "parameters") == 0) parameters(file);
  if (strcmp(argv[1], "times") == 0) times(file);
  if (strcmp(argv[1], "goals") == 0) goals(file);
  if (strcmp(argv[1], "graph") == 0) graphs(file);
  if (strcmp(argv[1], "content_filters") == 0) graphs(file);
  if (strcmp(argv[1], "log_levels") == 0) log_levels(file);
  if (strcmp(argv[1], "tf") == 0) transforms(file);
  fclose(file);
  return 0;
}
