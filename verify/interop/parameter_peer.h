/* Common part of the C and C++ parameter programs: values, parameters of a
 * server, commands and lines. README.md in this folder describes options and
 * lines. It contains no DDS. */
#ifndef PARAMETER_PEER_H
#define PARAMETER_PEER_H

#include <inttypes.h>

#include "node_peer.h"

enum { ITEMS_MAX = 8, TEXT_MAX = 64, NAMES_MAX = 16 };
enum { NOT_SET, BOOL, INTEGER, DOUBLE, STRING, BYTE_ARRAY, BOOL_ARRAY, INTEGER_ARRAY, DOUBLE_ARRAY, STRING_ARRAY, KINDS };

struct value {
  uint8_t kind;
  uint32_t count; /* items of an array */
  bool bools[ITEMS_MAX];
  int64_t integers[ITEMS_MAX];
  double doubles[ITEMS_MAX];
  uint8_t bytes[ITEMS_MAX];
  char texts[ITEMS_MAX][TEXT_MAX];
};

struct parameter {
  char name[TEXT_MAX];
  struct value value;
  bool read_only, is_ranged;
  int64_t from, to;
  uint64_t step;
  const char *description;
};

static const char *const kind_words[KINDS] = {
  "not_set", "bool", "integer", "double", "string", "byte_array", "bool_array", "integer_array", "double_array", "string_array" };

/* -- values as text ---------------------------------------------------------- */

static size_t add_item(char *to, size_t room, const struct value *v, uint32_t i)
{
  int size = 0;
  switch (v->kind) {
  case BOOL: case BOOL_ARRAY: size = snprintf(to, room, " %s", v->bools[i] ? "true" : "false"); break;
  case INTEGER: case INTEGER_ARRAY: size = snprintf(to, room, " %" PRId64, v->integers[i]); break;
  case DOUBLE: case DOUBLE_ARRAY: size = snprintf(to, room, " %.17g", v->doubles[i]); break;
  case STRING: case STRING_ARRAY: size = snprintf(to, room, " %s", v->texts[i]); break;
  case BYTE_ARRAY: size = snprintf(to, room, " %u", v->bytes[i]); break;
  }
  return size > 0 && (size_t)size < room ? (size_t)size : 0;
}

/* `integer 42`, `string_array a b` */
static const char *text_of(const struct value *v)
{
  static char text[1024];
  size_t at = (size_t)snprintf(text, sizeof text, "%s", v->kind < KINDS ? kind_words[v->kind] : "unknown");
  uint32_t count = v->kind == NOT_SET ? 0 : v->kind < BYTE_ARRAY ? 1 : v->count;
  for (uint32_t i = 0; i < count && i < ITEMS_MAX; i++)
    at += add_item(text + at, sizeof text - at, v, i);
  return text;
}

static bool read_item(struct value *v, uint32_t i, const char *word)
{
  char *end = NULL;
  switch (v->kind) {
  case BOOL: case BOOL_ARRAY:
    v->bools[i] = !strcmp(word, "true");
    return v->bools[i] || !strcmp(word, "false");
  case INTEGER: case INTEGER_ARRAY: v->integers[i] = strtoll(word, &end, 0); break;
  case DOUBLE: case DOUBLE_ARRAY: v->doubles[i] = strtod(word, &end); break;
  case STRING: case STRING_ARRAY: snprintf(v->texts[i], TEXT_MAX, "%s", word); return true;
  case BYTE_ARRAY: v->bytes[i] = (uint8_t)strtoul(word, &end, 0); break;
  }
  return end && !*end;
}

/* One `NAME KIND ITEM...` up to `;` or the end of the words that `strtok` hands out. */
static bool read_parameter(struct parameter *p)
{
  const char *name = strtok(NULL, " "), *kind = strtok(NULL, " ");
  memset(p, 0, sizeof *p);
  if (!name || !kind)
    return false;
  snprintf(p->name, sizeof p->name, "%s", name);
  while (p->value.kind < KINDS && strcmp(kind_words[p->value.kind], kind))
    p->value.kind++;
  if (p->value.kind == KINDS)
    return false;
  for (const char *word = strtok(NULL, " "); word && strcmp(word, ";"); word = strtok(NULL, " "))
    if (p->value.count == ITEMS_MAX || !read_item(&p->value, p->value.count++, word))
      return false;
  return true;
}

