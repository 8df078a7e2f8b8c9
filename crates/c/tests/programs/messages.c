/* Borrowed messages, sequences, wide strings, bounds and content filters. Prints "passed". */
#include <geometry_msgs/msg/pose.h>
#include <pteros/pteros.h>
#include <stdint.h>
#include <stdio.h>
#include <std_msgs/msg/float64_multi_array.h>
#include <std_msgs/msg/int64.h>
#include <test_msgs/msg/strings.h>
#include <test_msgs/msg/unbounded_sequences.h>
#include <test_msgs/msg/w_strings.h>

#define SECOND INT64_C(1000000000)
#define CHECK(condition)                                                            \
  if (!(condition)) {                                                               \
    fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, pteros_error_message()); \
    return 1;                                                                       \
  }

typedef geometry_msgs__msg__Pose Pose;

/* Borrows the next message, which may still be on its way. */
static const void *borrowed(pteros_executor_t *executor, pteros_subscription_t *subscription,
                            pteros_message_info_t *info) {
  for (int rounds = 0; rounds < 2000; rounds++) {
    const void *message = NULL;
    if (pteros_subscription_borrow(subscription, &message, info) != PTEROS_OK) return NULL;
    if (message != NULL) return message;
    pteros_executor_spin_once(executor, SECOND / 100, NULL);
  }
  return NULL;
}

/* What the publisher wrote is what the subscription reads: no copy within a context. */
static int messages_are_read_in_place(pteros_node_t *node, pteros_executor_t *executor) {
  pteros_publisher_t *publisher =
      pteros_publisher_new(node, &geometry_msgs__msg__Pose__type, "poses", NULL);
  pteros_subscription_t *subscription =
      pteros_subscription_new(node, &geometry_msgs__msg__Pose__type, "poses", NULL, NULL, NULL, NULL);
  const void *received = &received;
  CHECK(pteros_subscription_borrow(subscription, &received, NULL) == PTEROS_OK && received == NULL);
  void *written;
  CHECK(pteros_publisher_borrow(publisher, &written) == PTEROS_OK);
  ((Pose *)written)->position.y = 7;
  CHECK(pteros_publisher_publish_borrowed(publisher, written) == PTEROS_OK);
  pteros_message_info_t info;
  received = borrowed(executor, subscription, &info);
  CHECK(received != NULL && received == written && info.sequence_number == 1);
  CHECK(((const Pose *)received)->position.y == 7 && ((const Pose *)received)->orientation.w == 1);
  CHECK(pteros_subscription_return(subscription, received) == PTEROS_OK);
  CHECK(pteros_subscription_return(subscription, received) == PTEROS_INVALID_ARGUMENT);
  Pose pose;
  CHECK(geometry_msgs__msg__Pose__init(&pose));
  const void *all[10];
  for (int at = 0; at < 10; at++) {
    pose.position.x = at;
    CHECK(pteros_publisher_publish(publisher, &pose) == PTEROS_OK);
    all[at] = borrowed(executor, subscription, NULL);
    CHECK(all[at] != NULL && all[at] != &pose);
  }
  for (int at = 0; at < 10; at++) CHECK(((const Pose *)all[at])->position.x == at);
  CHECK(pteros_subscription_return(subscription, all[3]) == PTEROS_OK);
  pteros_subscription_free(subscription); /* ends the other loans */
  pteros_publisher_free(publisher);
  return 0;
}

static int is_in_shared_memory(const void *address) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    char flags[8];
    if (sscanf(line, "%lx-%lx %7s", &from, &to, flags) == 3 && flags[3] == 's')
      found |= (uintptr_t)address >= from && (uintptr_t)address < to;
  }
  if (maps != NULL) fclose(maps);
  return found;
}

/* Shorter messages are copied into the ring of a connection. */
typedef struct {
  double values[1000];
} Large;
static const pteros_member_t large_members[] = {
    {"values", NULL, 0, 1000, 0, PTEROS_KIND_DOUBLE, 1, {0, 0}}};
static const pteros_message_type_t large_type = {
    "c_test/msg/Large", large_members, 1, sizeof(Large), NULL, 0};

