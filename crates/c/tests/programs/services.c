/* Services, clients, parameters, the graph and errors, within one process. Prints "passed". */
#include <example_interfaces/srv/add_two_ints.h>
#include <pteros/pteros.h>
#include <geometry_msgs/msg/pose.h>
#include <stdio.h>
#include <std_msgs/msg/float64_multi_array.h>
#include <std_srvs/srv/set_bool.h>

#define SECOND INT64_C(1000000000)

#define CHECK(condition)                                                            \
  if (!(condition)) {                                                               \
    fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, pteros_error_message()); \
    return 1;                                                                       \
  }

/* The layout of the structs and the numbers, as the library has them (crates/c/src). */
#if UINTPTR_MAX == UINT64_MAX
#define PLACE(TYPE, FIELD, OFFSET) \
  _Static_assert(offsetof(TYPE, FIELD) == (OFFSET), #TYPE "." #FIELD)
#define SIZE(TYPE, SIZE) _Static_assert(sizeof(TYPE) == (SIZE), #TYPE)
SIZE(pteros_qos_t, 48);
PLACE(pteros_qos_t, liveliness, 16);
PLACE(pteros_qos_t, deadline_ns, 24);
PLACE(pteros_qos_t, liveliness_lease_ns, 40);
SIZE(pteros_message_info_t, 40);
PLACE(pteros_message_info_t, sequence_number, 16);
PLACE(pteros_message_info_t, publisher_gid, 24);
SIZE(pteros_parameter_value_t, 48);
PLACE(pteros_parameter_value_t, bool_value, 4);
PLACE(pteros_parameter_value_t, integer_value, 8);
PLACE(pteros_parameter_value_t, string_value, 24);
PLACE(pteros_parameter_value_t, array_size, 40);
SIZE(pteros_service_type_t, 56);
PLACE(pteros_service_type_t, hash, 24);
SIZE(pteros_action_type_t, 56);
PLACE(pteros_action_type_t, feedback_message, 24);
SIZE(pteros_message_type_t, 40);
PLACE(pteros_message_type_t, size_of, 20);
PLACE(pteros_message_type_t, defaults, 24);
SIZE(pteros_member_t, 32);
PLACE(pteros_member_t, string_bound, 24);
PLACE(pteros_member_t, collection, 29);
#endif
_Static_assert(PTEROS_SHUT_DOWN == 4 && PTEROS_REJECTED == 7, "statuses");

static void add(const void *request, void *response, void *user) {
  const example_interfaces__srv__AddTwoInts_Request *terms = request;
  example_interfaces__srv__AddTwoInts_Response *sum = response;
  sum->sum = terms->a + terms->b;
  ++*(int *)user;
}

static void later(pteros_request_t *request, void *user) { *(pteros_request_t **)user = request; }

static void answered(pteros_status_t status, const char *error, const void *response,
                     void *user) {
  const std_srvs__srv__SetBool_Response *answer = response;
  (void)error;
  *(int *)user = status == PTEROS_OK && answer->success &&
                 strcmp(answer->message.data, "it is on") == 0;
}

static void count_free(void *user) { ++*(int *)user; }

static void find_node(const char *name, const char *other, void *user) {
  if (strcmp(name, "tester") == 0 && strcmp(other, "/c") == 0) *(int *)user = 1;
}

static void find_topic(const char *name, const char *other, void *user) {
  if (strcmp(name, "/c/numbers") == 0 && strcmp(other, "std_msgs/msg/Float64MultiArray") == 0)
    *(int *)user = 1;
}

static const char *not_negative(const char *name, const pteros_parameter_value_t *value,
                                void *user) {
  (void)user;
  if (strcmp(name, "gain") == 0 && value->double_value < 0) return "a gain is not negative";
  return NULL;
}

static void see_list(const char *name, const pteros_parameter_value_t *value, void *user) {
  const char *const *texts = value->array_value;
  if (strcmp(name, "frames") == 0 && value->array_size == 2 && strcmp(texts[1], "odom") == 0)
    ++*(int *)user;
}

static int parameters(pteros_node_t *node) {
  pteros_parameter_value_t value = {.value_type = PTEROS_PARAMETER_DOUBLE, .double_value = 1.5};
  CHECK(pteros_node_declare_parameter(node, "gain", &value) == PTEROS_OK);
  double gain = 0;
  CHECK(pteros_node_get_double(node, "gain", &gain) == PTEROS_OK && gain == 2.5);
  int64_t integer = 0;
  CHECK(pteros_node_get_integer(node, "gain", &integer) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "gain") != NULL);
  CHECK(pteros_node_get_bool(node, "nowhere", (bool *)&integer) == PTEROS_ERROR);
  int freed = 0;
  pteros_parameter_callback_t *check =
      pteros_parameter_callback_new(node, not_negative, &freed, count_free);
  CHECK(check != NULL);
  value.double_value = -1;
  CHECK(pteros_node_set_parameter(node, "gain", &value) == PTEROS_REJECTED);
  CHECK(strstr(pteros_error_message(), "not negative") != NULL);
  pteros_parameter_callback_free(check);
  CHECK(freed == 1);
  CHECK(pteros_node_set_parameter(node, "gain", &value) == PTEROS_OK);
  const char *frames[] = {"map", "odom"};
  pteros_parameter_value_t list = {.value_type = PTEROS_PARAMETER_STRING_ARRAY,
                                   .array_value = frames,
                                   .array_size = 2};
  CHECK(pteros_node_declare_parameter(node, "frames", &list) == PTEROS_OK);
  int seen = 0;
  CHECK(pteros_node_visit_parameters(node, "frames", see_list, &seen) == PTEROS_OK && seen == 1);
  pteros_parameter_value_t text = {.value_type = PTEROS_PARAMETER_STRING,
                                   .string_value = "base"};
  CHECK(pteros_node_declare_parameter(node, "frame", &text) == PTEROS_OK);
  rosidl_runtime_c__String frame = {0};
  CHECK(pteros_node_get_string(node, "frame", &frame) == PTEROS_OK);
  CHECK(strcmp(frame.data, "base") == 0);
  rosidl_runtime_c__String__fini(&frame);
  CHECK(rosidl_runtime_c__String__init(&frame) && frame.data[0] == 0);
  rosidl_runtime_c__String__fini(&frame);
  rosidl_runtime_c__String__Sequence texts;
  CHECK(rosidl_runtime_c__String__Sequence__init(&texts, 2));
  CHECK(rosidl_runtime_c__String__assign(&texts.data[1], "one"));
  rosidl_runtime_c__String__Sequence__fini(&texts);
  CHECK(texts.size == 0 && texts.data == NULL);
  return 0;
}

