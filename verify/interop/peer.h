/* Common part of the C and C++ peers: options, lines on stdout, payloads,
 * round trips. Plain C that also compiles as C++. README.md in this folder
 * describes the options and lines; peer.py mirrors both. It contains no DDS. */
#ifndef PEER_H
#define PEER_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum peer_exit { EXIT_OK = 0, EXIT_USAGE = 2, EXIT_TIME = 3, EXIT_DDS = 4 };
enum peer_verb { VERB_PUB, VERB_SUB, VERB_PING, VERB_PONG };
enum peer_liveliness { LIVE_AUTOMATIC, LIVE_MANUAL_PARTICIPANT, LIVE_MANUAL_TOPIC };
enum peer_wait { WAIT_LISTENER, WAIT_WAITSET };

struct peer_options {
  enum peer_verb verb;
  const char *topic, *reply_topic, *partition, *typehash, *enclave, *text;
  const char *filter, *filter_parameter; /* DDS SQL and the value of %0 */
  const char *security;     /* folder of an enclave, NULL without security */
  bool bytes;               /* UInt8MultiArray instead of String */
  bool reliable, transient_local, exclusive;
  long strength;            /* of an exclusive writer */
  int depth;                /* 0 is KEEP_ALL */
  long deadline_ms, lease_ms, lifespan_ms, assert_ms; /* 0 is none */
  enum peer_liveliness liveliness;
  enum peer_wait wait;
  long size;                /* -1: "Hello World: N" */
  long count, warmup;       /* count 0 for no limit */
  double rate;              /* 0 for the maximum rate */
  int domain, wait_matched;
  double timeout, linger, settle; /* seconds; timeout 0 for no limit */
  bool shared_memory, start_on_line, by_lines;
};

/* -- lines --------------------------------------------------------------- */

/* Prints and flushes a whole line; thread-safe. */
static void say(const char *format, ...)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  va_list arguments;
  pthread_mutex_lock(&lock);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
  pthread_mutex_unlock(&lock);
}

static void fail(int code, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fputs("peer: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  fflush(stdout);
  _Exit(code);
}

/* Names by QosPolicyId of DDS 1.4 §2.2.3 and XTypes 1.3 §7.6.3.1. */
static const char *policy_name(unsigned id)
{
  static const char *const names[] = {
    "INVALID", "USER_DATA", "DURABILITY", "PRESENTATION", "DEADLINE", "LATENCY_BUDGET", "OWNERSHIP",
    "OWNERSHIP_STRENGTH", "LIVELINESS", "TIME_BASED_FILTER", "PARTITION", "RELIABILITY",
    "DESTINATION_ORDER", "HISTORY", "RESOURCE_LIMITS", "ENTITY_FACTORY", "WRITER_DATA_LIFECYCLE",
    "READER_DATA_LIFECYCLE", "TOPIC_DATA", "GROUP_DATA", "TRANSPORT_PRIORITY", "LIFESPAN",
    "DURABILITY_SERVICE", "DATA_REPRESENTATION", "TYPE_CONSISTENCY_ENFORCEMENT" };
  return id < sizeof names / sizeof *names ? names[id] : "UNKNOWN";
}

/* -- time and signals ---------------------------------------------------- */

static volatile sig_atomic_t stop_requested;

static void on_stop(int signal_number)
{
  (void)signal_number;
  stop_requested = 1;
}

/* Also undoes the ignored SIGINT that a shell's background job inherits. */
static void catch_stop(void)
{
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_stop;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static int64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_ns(int64_t nanoseconds)
{
  struct timespec t;
  if (nanoseconds <= 0)
    return;
  t.tv_sec = (time_t)(nanoseconds / 1000000000);
  t.tv_nsec = (long)(nanoseconds % 1000000000);
  nanosleep(&t, NULL);
}

/* Sleeps until that time, in slices short enough to react to a signal. */
static void sleep_until(int64_t moment)
{
  while (!stop_requested) {
    int64_t left = moment - now_ns();
    if (left <= 0)
      return;
    sleep_ns(left > 20000000 ? 20000000 : left);
  }
}

static int64_t seconds(double value)
{
  return (int64_t)(value * 1e9);
}

/* With --start stdin: waits for a line, so that the test decides when both
 * sides have discovered each other. Then waits for the first heartbeat:
 * Cyclone treats samples that a volatile reader missed before it as history. */
static void wait_for_start(const struct peer_options *o)
{
  int c;
  if (o->start_on_line)
    while ((c = getchar()) != '\n' && c != EOF)
      ;
  if (o->wait_matched)
    sleep_until(now_ns() + seconds(o->settle));
}

/* With --start lines: the next command without its line break; NULL at the
 * end. Split into its first word and the rest. */
static char *next_order(char *line, size_t size, char **word)
{
  if (!fgets(line, (int)size, stdin))
    return NULL;
  line[strcspn(line, "\n")] = 0;
  *word = line;
  char *blank = strchr(line, ' ');
  if (!blank)
    return line + strlen(line);
  *blank = 0;
  return blank + 1;
}

/* The time of the timeout, far in the future without one. */
static int64_t give_up_at(const struct peer_options *o)
{
  return o->timeout > 0 ? now_ns() + seconds(o->timeout) : INT64_MAX;
}

/* -- payloads ------------------------------------------------------------ */

/* CRC-32 as in IEEE 802.3 and zlib; checked by tests on the other side. */
static uint32_t crc32_of(const void *data, size_t length)
{
  static uint32_t table[256];
  static bool ready;
  const uint8_t *p = (const uint8_t *)data;
  uint32_t crc = 0xffffffffu;
  if (!ready) {
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++)
        c = (c & 1) ? 0xedb88320u ^ (c >> 1) : c >> 1;
      table[i] = c;
    }
    ready = true;
  }
  while (length--)
    crc = table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
  return crc ^ 0xffffffffu;
}