/* Between contexts a message of fixed size is read in shared memory, one with strings once. */
static int messages_of_other_contexts_are_read_in_place(pteros_node_t *node,
                                                        pteros_executor_t *executor) {
  pteros_context_t *context = pteros_context_new(0, NULL);
  pteros_node_t *other = pteros_node_new(context, "other", NULL);
  pteros_publisher_t *publisher =
      pteros_publisher_new(other, &large_type, "far_poses", NULL);
  pteros_publisher_t *texts =
      pteros_publisher_new(other, &test_msgs__msg__Strings__type, "far_texts", NULL);
  pteros_subscription_t *subscription = pteros_subscription_new(
      node, &large_type, "far_poses", NULL, NULL, NULL, NULL);
  pteros_subscription_t *reader = pteros_subscription_new(
      node, &test_msgs__msg__Strings__type, "far_texts", NULL, NULL, NULL, NULL);
  CHECK(pteros_publisher_wait_for_matched(publisher, 1, 10 * SECOND) == PTEROS_OK);
  CHECK(pteros_publisher_wait_for_matched(texts, 1, 10 * SECOND) == PTEROS_OK);
  int shared = 0;
  for (int at = 0; at < 50 && !shared; at++) { /* the transport may still connect */
    void *written;
    CHECK(pteros_publisher_borrow(publisher, &written) == PTEROS_OK);
    ((Large *)written)->values[999] = at;
    CHECK(pteros_publisher_publish_borrowed(publisher, written) == PTEROS_OK);
    const void *received = borrowed(executor, subscription, NULL);
    CHECK(received != NULL && ((const Large *)received)->values[999] == at);
    shared = is_in_shared_memory(received);
    CHECK(pteros_subscription_return(subscription, received) == PTEROS_OK);
    pteros_executor_spin_once(executor, SECOND / 100, NULL);
  }
  CHECK(shared);
  test_msgs__msg__Strings message;
  CHECK(test_msgs__msg__Strings__init(&message));
  CHECK(pteros_string_assign(&message.string_value, "over there"));
  CHECK(pteros_publisher_publish(texts, &message) == PTEROS_OK);
  const test_msgs__msg__Strings *text = borrowed(executor, reader, NULL);
  CHECK(text != NULL && strcmp(text->string_value.data, "over there") == 0);
  test_msgs__msg__Strings__fini(&message);
  pteros_subscription_free(reader);
  pteros_subscription_free(subscription);
  pteros_publisher_free(texts);
  pteros_publisher_free(publisher);
  pteros_node_free(other);
  pteros_context_free(context);
  return 0;
}

/* Elements have the default values of their type, and one that finds no memory leaves none. */
static int sequences_have_default_values(void) {
  geometry_msgs__msg__Pose__Sequence poses;
  CHECK(geometry_msgs__msg__Pose__Sequence__init(&poses, 1000));
  CHECK(poses.size == 1000 && poses.capacity == 1000 && poses.data[999].orientation.w == 1);
  geometry_msgs__msg__Pose__Sequence__fini(&poses);
  CHECK(poses.data == NULL && poses.size == 0);
  CHECK(geometry_msgs__msg__Pose__Sequence__init(&poses, 0) && poses.data == NULL);
  test_msgs__msg__Strings__Sequence texts;
  CHECK(test_msgs__msg__Strings__Sequence__init(&texts, 3));
  CHECK(strcmp(texts.data[2].string_value_default1.data, "Hello world!") == 0);
  CHECK(pteros_string_assign(&texts.data[1].string_value, "freed with the sequence"));
  test_msgs__msg__Strings__Sequence__fini(&texts);
  std_msgs__msg__Float64MultiArray array;
  CHECK(std_msgs__msg__Float64MultiArray__init(&array));
  CHECK(std_msgs__msg__MultiArrayDimension__Sequence__init(&array.layout.dim, 2));
  CHECK(pteros_string_assign(&array.layout.dim.data[1].label, "width"));
  std_msgs__msg__Float64MultiArray__fini(&array);
  CHECK(!geometry_msgs__msg__Pose__Sequence__init(&poses, SIZE_MAX / 2));
  CHECK(poses.size == 0 && poses.data == NULL && pteros_error_status() == PTEROS_NO_MEMORY);
  CHECK(pteros_sequence_init(NULL, &poses, 1) == PTEROS_INVALID_ARGUMENT);
  return 0;
}