static void free_executor(void *user) { pteros_executor_free(user); }

static int freed_in_a_callback(pteros_context_t *context) {
  pteros_node_t *node = pteros_node_new(context, "short_lived", NULL);
  pteros_executor_t *executor = pteros_executor_new(context);
  CHECK(pteros_executor_add_node(executor, node) == PTEROS_OK);
  pteros_timer_t *timer = pteros_timer_new(node, SECOND / 1000, false, free_executor, executor, NULL);
  CHECK(timer != NULL);
  CHECK(pteros_executor_spin(executor) == PTEROS_OK);
  pteros_timer_free(timer);
  pteros_node_free(node);
  return 0;
}

static int services(pteros_context_t *context, pteros_node_t *node) {
  int calls = 0, freed = 0, is_answered = 0;
  pteros_request_t *request = NULL;
  pteros_executor_t *executor = pteros_executor_new(context);
  CHECK(pteros_executor_add_node(executor, node) == PTEROS_OK);
  CHECK(pteros_executor_add_node(executor, node) == PTEROS_ERROR);
  pteros_service_t *adder = pteros_service_new(
      node, &example_interfaces__srv__AddTwoInts__type, "add", NULL, add, &calls, NULL);
  pteros_service_t *set = pteros_service_new_deferred(node, &std_srvs__srv__SetBool__type, "set",
                                                      NULL, later, &request, NULL);
  CHECK(adder != NULL && set != NULL);
  CHECK(strcmp(pteros_service_name(adder), "/c/add") == 0);
  pteros_client_t *client =
      pteros_client_new(node, &std_srvs__srv__SetBool__type, "set", NULL);
  CHECK(pteros_client_wait_for_service(client, 10 * SECOND) == PTEROS_OK);
  std_srvs__srv__SetBool_Request on = {.data = true};
  CHECK(pteros_client_call_async(client, &on, answered, &is_answered, NULL) == PTEROS_OK);
  for (int turn = 0; turn < 1000 && request == NULL; turn++)
    CHECK(pteros_executor_spin_once(executor, SECOND / 100, NULL) == PTEROS_OK);
  CHECK(request != NULL);
  CHECK(((const std_srvs__srv__SetBool_Request *)pteros_request_message(request))->data);
  std_srvs__srv__SetBool_Response answer;
  CHECK(std_srvs__srv__SetBool_Response__init(&answer));
  answer.success = true;
  CHECK(pteros_string_assign(&answer.message, "it is on"));
  CHECK(pteros_request_respond(request, &answer) == PTEROS_OK);
  std_srvs__srv__SetBool_Response__fini(&answer);
  for (int turn = 0; turn < 1000 && !is_answered; turn++)
    CHECK(pteros_executor_spin_once(executor, SECOND / 100, NULL) == PTEROS_OK);
  CHECK(is_answered);
  pteros_client_free(client);
  /* A call that fails frees its user data. */
  client = pteros_client_new(node, &std_srvs__srv__SetBool__type, "nowhere", NULL);
  CHECK(pteros_client_call_async(client, &on, answered, &freed, count_free) == PTEROS_TIMEOUT);
  CHECK(freed == 1);
  std_srvs__srv__SetBool_Response response = {0};
  CHECK(pteros_client_call(client, &on, &response, SECOND / 100) == PTEROS_TIMEOUT);
  CHECK(strstr(pteros_error_message(), "/c/nowhere") != NULL);
  pteros_client_free(client);
  pteros_service_free(set);
  pteros_service_free(adder);
  pteros_executor_free(executor);
  CHECK(calls == 0);
  return 0;
}

