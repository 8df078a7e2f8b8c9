/* Ends of waits, and executors without descriptors. Prints "passed". */
#include <poll.h>
#include <pteros/pteros.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define CHECK(condition)                                                            \
  if (!(condition)) {                                                               \
    fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, pteros_error_message()); \
    return 1;                                                                       \
  }

static void *cancel_soon(void *executor) {
  struct timespec moment = {0, 20 * 1000 * 1000};
  nanosleep(&moment, NULL);
  pteros_executor_cancel(executor);
  return NULL;
}

/* A wait without end returns when another thread cancels it. */
static int waits_are_cancelled(pteros_executor_t *executor) {
  pthread_t thread;
  bool ran = true;
  CHECK(pthread_create(&thread, NULL, cancel_soon, executor) == 0);
  CHECK(pteros_executor_spin_once(executor, -1, &ran) == PTEROS_OK && !ran);
  pthread_join(thread, NULL);
  CHECK(pteros_executor_cancel(executor) == PTEROS_OK);
  CHECK(pteros_executor_spin_once(executor, -1, NULL) == PTEROS_OK);
  CHECK(pteros_executor_spin_once(executor, 0, NULL) == PTEROS_OK);
  return 0;
}

static void count(void *user) { ++*(int *)user; }

/* Without a free descriptor the executor says so, and works as before and later. */
static int descriptors_run_out(pteros_executor_t *executor, pteros_node_t *node) {
  int fd = -1, ticks = 0;
  size_t ran = 0;
  pteros_timer_t *timer = pteros_timer_new(node, SECOND / 1000, false, count, &ticks, NULL);
  struct rlimit limit, none;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  none = limit;
  int next = dup(0);
  close(next);
  for (int free = 0; free < 3; free++) {
    none.rlim_cur = (rlim_t)(next + free);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(pteros_executor_fd(executor, &fd) == PTEROS_ERROR && fd == -1);
    CHECK(strstr(pteros_error_message(), "close files") != NULL);
    CHECK(pteros_executor_spin_once(executor, -1, NULL) == PTEROS_OK && ticks == free + 1);
  }
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(pteros_executor_fd(executor, &fd) == PTEROS_OK);
  for (int before = ticks; ticks < before + 3;) {
    struct pollfd waits = {fd, POLLIN, 0};
    CHECK(poll(&waits, 1, 10000) == 1);
    CHECK(pteros_executor_spin_some(executor, &ran) == PTEROS_OK);
  }
  CHECK(pteros_executor_spin_once(executor, 0, NULL) == PTEROS_ERROR);
  pteros_timer_free(timer);
  return 0;
}

int main(void) {
  pteros_context_t *context = pteros_context_new(0, NULL);
  pteros_node_t *node = pteros_node_new(context, "executors", NULL);
  pteros_executor_t *executor = pteros_executor_new(context);
  CHECK(pteros_executor_add_node(executor, node) == PTEROS_OK);
  int failed = waits_are_cancelled(executor) || descriptors_run_out(executor, node);
  pteros_executor_free(executor);
  pteros_node_free(node);
  pteros_context_free(context);
  if (failed) return 1;
  puts("passed");
  return 0;
}