static int wide_strings_are_set(void) {
  const uint_least16_t owl[] = {0xd83e, 0xdd89, 0};
  test_msgs__msg__WStrings message, copy;
  CHECK(test_msgs__msg__WStrings__init(&message) && test_msgs__msg__WStrings__init(&copy));
  CHECK(rosidl_runtime_c__U16String__assign(&message.wstring_value, owl));
  CHECK(message.wstring_value.size == 2 && message.wstring_value.data[2] == 0);
  CHECK(pteros_u16string_assign_utf8(&message.wstring_value_default1, "na\xc3\xafve \xf0\x9f\xa6\x89"));
  CHECK(message.wstring_value_default1.size == 8);
  CHECK(memcmp(&message.wstring_value_default1.data[6], owl, 2 * sizeof owl[0]) == 0);
  CHECK(!pteros_u16string_assign_utf8(&message.wstring_value, "\xff"));
  CHECK(strstr(pteros_error_message(), "not UTF-8") != NULL && message.wstring_value.size == 2);
  CHECK(!pteros_u16string_assign_n(NULL, owl, 2));
  CHECK(rosidl_runtime_c__U16String__Sequence__init(&message.unbounded_sequence_of_wstrings, 2));
  CHECK(rosidl_runtime_c__U16String__assignn(&message.unbounded_sequence_of_wstrings.data[1], owl, 1));
  CHECK(test_msgs__msg__WStrings__copy(&message, &copy));
  CHECK(copy.unbounded_sequence_of_wstrings.data[1].size == 1);
  test_msgs__msg__WStrings__fini(&message);
  test_msgs__msg__WStrings__fini(&copy);
  return 0;
}

/* The error of the other languages: it names the field, the length and the bound. */
static int bounds_are_checked(pteros_node_t *node) {
  pteros_publisher_t *publisher =
      pteros_publisher_new(node, &test_msgs__msg__Strings__type, "bounded", NULL);
  test_msgs__msg__Strings message;
  CHECK(test_msgs__msg__Strings__init(&message));
  CHECK(pteros_string_assign(&message.bounded_string_value, "exactly twenty-two ch."));
  CHECK(pteros_publisher_publish(publisher, &message) == PTEROS_OK);
  CHECK(pteros_string_assign(&message.bounded_string_value, "twenty-three characters"));
  CHECK(pteros_publisher_publish(publisher, &message) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "field \"bounded_string_value\" holds 23 elements") != NULL);
  test_msgs__msg__Strings__fini(&message);
  pteros_publisher_free(publisher);
  return 0;
}

/* A negative length that became a size ends no process. */
static int sizes_above_all_memory_are_refused(pteros_node_t *node) {
  const uint16_t units[2] = {0x100, 0};
  const uint8_t *bytes = (const uint8_t *)units;
  const size_t sizes[] = {(size_t)-1, (size_t)PTRDIFF_MAX + 1};
  pteros_publisher_t *publisher =
      pteros_publisher_new(node, &std_msgs__msg__Int64__type, "sizes", NULL);
  pteros_subscription_t *subscription =
      pteros_subscription_new(node, &std_msgs__msg__Int64__type, "sizes", NULL, NULL, NULL, NULL);
  test_msgs__msg__WStrings strings;
  std_msgs__msg__Int64 number = {0};
  CHECK(test_msgs__msg__WStrings__init(&strings));
  rosidl_runtime_c__String text;
  CHECK(rosidl_runtime_c__String__init(&text));
  for (size_t at = 0; at < 2; at++) {
    const char *parameters[] = {"3"};
    pteros_content_filter_t filter = {"data = %0", parameters, sizes[at]};
    pteros_parameter_value_t value = {0};
    value.value_type = PTEROS_PARAMETER_BYTE_ARRAY;
    value.array_value = bytes;
    value.array_size = sizes[at];
    CHECK(pteros_subscription_set_content_filter(subscription, &filter) ==
          PTEROS_INVALID_ARGUMENT);
    CHECK(strstr(pteros_error_message(), "more than memory can hold") != NULL);
    CHECK(pteros_publisher_publish_serialized(publisher, bytes, sizes[at]) ==
          PTEROS_INVALID_ARGUMENT);
    CHECK(pteros_message_deserialize(&std_msgs__msg__Int64__type, bytes, sizes[at], &number) ==
          PTEROS_INVALID_ARGUMENT);
    CHECK(pteros_node_declare_parameter(node, "bytes", &value) == PTEROS_INVALID_ARGUMENT);
    CHECK(!pteros_string_assign_n(&text, "x", sizes[at]));
    CHECK(!pteros_u16string_assign_n(&strings.wstring_value, units, sizes[at]));
  }
  rosidl_runtime_c__String__fini(&text);
  test_msgs__msg__WStrings__fini(&strings);
  pteros_subscription_free(subscription);
  pteros_publisher_free(publisher);
  return 0;
}