/* A plug-in may have a copy of the program's table: another address, the same type. */
static int two_tables(pteros_node_t *node) {
  static pteros_message_type_t copy;
  const pteros_message_type_t *type = &std_srvs__srv__SetBool_Response__type;
  copy = *type;
  pteros_publisher_t *publisher = pteros_publisher_new(node, &copy, "copies", NULL);
  pteros_subscription_t *subscription =
      pteros_subscription_new(node, type, "copies", NULL, NULL, NULL, NULL);
  std_srvs__srv__SetBool_Response sent = {0}, taken = {0};
  CHECK(pteros_string_assign(&sent.message, "abcdef"));
  bool has_one = false;
  CHECK(pteros_publisher_publish(publisher, &sent) == PTEROS_OK);
  CHECK(pteros_subscription_take(subscription, &taken, NULL, &has_one) == PTEROS_OK && has_one);
  CHECK(strcmp(taken.message.data, "abcdef") == 0);
  std_srvs__srv__SetBool_Response__fini(&sent);
  std_srvs__srv__SetBool_Response__fini(&taken);
  pteros_subscription_free(subscription);
  pteros_publisher_free(publisher);
  return 0;
}

static int polled(pteros_context_t *context, pteros_node_t *node) {
  pteros_qos_t qos = PTEROS_QOS_DEFAULT;
  qos.durability = PTEROS_DURABILITY_TRANSIENT_LOCAL;
  const pteros_message_type_t *type = &std_msgs__msg__Float64MultiArray__type;
  pteros_publisher_t *publisher = pteros_publisher_new(node, type, "numbers", &qos);
  pteros_subscription_t *subscription =
      pteros_subscription_new(node, type, "numbers", &qos, NULL, NULL, NULL);
  CHECK(publisher != NULL && subscription != NULL);
  CHECK(pteros_publisher_wait_for_matched(publisher, 1, 10 * SECOND) == PTEROS_OK);
  std_msgs__msg__Float64MultiArray sent, taken;
  CHECK(std_msgs__msg__Float64MultiArray__init(&sent));
  CHECK(std_msgs__msg__Float64MultiArray__init(&taken));
  CHECK(rosidl_runtime_c__double__Sequence__init(&sent.data, 3));
  sent.data.data[2] = 4.25;
  CHECK(std_msgs__msg__MultiArrayDimension__Sequence__init(&sent.layout.dim, 2));
  CHECK(pteros_string_assign(&sent.layout.dim.data[1].label, "columns"));
  for (int round = 0; round < 3; round++) {
    bool has_one = false;
    pteros_message_info_t info;
    CHECK(pteros_publisher_publish(publisher, &sent) == PTEROS_OK);
    CHECK(pteros_subscription_take(subscription, &taken, &info, &has_one) == PTEROS_OK);
    CHECK(has_one && info.sequence_number == round + 1);
    CHECK(taken.data.size == 3 && taken.data.data[2] == 4.25 && taken.layout.dim.size == 2);
    CHECK(strcmp(taken.layout.dim.data[1].label.data, "columns") == 0);
    CHECK(pteros_subscription_take(subscription, &taken, NULL, &has_one) == PTEROS_OK);
    CHECK(!has_one);
  }
  /* CDR and back. */
  uint8_t bytes[256];
  size_t size = 0;
  CHECK(pteros_message_serialize(type, &sent, bytes, sizeof bytes, &size) == PTEROS_OK);
  CHECK(pteros_message_serialize(type, &sent, bytes, 8, &size) == PTEROS_INVALID_ARGUMENT);
  CHECK(pteros_message_deserialize(type, bytes, size, &taken) == PTEROS_OK);
  CHECK(pteros_message_deserialize(type, bytes, size - 9, &taken) == PTEROS_ERROR);
  /* A dimension takes 12 bytes at least, so 20 bytes do not hold 20 of them. */
  uint8_t claim[28] = {0, 1, 0, 0, 20};
  CHECK(pteros_message_deserialize(type, claim, sizeof claim, &taken) == PTEROS_ERROR);
  CHECK(strstr(pteros_error_message(), "claims 20 elements") != NULL);
  CHECK(pteros_publisher_publish_serialized(publisher, bytes, size) == PTEROS_OK);
  CHECK(pteros_publisher_publish_serialized(publisher, bytes, 2) == PTEROS_INVALID_ARGUMENT);
  /* A broken struct is refused. */
  double *numbers = sent.layout.dim.data[0].label.data == NULL ? sent.data.data : NULL;
  sent.layout.dim.data[0].label.size = 5;
  CHECK(pteros_publisher_publish(publisher, &sent) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "std_msgs/msg/Float64MultiArray") != NULL);
  CHECK(numbers == sent.data.data);
  sent.layout.dim.data[0].label.size = 0;
  /* So are sequences whose size has no memory. */
  double *data = sent.data.data;
  sent.data.size = 100;
  CHECK(pteros_publisher_publish(publisher, &sent) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "100 elements in memory for 3") != NULL);
  sent.data.data = NULL;
  sent.data.capacity = 100;
  CHECK(pteros_publisher_publish(publisher, &sent) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "100 elements in no memory") != NULL);
  CHECK(pteros_message_copy(type, &sent, &taken) == PTEROS_INVALID_ARGUMENT);
  sent.data.data = data;
  sent.data.size = sent.data.capacity = 3;
  CHECK(pteros_message_copy(type, &sent, &sent) == PTEROS_OK && sent.data.size == 3);
  /* A string may get its own tail. */
  rosidl_runtime_c__String *label = &sent.layout.dim.data[1].label;
  CHECK(pteros_string_assign(label, label->data + 3) && strcmp(label->data, "umns") == 0);
  std_msgs__msg__Float64MultiArray__fini(&sent);
  std_msgs__msg__Float64MultiArray__fini(&taken);
  int has_node = 0, has_topic = 0;
  CHECK(pteros_graph_visit_nodes(context, find_node, &has_node) == PTEROS_OK && has_node);
  CHECK(pteros_graph_visit_topics(context, find_topic, &has_topic) == PTEROS_OK && has_topic);
  CHECK(pteros_node_count_publishers(node, "numbers") == 1);
  CHECK(pteros_node_count_subscriptions(node, "/c/numbers") == 1);
  /* What was received may be freed before its publisher, and after the context. */
  pteros_publisher_free(publisher);
  pteros_subscription_free(subscription);
  return 0;
}

