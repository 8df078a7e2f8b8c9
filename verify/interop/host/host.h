/* Common part of the C and C++ programs of `cargo xtask bench host`: options,
 * the traffic and its counters, the lines. host.rs is the same in Rust. Plain
 * C that also compiles as C++. A stack implements the functions under "the
 * stack" and calls traffic_receive() where it receives. */
#ifndef HOST_H
#define HOST_H

#include <inttypes.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../peer.h"

/* Options that only one program has: true if it took this one. */
#ifndef HOST_OPTION
#define HOST_OPTION(name, value) false
#endif
/* What the main thread does after a verb whose process goes on. */
#ifndef HOST_REST
#define HOST_REST() pause()
#endif

/* A text holds its numbers in 16 hexadecimal digits each. */
enum { SIZE_MIN = 32, TEXT_MIN = 48, HOST_UNSUPPORTED = 5 };
enum host_verb { HOST_PING, HOST_PONG, HOST_PUB, HOST_SUB, HOST_INTRA, HOST_MEET, HOST_NODES, HOST_FORWARD };

static const int64_t FAR = INT64_MAX;

static struct host_options {
  enum host_verb verb;
  const char *topic, *to;   /* topic that `forward` publishes on */
  size_t size;
  long count, warmup, rate;
  bool loan, poll, keep_all;
  bool text, best_effort, transient_local, lock_memory;
  long depth, deadline_ms;  /* 0 is no deadline */
  const char *samples;      /* file for number and latency of each message */
  long subscribers, nodes, first, of;
  int64_t timeout, settle;
} host;

static void host_defaults(void)
{
  host.topic = "host";
  host.to = "host_on";
  host.size = 64;
  host.count = 1000;
  host.warmup = 100;
  host.depth = 10;
  host.subscribers = host.nodes = host.of = 1;
  host.timeout = 20000000000;
  host.settle = 200000000;
}

static void host_parse(int argc, char **argv)
{
  if (argc < 2 || argc % 2)
    fail(EXIT_USAGE, "usage: VERB [--OPTION VALUE]..., see verify/interop/README.md");
  host_defaults();
  host.verb = (enum host_verb)choice("verb", argv[1], "ping|pong|pub|sub|intra|meet|nodes|forward");
  for (int i = 2; i + 1 < argc; i += 2) {
    const char *n = argv[i], *v = argv[i + 1];
    if (!strcmp(n, "--topic")) host.topic = v;
    else if (!strcmp(n, "--to")) host.to = v;
    else if (!strcmp(n, "--size")) host.size = (size_t)number(n, v);
    else if (!strcmp(n, "--count")) host.count = (long)number(n, v);
    else if (!strcmp(n, "--warmup")) host.warmup = (long)number(n, v);
    else if (!strcmp(n, "--rate")) host.rate = (long)number(n, v);
    else if (!strcmp(n, "--loan")) host.loan = choice(n, v, "no|yes") == 1;
    else if (!strcmp(n, "--wait")) host.poll = choice(n, v, "block|poll") == 1;
    else if (!strcmp(n, "--history")) host.keep_all = choice(n, v, "keep_last|keep_all") == 1;
    else if (!strcmp(n, "--type")) host.text = choice(n, v, "bytes|string") == 1;
    else if (!strcmp(n, "--reliability")) host.best_effort = choice(n, v, "reliable|best_effort") == 1;
    else if (!strcmp(n, "--durability")) host.transient_local = choice(n, v, "volatile|transient_local") == 1;
    else if (!strcmp(n, "--depth")) host.depth = (long)number(n, v);
    else if (!strcmp(n, "--deadline")) host.deadline_ms = (long)number(n, v);
    else if (!strcmp(n, "--lock-memory")) host.lock_memory = choice(n, v, "no|yes") == 1;
    else if (!strcmp(n, "--samples")) host.samples = v;
    else if (!strcmp(n, "--settle")) host.settle = (int64_t)number(n, v) * 1000000;
    else if (!strcmp(n, "--subscribers")) host.subscribers = (long)number(n, v);
    else if (!strcmp(n, "--nodes")) host.nodes = (long)number(n, v);
    else if (!strcmp(n, "--first")) host.first = (long)number(n, v);
    else if (!strcmp(n, "--of")) host.of = (long)number(n, v);
    else if (!strcmp(n, "--timeout")) host.timeout = seconds(number(n, v));
    else if (HOST_OPTION(n, v)) continue;
    else fail(EXIT_USAGE, "%s: no such option", n);
  }
  size_t least = host.text ? TEXT_MIN : SIZE_MIN;
  if (host.size < least)
    host.size = least;
}

