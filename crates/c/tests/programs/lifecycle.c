/* Lifecycle nodes and transforms. Prints "passed". */
#include <pteros/pteros.h>
#include <stdio.h>

#define SECOND INT64_C(1000000000)
#define CHECK(condition)                                                            \
  if (!(condition)) {                                                               \
    fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, pteros_error_message()); \
    return 1;                                                                       \
  }

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(pteros_transform_t) == 64 && offsetof(pteros_transform_t, rotation) == 32,
               "as crates/c/src/transforms.rs has them");
#endif

typedef struct {
  int answer;
  uint8_t entered[8];
  int count;
  int freed;
} machine_t;

static int enter(uint8_t entered, uint8_t previous, void *user) {
  machine_t *machine = user;
  (void)previous;
  machine->entered[machine->count++ % 8] = entered;
  return entered == PTEROS_STATE_ERROR_PROCESSING ? PTEROS_CALLBACK_SUCCESS : machine->answer;
}

static void end(void *user) { ((machine_t *)user)->freed++; }

static void count_transition(uint8_t id, const char *label, uint8_t entered, void *user) {
  (void)entered;
  *(int *)user += id == PTEROS_TRANSITION_CONFIGURE && strcmp(label, "configure") == 0 ? 10 : 1;
}

static int states_change(pteros_context_t *context) {
  machine_t machine = {PTEROS_CALLBACK_SUCCESS, {0}, 0, 0};
  uint8_t state = 99;
  pteros_lifecycle_node_t *node =
      pteros_lifecycle_node_new(context, "managed", "/c", enter, &machine, end);
  CHECK(node != NULL && pteros_lifecycle_node_state(node) == PTEROS_STATE_UNCONFIGURED);
  const pteros_node_t *below = pteros_lifecycle_node_node(node);
  CHECK(strcmp(pteros_node_fully_qualified_name(below), "/c/managed") == 0);
  int transitions = 0;
  CHECK(pteros_lifecycle_node_visit_transitions(node, count_transition, &transitions) == PTEROS_OK);
  CHECK(transitions == 11); /* configure, shutdown */
  CHECK(pteros_lifecycle_node_change_state(node, PTEROS_TRANSITION_ACTIVATE, &state) ==
        PTEROS_REJECTED);
  CHECK(state == PTEROS_STATE_UNCONFIGURED && machine.count == 0);
  CHECK(strstr(pteros_error_message(), "configure") != NULL);
  CHECK(pteros_lifecycle_node_change_state(node, 42, NULL) == PTEROS_INVALID_ARGUMENT);
  state = 99;
  CHECK(pteros_lifecycle_node_change_state(node, 42, &state) == PTEROS_INVALID_ARGUMENT);
  CHECK(state == PTEROS_STATE_UNCONFIGURED);
  state = 99;
  CHECK(pteros_lifecycle_node_change_state_by_label(node, NULL, &state) == PTEROS_INVALID_ARGUMENT);
  CHECK(state == PTEROS_STATE_UNCONFIGURED);
  machine.answer = PTEROS_CALLBACK_FAILURE;
  CHECK(pteros_lifecycle_node_change_state(node, PTEROS_TRANSITION_CONFIGURE, &state) ==
        PTEROS_ERROR);
  CHECK(state == PTEROS_STATE_UNCONFIGURED && machine.entered[0] == PTEROS_STATE_CONFIGURING);
  machine.answer = PTEROS_CALLBACK_SUCCESS;
  CHECK(pteros_lifecycle_node_change_state_by_label(node, "configure", &state) == PTEROS_OK);
  CHECK(state == PTEROS_STATE_INACTIVE);
  CHECK(pteros_lifecycle_node_change_state_by_label(node, "activate", NULL) == PTEROS_OK);
  CHECK(pteros_lifecycle_node_state(node) == PTEROS_STATE_ACTIVE);
  machine.answer = 12345; /* an error, as every other number */
  CHECK(pteros_lifecycle_node_change_state(node, PTEROS_TRANSITION_DEACTIVATE, &state) ==
        PTEROS_ERROR);
  CHECK(state == PTEROS_STATE_UNCONFIGURED);
  CHECK(machine.entered[3] == PTEROS_STATE_DEACTIVATING);
  CHECK(machine.entered[4] == PTEROS_STATE_ERROR_PROCESSING);
  machine.answer = PTEROS_CALLBACK_SUCCESS;
  CHECK(pteros_lifecycle_node_change_state_by_label(node, "shutdown", &state) == PTEROS_OK);
  CHECK(state == PTEROS_STATE_FINALIZED && machine.freed == 0);
  pteros_lifecycle_node_free(node);
  CHECK(machine.freed == 1);
  CHECK(pteros_lifecycle_node_new(context, "not a name", NULL, enter, &machine, end) == NULL);
  CHECK(machine.freed == 2);
  CHECK(pteros_lifecycle_node_node(NULL) == NULL && pteros_lifecycle_node_state(NULL) == 0);
  return 0;
}

