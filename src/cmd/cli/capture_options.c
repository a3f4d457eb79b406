/* Parses the options for the recorded part and for call stacks. */
#include "cmd/cli/capture_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bounded.h"
#include "cmd/cli/values.h"
#include "event/level.h"
#include "weir_options.h"

#define RANGE_MOST 63u

static int put_time(const struct options *o, const char *name, const char *word, struct bounded *to)
{
	uint64_t ns = 0;
	const int code = take_time(o, name, 1, UINT64_MAX, &ns);
	if (ns)
		bounded_printf(to, "%s=%" PRIu64 ",", word, ns);
	return code;
}

static int put_launches(const struct options *o, struct bounded *to)
{
	uint64_t count = 0;
	const int code = take_number(o, "until-launches", 1, INT64_MAX, &count);
	if (count)
		bounded_printf(to, WEIR_OPTION_launches "=%" PRIu64 ",", count);
	return code;
}

/* The text behind `head`, or NULL when it does not begin with it. */
static const char *behind(const char *text, const char *head)
{
	const size_t n = strlen(head);
	return strncmp(text, head, n) ? NULL : text + n;
}

static int put_capture(const struct options *o, struct bounded *to)
{
	struct step_numbers steps;
	const char *text = opt_str(o, "capture");
	if (!text)
		return 0;
	const char *range = behind(text, "range:"), *step = behind(text, "step:");
	if (range && (!*range || strlen(range) > RANGE_MOST || strchr(range, ',')))
		return complain(EXIT_USAGE,
			"--capture=%s: give a range's name of at most %u bytes without a comma: range:train, for example",
			text, RANGE_MOST);
	if (step && (!step_numbers_parse(step, &steps) || !steps.first))
		return complain(EXIT_USAGE,
			"--capture=%s: give the first and the last step, counted from 1: step:10-19, for example",
			text);
	if (!range && !step && strcmp(text, "profiler") != 0)
		return complain(
			EXIT_USAGE, "--capture=%s: give profiler, range:NAME or step:N-M", text);
	if (step)
		bounded_printf(to, WEIR_OPTION_capture "=step:%" PRIu32 "-%" PRIu32 ",",
			steps.first, steps.last);
	else
		bounded_printf(to, WEIR_OPTION_capture "=%s,", text);
	return 0;
}

int capture_options_take(struct capture_options *c, const struct options *o)
{
	struct bounded to = { .to = c->config, .size = sizeof c->config };
	int code = put_capture(o, &to);
	code = code ? code : put_time(o, "delay", WEIR_OPTION_delay, &to);
	code = code ? code : put_time(o, "duration", WEIR_OPTION_duration, &to);
	code = code ? code : put_launches(o, &to);
	if (code)
		return code;
	bounded_end(&to);
	c->wanted = *c->config;
	if (c->wanted && !strcmp(opt_str(o, "level"), "off"))
		return complain(EXIT_USAGE,
			"--level=off records nothing, so no part can be captured. Leave one of them out");
	return 0;
}

int stack_choice_take(const struct options *o, struct stack_choice *ret_choice, uint32_t *control)
{
	const char *what = opt_str(o, "stacks");
	struct stack_options stacks;
	*ret_choice = (struct stack_choice){ .asked = what };
	if (!what)
		return 0;
	if (!stack_options_parse(what, strlen(what), &stacks) || strlen(what) >= STACK_CHOICE_MOST)
		return complain(EXIT_USAGE,
			"--stacks=%s: give alloc, free, sync, launch, copy, set, graph "
			"and module, sample:N and bytes:SIZE (512 to 48K), with commas between",
			what);
	snprintf(ret_choice->text, sizeof ret_choice->text, "%s%.*s", *what ? "=" : "",
		STACK_CHOICE_MOST - 1, what);
	for (char *at = ret_choice->text; (at = strchr(at, ',')); at++)
		*at = '+'; /* commas stand between the settings of WEIR */
	*control |= stacks.control;
	return 0;
}