static long host_total(void)
{
  return host.warmup + host.count;
}

/* Until that time, without slices, which would cost CPU time. */
static void sleep_until_exactly(int64_t moment)
{
  struct timespec t = { (time_t)(moment / 1000000000), (long)(moment % 1000000000) };
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
    ;
}

/* -- the stack ----------------------------------------------------------------- */

/* One node with at most one writer and one reader; NULL is none. */
static void stack_open(const char *out, const char *in);
/* Publishes the payload of traffic_fill(). */
static void stack_publish(void);
static void stack_matched(long *readers, long *writers);
/* Opens one more node in this process. */
static void stack_add_node(const char *out, const char *in);

/* -- traffic ------------------------------------------------------------------- */

struct moment { int64_t wall, cpu; };
struct heard { uint64_t seq; int64_t took; };

static struct {
  pthread_mutex_t lock;
  sem_t changed;            /* the goal is reached, or a match changed */
  uint64_t sent, last_seq, last_stamp, goal;
  int64_t *took, last_at;
  long messages, lost, torn;
  struct moment start, end;
  struct heard *all;        /* with --samples: every received message, including duplicates */
  size_t all_count, all_max;
  const char *path;
} traffic;

static uint64_t word_get(const uint8_t *bytes)
{
  uint64_t value = 0;
  if (!host.text) {
    memcpy(&value, bytes, 8);
    return value;
  }
  for (int i = 0; i < 16; i++)
    value = value << 4 | (uint64_t)(bytes[i] <= '9' ? bytes[i] - '0' : bytes[i] - 'a' + 10);
  return value;
}

static void word_put(uint8_t *bytes, uint64_t value)
{
  if (!host.text) {
    memcpy(bytes, &value, 8);
    return;
  }
  for (int i = 15; i >= 0; i--, value >>= 4)
    bytes[i] = (uint8_t)"0123456789abcdef"[value & 15];
}

static struct moment moment_now(void)
{
  struct timespec t;
  struct moment m;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  m.wall = now_ns();
  m.cpu = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
  return m;
}

/* Handles a received message with its delivery path. True: send the payload
 * of traffic_fill() now. */
static bool traffic_receive(const uint8_t *bytes, size_t size, const char *path)
{
  int64_t now = now_ns();
  uint64_t seq = 0, stamp = 0, again = 0;
  size_t width = host.text ? 16 : 8;
  if (size == host.size) {
    seq = word_get(bytes);
    stamp = word_get(bytes + width);
    again = word_get(bytes + size - width);
  }
  pthread_mutex_lock(&traffic.lock);
  if (size != host.size || seq != again) {
    traffic.torn++;
    pthread_mutex_unlock(&traffic.lock);
    return false;
  }
  traffic.path = path;
  if (traffic.all_count < traffic.all_max && seq > (uint64_t)host.warmup) {
    struct heard one = { seq - (uint64_t)host.warmup, now - (int64_t)stamp };
    traffic.all[traffic.all_count++] = one;
  }
  /* A duplicate or reordered message counts only in the samples. */
  if (seq <= traffic.last_seq) {
    pthread_mutex_unlock(&traffic.lock);
    return false;
  }
  if (seq > traffic.last_seq + 1)
    traffic.lost += (long)(seq - traffic.last_seq - 1);
  traffic.last_seq = seq;
  traffic.last_stamp = stamp;
  traffic.last_at = now;
  if (seq > (uint64_t)host.warmup && traffic.messages < host.count) {
    if (!traffic.messages)
      traffic.start = moment_now();
    traffic.took[traffic.messages++] = now - (int64_t)stamp;
  }
  if (seq == (uint64_t)host_total())
    traffic.end = moment_now();
  bool over = seq >= traffic.goal;
  pthread_mutex_unlock(&traffic.lock);
  if (over)
    sem_post(&traffic.changed);
  return host.verb == HOST_PONG || host.verb == HOST_FORWARD || (host.verb == HOST_PING && !host.rate && seq < (uint64_t)host_total());
}

/* Number and timestamp of the next message. A pong or a forwarded message has
 * those of the received one. */