/* Fills `size` bytes of sample `seq`: printable for strings, else all values. */
static void fill_payload(uint8_t *to, size_t size, long seq, bool printable)
{
  for (size_t i = 0; i < size; i++) {
    uint32_t v = (uint32_t)(i * 31 + (i >> 8) + (size_t)seq * 7);
    to[i] = printable ? (uint8_t)('a' + v % 26) : (uint8_t)v;
  }
}

/* A new string for sample `seq`; the caller frees it. */
static char *make_text(const struct peer_options *o, long seq)
{
  size_t size = o->size >= 0 ? (size_t)o->size : 64 + (o->text ? strlen(o->text) : 0);
  char *text = (char *)malloc(size + 1);
  if (o->size >= 0) {
    fill_payload((uint8_t *)text, size, seq, true);
    text[size] = 0;
  } else if (o->text) {
    strcpy(text, o->text);
  } else {
    snprintf(text, size, "Hello World: %ld", seq);
  }
  return text;
}

static size_t bytes_size(const struct peer_options *o)
{
  return o->size >= 0 ? (size_t)o->size : 64;
}

static void say_sample(const char *word, long seq, const void *data, size_t size, bool printable)
{
  uint32_t crc = crc32_of(data, size);
  if (printable)
    say("%s seq=%ld size=%zu crc=%08x text=%.60s", word, seq, size, crc, (const char *)data);
  else
    say("%s seq=%ld size=%zu crc=%08x", word, seq, size, crc);
}

/* -- round trips --------------------------------------------------------- */