static int loans(pteros_node_t *node) {
  const pteros_message_type_t *type = &geometry_msgs__msg__Pose__type;
  pteros_publisher_t *publisher = pteros_publisher_new(node, type, "pose", NULL);
  pteros_subscription_t *subscription =
      pteros_subscription_new(node, type, "pose", NULL, NULL, NULL, NULL);
  CHECK(publisher != NULL && subscription != NULL);
  void *loan = NULL;
  CHECK(pteros_publisher_borrow(publisher, &loan) == PTEROS_OK);
  geometry_msgs__msg__Pose *pose = loan;
  /* The default of a quaternion is no rotation. */
  CHECK(pose->orientation.w == 1 && pose->position.x == 0);
  pose->position.x = 2.5;
  CHECK(pteros_publisher_publish_borrowed(publisher, pose) == PTEROS_OK);
  CHECK(pteros_publisher_publish_borrowed(publisher, pose) == PTEROS_INVALID_ARGUMENT);
  CHECK(pteros_publisher_borrow(publisher, &loan) == PTEROS_OK);
  CHECK(pteros_publisher_return(publisher, loan) == PTEROS_OK);
  geometry_msgs__msg__Pose taken = {0};
  bool has_one = false;
  CHECK(pteros_subscription_take(subscription, &taken, NULL, &has_one) == PTEROS_OK && has_one);
  CHECK(taken.position.x == 2.5 && taken.orientation.w == 1);
  pteros_subscription_free(subscription);
  pteros_publisher_free(publisher);
  publisher = pteros_publisher_new(node, &std_msgs__msg__Float64MultiArray__type, "x", NULL);
  CHECK(pteros_publisher_borrow(publisher, &loan) == PTEROS_UNSUPPORTED);
  pteros_publisher_free(publisher);
  return 0;
}