static void traffic_fill(uint8_t *bytes)
{
  uint64_t seq, stamp;
  pthread_mutex_lock(&traffic.lock);
  if (host.verb == HOST_PONG || host.verb == HOST_FORWARD) {
    seq = traffic.last_seq;
    stamp = traffic.last_stamp;
  } else {
    seq = ++traffic.sent;
    stamp = (uint64_t)now_ns();
  }
  pthread_mutex_unlock(&traffic.lock);
  size_t width = host.text ? 16 : 8;
  word_put(bytes, seq);
  word_put(bytes + width, stamp);
  word_put(bytes + host.size - width, seq);
}

static bool traffic_is_over(void)
{
  pthread_mutex_lock(&traffic.lock);
  bool over = traffic.last_seq >= traffic.goal;
  pthread_mutex_unlock(&traffic.lock);
  return over;
}

static void traffic_goal(uint64_t seq)
{
  pthread_mutex_lock(&traffic.lock);
  traffic.goal = seq;
  pthread_mutex_unlock(&traffic.lock);
}

/* Sleeps until that time or until the goal is reached. */
static void traffic_wait(int64_t until)
{
  while (!traffic_is_over() && now_ns() < until) {
    struct timespec t = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
    if (until == FAR)
      sem_wait(&traffic.changed);
    else
      sem_clockwait(&traffic.changed, CLOCK_MONOTONIC, &t);
  }
}

static double ms_between(int64_t from, int64_t to)
{
  return (double)(to - from) / 1e6;
}

/* Written before the summary, so that the file is complete when the summary
 * is read. */
static void traffic_write_samples(void)
{
  FILE *file = fopen(host.samples, "w");
  if (!file)
    fail(EXIT_USAGE, "--samples %s: %s", host.samples, strerror(errno));
  fprintf(file, "sequence,latency_ns\n");
  for (size_t i = 0; i < traffic.all_count; i++)
    fprintf(file, "%" PRIu64 ",%" PRId64 "\n", traffic.all[i].seq, traffic.all[i].took);
  if (fclose(file))
    fail(EXIT_USAGE, "--samples %s: %s", host.samples, strerror(errno));
}

static void traffic_report(void)
{
  if (host.samples)
    traffic_write_samples();
  pthread_mutex_lock(&traffic.lock);
  long n = traffic.messages;
  int64_t *l = traffic.took;
  if (!traffic.end.wall) {
    traffic.end = moment_now();
    traffic.end.wall = traffic.last_at;
  }
  if (!n)
    traffic.start = traffic.end, l[0] = 0;
  qsort(l, (size_t)n, sizeof *l, compare_ns);
  say("took count=%ld min=%.3f p50=%.3f p95=%.3f p99=%.3f max=%.3f lost=%ld torn=%ld wall_ms=%.3f cpu_ms=%.3f path=%s", n,
      l[0] / 1e3, l[n / 2] / 1e3, l[n * 95 / 100] / 1e3, l[n * 99 / 100] / 1e3, l[n ? n - 1 : 0] / 1e3,
      traffic.lost + host_total() - (long)traffic.last_seq, traffic.torn,
      ms_between(traffic.start.wall, traffic.end.wall), ms_between(traffic.start.cpu, traffic.end.cpu), traffic.path);
  pthread_mutex_unlock(&traffic.lock);
}

/* -- verbs --------------------------------------------------------------------- */

static const char *host_topic_of(const char *topic, const char *end)
{
  char *name = (char *)malloc(256);
  snprintf(name, 256, "%s_%s", topic, end);
  return name;
}

static const char *host_topic(const char *end, long index)
{
  if (index < 0)
    return host_topic_of(host.topic, end);
  char *name = (char *)malloc(256);
  snprintf(name, 256, "%s_%s%ld", host.topic, end, index % (host.of > 0 ? host.of : 1));
  return name;
}

static void host_wait_matched(long readers, long writers, int64_t until)
{
  long r, w;
  for (;;) {
    stack_matched(&r, &w);
    if (r >= readers && w >= writers)
      return;
    if (now_ns() >= until)
      fail(EXIT_TIME, "matched %ld of %ld readers and %ld of %ld writers in time", r, readers, w, writers);
    struct timespec t = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
    sem_clockwait(&traffic.changed, CLOCK_MONOTONIC, &t);
  }
}

static void host_ping(int64_t until)
{
  traffic_wait(now_ns() + host.settle);
  traffic_goal((uint64_t)host_total());
  if (!host.rate) {
    stack_publish();
  } else {
    int64_t start = now_ns();
    for (long i = 0; i < host_total(); i++) {
      sleep_until_exactly(start + i * 1000000000 / host.rate);
      stack_publish();
    }
  }
  traffic_wait(until);
  traffic_report();
}

