/* Prints the CDR of the default message of many types, after a way through CDR and a copy. */
#include <pteros/pteros.h>
#include <stdio.h>
#include <test_msgs/msg/arrays.h>
#include <test_msgs/msg/bounded_sequences.h>
#include <test_msgs/msg/defaults.h>
#include <test_msgs/msg/empty.h>
#include <test_msgs/msg/multi_nested.h>
#include <test_msgs/msg/strings.h>
#include <test_msgs/msg/unbounded_sequences.h>
#include <test_msgs/msg/w_strings.h>

static const pteros_message_type_t *const types[] = {
    &test_msgs__msg__Arrays__type,      &test_msgs__msg__BoundedSequences__type,
    &test_msgs__msg__Defaults__type,    &test_msgs__msg__Empty__type,
    &test_msgs__msg__MultiNested__type, &test_msgs__msg__Strings__type,
    &test_msgs__msg__WStrings__type,    &test_msgs__msg__UnboundedSequences__type,
};

int main(void) {
  static uint8_t bytes[1 << 16];
  for (size_t at = 0; at < sizeof types / sizeof types[0]; at++) {
    const pteros_message_type_t *type = types[at];
    void *one = malloc(type->size_of), *other = malloc(type->size_of);
    size_t size = 0;
    if (pteros_message_init(type, one) || pteros_message_init(type, other) ||
        pteros_message_serialize(type, one, bytes, sizeof bytes, &size) ||
        pteros_message_deserialize(type, bytes, size, other) ||
        pteros_message_copy(type, other, one) ||
        pteros_message_serialize(type, one, bytes, sizeof bytes, &size)) {
      fprintf(stderr, "%s: %s\n", type->name, pteros_error_message());
      return 1;
    }
    printf("%s ", type->name);
    for (size_t byte = 0; byte < size; byte++) printf("%02x", bytes[byte]);
    puts("");
    pteros_message_fini(type, one);
    pteros_message_fini(type, other);
    free(one);
    free(other);
  }
  return 0;
}