static int mistakes(pteros_context_t *context, pteros_node_t *node) {
  int freed = 0;
  CHECK(pteros_node_new(NULL, "x", NULL) == NULL);
  CHECK(pteros_error_status() == PTEROS_INVALID_ARGUMENT);
  CHECK(pteros_node_new(context, "not a name", NULL) == NULL);
  CHECK(strstr(pteros_error_message(), "not a name") != NULL);
  CHECK(pteros_publisher_new(node, NULL, "x", NULL) == NULL);
  CHECK(pteros_subscription_new(node, &std_srvs__srv__SetBool_Request__type, "two words", NULL,
                                NULL, &freed, count_free) == NULL);
  CHECK(freed == 1);
  CHECK(pteros_timer_new(node, 0, false, count_free, &freed, NULL) == NULL);
  CHECK(pteros_log(node, 7, "text") == PTEROS_INVALID_ARGUMENT);
  CHECK(pteros_log(node, PTEROS_LOG_INFO, "a line of C") == PTEROS_OK);
  CHECK(!pteros_log_is_enabled(node, PTEROS_LOG_DEBUG));
  CHECK(pteros_log_set_level(node, PTEROS_LOG_DEBUG) == PTEROS_OK);
  CHECK(pteros_log_is_enabled(node, PTEROS_LOG_DEBUG));
  pteros_qos_t qos = PTEROS_QOS_DEFAULT;
  qos.lifespan_ns = -1;
  CHECK(pteros_publisher_new(node, &std_srvs__srv__SetBool_Request__type, "x", &qos) == NULL);
  CHECK(strstr(pteros_error_message(), "lifespan_ns is -1") != NULL);
  /* The failure that made a handle null is not lost. */
  CHECK(pteros_publisher_publish(NULL, &qos) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "publisher is null") != NULL);
  CHECK(strstr(pteros_error_message(), "lifespan_ns is -1") != NULL);
  qos.lifespan_ns = 0;
  qos.history = 7;
  CHECK(pteros_publisher_new(node, &std_srvs__srv__SetBool_Request__type, "x", &qos) == NULL);
  CHECK(strstr(pteros_error_message(), "history is 7") != NULL);
  return 0;
}

int main(void) {
  const char *arguments[] = {"services", "not\xff" "utf8", "--ros-args", "-p", "gain:=2.5"};
  pteros_context_t *context = pteros_context_new(5, arguments);
  CHECK(context != NULL);
  pteros_node_t *node = pteros_node_new(context, "tester", "/c");
  CHECK(node != NULL && strcmp(pteros_node_fully_qualified_name(node), "/c/tester") == 0);
  if (parameters(node) || services(context, node) || two_tables(node) || polled(context, node) ||
      loans(node) ||
      mistakes(context, node) || freed_in_a_callback(context))
    return 1;
  CHECK(pteros_context_shutdown(context) == PTEROS_OK);
  CHECK(pteros_node_new(context, "late", NULL) == NULL);
  CHECK(pteros_error_status() == PTEROS_SHUT_DOWN);
  pteros_context_free(context);
  pteros_node_free(node);
  puts("passed");
  return 0;
}