static void host_pub(void)
{
  traffic_wait(now_ns() + host.settle);
  int64_t begin = now_ns();
  struct moment start = moment_now();
  for (long i = 0; i < host_total(); i++) {
    if (i == host.warmup)
      start = moment_now();
    if (host.rate)
      sleep_until_exactly(begin + i * 1000000000 / host.rate);
    stack_publish();
  }
  struct moment end = moment_now();
  say("sent count=%ld wall_ms=%.3f cpu_ms=%.3f", host.count, ms_between(start.wall, end.wall),
      ms_between(start.cpu, end.cpu));
}

/* A subscription without messages for this long counts the missing ones as
 * lost. Best-effort messages are not retransmitted. */
static int64_t host_quiet(void)
{
  int64_t least = host.best_effort ? 1000000000 : 3000000000, periods = host.rate ? 3000000000 / host.rate : 0;
  return periods > least ? periods : least;
}

static void host_sub(int64_t until)
{
  uint64_t before = 0, heard = 0;
  traffic_goal((uint64_t)host_total());
  do {
    before = heard;
    traffic_wait(now_ns() + host_quiet());
    pthread_mutex_lock(&traffic.lock);
    heard = traffic.last_seq;
    pthread_mutex_unlock(&traffic.lock);
  } while (!traffic_is_over() && (heard != before || (!heard && now_ns() < until)));
  traffic_report();
}

static void host_intra(int64_t until)
{
  traffic_wait(now_ns() + host.settle);
  int64_t begin = now_ns();
  for (long i = 1; i <= host_total(); i++) {
    if (host.rate)
      sleep_until_exactly(begin + (i - 1) * 1000000000 / host.rate);
    traffic_goal((uint64_t)i);
    stack_publish();
    traffic_wait(until);
    if (!traffic_is_over())
      fail(EXIT_TIME, "message %ld did not come", i);
  }
  traffic_report();
}

static int host_main(int argc, char **argv)
{
  host_parse(argc, argv);
  if (host.lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE))
    fail(EXIT_USAGE, "--lock-memory: %s", strerror(errno));
  traffic.took = (int64_t *)calloc((size_t)host.count + 1, sizeof *traffic.took);
  if (host.samples) {
    traffic.all_max = 2 * (size_t)host.count + 16;
    traffic.all = (struct heard *)calloc(traffic.all_max, sizeof *traffic.all);
  }
  pthread_mutex_init(&traffic.lock, NULL);
  sem_init(&traffic.changed, 0, 0);
  traffic.goal = UINT64_MAX;
  traffic.path = "none";
  int64_t until = now_ns() + host.timeout;
  switch (host.verb) {
  case HOST_PING:
    stack_open(host_topic("ping", -1), host_topic("pong", -1));
    say("ready");
    host_wait_matched(1, 1, until);
    host_ping(until);
    return EXIT_OK;
  case HOST_PONG:
    traffic_goal((uint64_t)host_total());
    stack_open(host_topic("pong", -1), host_topic("ping", -1));
    say("ready");
    traffic_wait(FAR);
    traffic_report();
    break;
  case HOST_PUB:
    stack_open(host_topic("flow", -1), NULL);
    say("ready");
    host_wait_matched(host.subscribers, 0, until);
    host_pub();
    break;
  case HOST_SUB:
    stack_open(NULL, host_topic("flow", -1));
    say("ready");
    host_sub(until);
    break;
  case HOST_INTRA:
    stack_open(host_topic("flow", -1), host_topic("flow", -1));
    say("ready");
    host_wait_matched(host.subscribers, 1, until);
    host_intra(until);
    return EXIT_OK;
  case HOST_MEET:
    stack_open(host_topic("flow", -1), host_topic("flow", -1));
    say("ready");
    host_wait_matched(host.of, host.of, until);
    say("met at=%lld", (long long)now_ns());
    break;
  case HOST_FORWARD:
    stack_open(host_topic_of(host.to, "flow"), host_topic("flow", -1));
    say("ready");
    /* The publisher starts later. */
    host_wait_matched(1, 0, until);
    say("matched");
    break;
  case HOST_NODES:
    for (long i = 0; i < host.nodes; i++)
      stack_add_node(host_topic("node", host.first + i), host_topic("node", host.first + i + 1));
    say("ready");
    break;
  default:
    break;
  }
  /* The other side may still need a retransmission. The parent process ends
   * this one. */
  for (;;)
    HOST_REST();
}

#endif