static void note(const void *message, const pteros_message_info_t *info, void *user) {
  (void)info;
  *(int64_t *)user = *(int64_t *)user * 10 + ((const std_msgs__msg__Int64 *)message)->data;
}

static int publish_digits(pteros_publisher_t *publisher, pteros_executor_t *executor) {
  std_msgs__msg__Int64 number = {0};
  for (number.data = 1; number.data < 6; number.data++)
    CHECK(pteros_publisher_publish(publisher, &number) == PTEROS_OK);
  CHECK(pteros_executor_spin_some(executor, NULL) == PTEROS_OK);
  return 0;
}

static int filters_select_messages(pteros_node_t *node, pteros_executor_t *executor) {
  const char *parameters[] = {"3"};
  pteros_content_filter_t filter = {"data >= %0", parameters, 1};
  int64_t heard = 0;
  pteros_publisher_t *publisher =
      pteros_publisher_new(node, &std_msgs__msg__Int64__type, "digits", NULL);
  pteros_subscription_t *subscription = pteros_subscription_new_filtered(
      node, &std_msgs__msg__Int64__type, "digits", NULL, &filter, note, &heard, NULL);
  CHECK(subscription != NULL && pteros_subscription_is_cft_enabled(subscription));
  if (publish_digits(publisher, executor)) return 1;
  CHECK(heard == 345);
  pteros_content_filter_t wrong = {"number >= 3", NULL, 0};
  CHECK(pteros_subscription_set_content_filter(subscription, &wrong) == PTEROS_INVALID_ARGUMENT);
  CHECK(strstr(pteros_error_message(), "number") != NULL);
  filter.expression = "data < %0";
  CHECK(pteros_subscription_set_content_filter(subscription, &filter) == PTEROS_OK);
  if (publish_digits(publisher, executor)) return 1;
  CHECK(heard == 34512);
  CHECK(pteros_subscription_set_content_filter(subscription, NULL) == PTEROS_OK);
  CHECK(!pteros_subscription_is_cft_enabled(subscription));
  if (publish_digits(publisher, executor)) return 1;
  CHECK(heard == 3451212345);
  CHECK(pteros_subscription_new_filtered(node, &std_msgs__msg__Int64__type, "digits", NULL, &wrong,
                                         note, &heard, NULL) == NULL);
  CHECK(pteros_error_status() == PTEROS_INVALID_ARGUMENT);
  pteros_subscription_free(subscription);
  pteros_publisher_free(publisher);
  return 0;
}

int main(void) {
  pteros_context_t *context = pteros_context_new(0, NULL);
  pteros_node_t *node = pteros_node_new(context, "messages", NULL);
  pteros_executor_t *executor = pteros_executor_new(context);
  CHECK(pteros_executor_add_node(executor, node) == PTEROS_OK);
  int failed = messages_are_read_in_place(node, executor) ||
               messages_of_other_contexts_are_read_in_place(node, executor) ||
               sequences_have_default_values() || wide_strings_are_set() ||
               bounds_are_checked(node) || sizes_above_all_memory_are_refused(node) ||
               filters_select_messages(node, executor);
  pteros_executor_free(executor);
  pteros_node_free(node);
  pteros_context_free(context);
  if (failed) return 1;
  puts("passed");
  return 0;
}