static int transforms_are_looked_up(pteros_node_t *node) {
  pteros_tf_listener_t *listener = pteros_tf_listener_new(node);
  pteros_tf_broadcaster_t *fixed = pteros_tf_broadcaster_new(node, true);
  pteros_tf_broadcaster_t *moving = pteros_tf_broadcaster_new(node, false);
  CHECK(listener != NULL && fixed != NULL && moving != NULL);
  pteros_transform_t transform = {0, {1, 0, 0.5}, {0, 0, 0, 1}}, found;
  CHECK(pteros_tf_listener_lookup(listener, "map", "camera", 0, 0, &found) == PTEROS_ERROR);
  CHECK(pteros_tf_broadcaster_send(fixed, "base", "camera", &transform) == PTEROS_OK);
  transform.time_ns = 5 * SECOND;
  transform.translation[2] = 0;
  CHECK(pteros_tf_broadcaster_send(moving, "map", "base", &transform) == PTEROS_OK);
  transform.time_ns = 6 * SECOND;
  transform.translation[0] = 3;
  CHECK(pteros_tf_broadcaster_send(moving, "map", "base", &transform) == PTEROS_OK);
  CHECK(pteros_tf_listener_lookup(listener, "map", "camera", 5 * SECOND + SECOND / 2, 10 * SECOND,
                                  &found) == PTEROS_OK);
  CHECK(found.translation[0] == 3 && found.translation[2] == 0.5 && found.rotation[3] == 1);
  CHECK(found.time_ns == 5 * SECOND + SECOND / 2);
  CHECK(pteros_tf_listener_lookup(listener, "camera", "map", 0, 0, &found) == PTEROS_OK);
  CHECK(found.translation[0] == -4 && found.time_ns == 6 * SECOND);
  CHECK(pteros_tf_listener_lookup(listener, "map", "base", 9 * SECOND, SECOND / 100, &found) ==
        PTEROS_TIMEOUT);
  CHECK(strstr(pteros_error_message(), "\"map\"") != NULL);
  CHECK(pteros_tf_listener_lookup(listener, "", "base", 0, 0, &found) == PTEROS_INVALID_ARGUMENT);
  transform.rotation[3] = 0;
  CHECK(pteros_tf_broadcaster_send(moving, "map", "base", &transform) == PTEROS_INVALID_ARGUMENT);
  CHECK(pteros_tf_broadcaster_send(moving, "base", "base", &transform) == PTEROS_INVALID_ARGUMENT);
  pteros_tf_broadcaster_free(fixed);
  pteros_tf_broadcaster_free(moving);
  pteros_tf_listener_free(listener);
  return 0;
}

int main(void) {
  pteros_context_t *context = pteros_context_new(0, NULL);
  pteros_node_t *node = pteros_node_new(context, "frames", NULL);
  int failed = states_change(context) || transforms_are_looked_up(node);
  pteros_node_free(node);
  pteros_context_free(context);
  if (failed) return 1;
  puts("passed");
  return 0;
}
