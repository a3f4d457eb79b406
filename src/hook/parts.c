/* Lists the parts of the library, and fills what core and the lower parts call upwards. */
#include "hook/core/hook_parts.h"
#include "hook/core/metadata.h"
#include "hook/core/resolve.h"
#include "hook/core/strings.h"
#include "hook/injected_calls.h"
#include "hook/mem/answers.h"
#include "hook/meta/facts.h"
#include "hook/meta/graph_nodes.h"
#include "hook/meta/kernels.h"
#include "hook/meta/params.h"
#include "hook/online/online.h"
#include "hook/range/capture.h"
#include "hook/range/library.h"
#include "hook/range/operator.h"
#include "hook/range/range.h"
#include "hook/sched/requests.h"
#include "hook/sched/sched.h"
#include "hook/stack/stack.h"
#include "hook/time/calibration.h"
#include "hook/time/collector.h"
#include "hook/time/cupti.h"
#include "hook/time/cupti_proxy.h"
#include "hook/time/event_timer.h"

const struct hook_part hook_parts[] = {
	{ "metadata", .start = meta_process },
	{ "facts", .start = facts_of_recording },
	{ "unknown functions", .start = resolve_declare, .forked = resolve_forked },
	{ "kernels", .forget = kernels_forget },
	{ "graphs", .forget = graph_nodes_forget },
	{ "arguments", .forget = params_forget, .functions_end = params_invalidate_all },
	{ "predictions", .forget = online_forget, .at_exit = history_file_at_exit },
	{ "device times", .context_ends = device_times_collect },
	{ "events", .forget = event_timer_forget, .at_exit = event_timer_at_exit },
	{ "calibration", .forget = calibration_forget },
	{ "CUPTI", .forked = cupti_forked, .at_exit = cupti_at_exit },
	{ "strings", .forget = strings_forget },
	{ "operators", .forget = operator_forget },
	{ "Python", .forget = python_forget },
	{ "stacks", .start = stack_start, .forget = stack_forget, .unloaded = stack_unloaded },
	{ "scheduler", .start = sched_start, .forget = sched_forget, .at_exit = sched_at_exit,
		.functions_end = sched_functions_end, .driver_begins = sched_driver_begins },
	{ "capture", .start = capture_start, .forget = capture_forget },
	{ "memory", .start = memory_start, .forget = memory_forget },
	{ NULL },
};

const struct hook_above hook_above = {
	.injected = injected_calls,
	.gate_launch = sched_launch,
	.gate_joined = sched_joined,
	.gate_passed = sched_passed,
	.gate_settling = sched_settling,
	.gate_settled = sched_settled,
	.timing_take = event_timer_take,
	.timing_end = event_timer_end,
	.given_read = params_given,
	.given_put = online_given,
	.graph_time = online_graph,
	.capture_saw = capture_saw,
	.stack_take = stack_take,
	.stack_look = stack_look,
	.library_look = library_look,
	.library_bound_by_audit = library_bound_by_audit,
	.cupti_answer = cupti_proxy_answer,
	.devices_known = online_start,
	.graph_made = online_graph_made,
	.request_begin = request_begin,
	.request_end = request_end,
};