/* -- a server's parameters ----------------------------------------------------- */

static struct parameter own[NAMES_MAX];
static int own_count;

static void declare(const char *line, bool read_only, const char *description)
{
  char words[256];
  snprintf(words, sizeof words, "declare %s", line);
  strtok(words, " ");
  struct parameter *p = &own[own_count++];
  if (!read_parameter(p))
    fail(EXIT_USAGE, "declare %s", line);
  p->read_only = read_only;
  p->description = description;
}

static void declare_own(void)
{
  declare("flag bool true", false, "");
  declare("count integer 42", false, "how many");
  own[own_count - 1].is_ranged = true;
  own[own_count - 1].to = 100;
  own[own_count - 1].step = 2;
  declare("speed double 0.25", false, "");
  declare("title string r2", true, "of the robot");
  declare("arm.bytes byte_array 0 127 255", false, "");
  declare("arm.flags bool_array true false", false, "");
  declare("arm.left.integers integer_array -9223372036854775808 9223372036854775807", false, "");
  declare("arm.left.doubles double_array 0.1 -1e300", false, "");
  declare("texts string_array a bc", false, "");
}

static struct parameter *find_own(const char *name)
{
  for (int i = 0; i < own_count; i++)
    if (!strcmp(own[i].name, name))
      return &own[i];
  return NULL;
}

/* Reason to refuse the value; empty to accept it. */
static const char *refusal(const char *name, const struct value *v)
{
  const struct parameter *p = find_own(name);
  if (!p)
    return "not declared";
  if (p->read_only)
    return "read only";
  if (p->value.kind != v->kind)
    return "another type";
  if (p->is_ranged && (v->integers[0] < p->from || v->integers[0] > p->to))
    return "out of range";
  return "";
}

/* Whether a list of names with that prefix (NULL: any) contains this one. */
static bool is_listed(const char *name, const char *prefix, uint64_t depth)
{
  size_t length = prefix ? strlen(prefix) : 0;
  if (prefix && !strcmp(name, prefix))
    return true;
  if (prefix && (strncmp(name, prefix, length) || name[length] != '.'))
    return false;
  uint64_t parts = 1;
  for (const char *c = prefix ? name + length + 1 : name; *c; c++)
    parts += *c == '.';
  return depth == 0 || parts <= depth;
}

/* "arm.left" of "arm.left.doubles"; false if there is no dot. */
static bool prefix_of(const char *name, char prefix[TEXT_MAX])
{
  const char *dot = strrchr(name, '.');
  if (dot)
    snprintf(prefix, TEXT_MAX, "%.*s", (int)(dot - name), name);
  return dot != NULL;
}

/* -- commands of the client -------------------------------------------------- */

enum ask { ASK_GET, ASK_TYPES, ASK_DESCRIBE };

/* The stack implements these. */
static void ask_names(enum ask ask, const char *const *names, uint32_t count);
static void ask_list(const char *const *prefixes, uint32_t count, uint64_t depth);
static void ask_set(const struct parameter *parameters, uint32_t count, bool atomically);

static bool follow_order(char *line)
{
  const char *verb = strtok(line, " ");
  const char *words[NAMES_MAX];
  struct parameter parameters[NAMES_MAX];
  uint32_t count = 0;
  if (!verb)
    return false;
  if (!strcmp(verb, "set") || !strcmp(verb, "atomic")) {
    while (count < NAMES_MAX && read_parameter(&parameters[count]))
      count++;
    if (count)
      ask_set(parameters, count, *verb == 'a');
    return count > 0;
  }
  while (count < NAMES_MAX && (words[count] = strtok(NULL, " ")))
    count++;
  if (!strcmp(verb, "list") && count)
    ask_list(words + 1, count - 1, strtoull(words[0], NULL, 0));
  else if (!strcmp(verb, "get"))
    ask_names(ASK_GET, words, count);
  else if (!strcmp(verb, "types"))
    ask_names(ASK_TYPES, words, count);
  else if (!strcmp(verb, "describe"))
    ask_names(ASK_DESCRIBE, words, count);
  else
    return false;
  return true;
}

static void follow_orders(void)
{
  char line[512], words[512];
  while (take_order(line, sizeof line)) {
    memcpy(words, line, sizeof words);
    if (!follow_order(words))
      say("refused %s", line);
  }
}

#endif