static int compare_ns(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Sorts `list` and prints the summary, in microseconds. */
static void say_rtt(int64_t *list, long count, long size)
{
  double sum = 0;
  if (count <= 0) {
    say("rtt size=%ld count=0", size);
    return;
  }
  qsort(list, (size_t)count, sizeof *list, compare_ns);
  for (long i = 0; i < count; i++)
    sum += (double)list[i];
  say("rtt size=%ld count=%ld min=%.2f p50=%.2f p95=%.2f p99=%.2f max=%.2f mean=%.2f", size, count,
      list[0] / 1e3, list[count / 2] / 1e3, list[count * 95 / 100] / 1e3,
      list[count * 99 / 100] / 1e3, list[count - 1] / 1e3, sum / (double)count / 1e3);
}

/* -- options ------------------------------------------------------------- */

static double number(const char *name, const char *value)
{
  char *end;
  double result;
  errno = 0;
  result = strtod(value, &end);
  if (errno || end == value || *end || result < 0)
    fail(EXIT_USAGE, "%s %s: expected a number, zero or more", name, value);
  return result;
}

/* Index of `value` in `choices`, which are separated by '|'. */
static int choice(const char *name, const char *value, const char *choices)
{
  const char *at = choices;
  for (int i = 0;; i++) {
    size_t length = strcspn(at, "|");
    if (strlen(value) == length && !strncmp(at, value, length))
      return i;
    if (!at[length])
      break;
    at += length + 1;
  }
  fail(EXIT_USAGE, "%s %s: expected %s", name, value, choices);
  return -1;
}

static int history_depth(const char *value)
{
  if (!strcmp(value, "keep_all"))
    return 0;
  if (!strncmp(value, "keep_last:", 10) && atoi(value + 10) > 0)
    return atoi(value + 10);
  fail(EXIT_USAGE, "--history %s: expected keep_all or keep_last:N with N of 1 or more", value);
  return 0;
}

/* Options are split at blanks, so a slash stands for a blank. */
static const char *with_blanks(const char *value)
{
  char *text = strdup(value);
  for (char *c = text; *c; c++)
    if (*c == '/')
      *c = ' ';
  return text;
}

static void set_option(struct peer_options *o, const char *n, const char *v)
{
#define IS(text) (!strcmp(n, text))
  if (IS("--topic")) o->topic = v;
  else if (IS("--reply-topic")) o->reply_topic = v;
  else if (IS("--type")) o->bytes = choice(n, v, "string|bytes") == 1;
  else if (IS("--text")) o->text = v;
  else if (IS("--reliability")) o->reliable = choice(n, v, "best_effort|reliable") == 1;
  else if (IS("--durability")) o->transient_local = choice(n, v, "volatile|transient_local") == 1;
  else if (IS("--history")) o->depth = history_depth(v);
  else if (IS("--deadline")) o->deadline_ms = (long)number(n, v);
  else if (IS("--liveliness"))
    o->liveliness = (enum peer_liveliness)choice(n, v, "automatic|manual_participant|manual_topic");
  else if (IS("--lease")) o->lease_ms = (long)number(n, v);
  else if (IS("--assert")) o->assert_ms = (long)number(n, v);
  else if (IS("--lifespan")) o->lifespan_ms = (long)number(n, v);
  else if (IS("--partition")) o->partition = v;
  else if (IS("--filter")) o->filter = with_blanks(v);
  else if (IS("--filter-parameter")) o->filter_parameter = with_blanks(v);
  else if (IS("--exclusive")) o->exclusive = true, o->strength = (long)number(n, v);
  else if (IS("--size")) o->size = (long)number(n, v);
  else if (IS("--count")) o->count = (long)number(n, v);
  else if (IS("--warmup")) o->warmup = (long)number(n, v);
  else if (IS("--rate")) o->rate = number(n, v);
  else if (IS("--domain")) o->domain = (int)number(n, v);
  else if (IS("--wait-matched")) o->wait_matched = (int)number(n, v);
  else if (IS("--timeout")) o->timeout = number(n, v);
  else if (IS("--linger")) o->linger = number(n, v);
  else if (IS("--typehash")) o->typehash = v;
  else if (IS("--enclave")) o->enclave = v;
  else if (IS("--security")) o->security = v;
  else if (IS("--wait")) o->wait = (enum peer_wait)choice(n, v, "listener|waitset");
  else if (IS("--settle")) o->settle = number(n, v);
  else if (IS("--start")) {
    int start = choice(n, v, "now|stdin|lines");
    o->start_on_line = start == 1, o->by_lines = start == 2;
  }
  else if (IS("--shared-memory")) o->shared_memory = choice(n, v, "off|on") == 1;
  else fail(EXIT_USAGE, "unknown option %s; see verify/interop/README.md", n);
#undef IS
}

static struct peer_options parse_options(int argc, char **argv)
{
  struct peer_options o;
  memset(&o, 0, sizeof o);
  if (argc < 2)
    fail(EXIT_USAGE, "usage: peer pub|sub|ping|pong [--option value]...");
  o.verb = (enum peer_verb)choice("verb", argv[1], "pub|sub|ping|pong");
  bool echo = o.verb == VERB_PING || o.verb == VERB_PONG;
  o.topic = echo ? "rt/ping" : "rt/chatter";
  o.reply_topic = "rt/pong";
  o.bytes = echo;
  o.enclave = "/";
  o.reliable = true;
  o.depth = 10;
  o.size = echo ? 64 : -1;
  o.count = o.verb == VERB_PING ? 5000 : 0;
  o.warmup = 500;
  o.rate = 10;
  o.settle = 0.3;
  for (int i = 2; i < argc; i += 2) {
    if (i + 1 == argc)
      fail(EXIT_USAGE, "option %s lacks its value", argv[i]);
    set_option(&o, argv[i], argv[i + 1]);
  }
  if (echo && !o.bytes)
    fail(EXIT_USAGE, "%s knows --type bytes only", argv[1]);
  return o;
}

#endif
