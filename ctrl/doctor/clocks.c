// SPDX-License-Identifier: Apache-2.0
// The clocks: what they cost, and whether they are right.
#include "ctrl/doctor/look.h"
#include "lb/base/path.h"

#include <string.h>
#include <time.h>

#define CLOCK_FILE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define BEGIN_S 1735689600 // 2025: nothing of ours is older

// Those that are read by a system call, or by a slow device.
static bool is_slow(const char *source)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		if (strcmp(source, slow[i]) == 0)
			return true;
	return false;
}

void check_clock_source(const struct doctor_host *h)
{
	char path[PATH_MAX], source[64];
	if (!look_line(path_under(h->root, path, CLOCK_FILE), source, sizeof(source)) ||
		!is_slow(source))
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"the kernel's clock is %s; each look at it costs a worker about a microsecond",
		source);
	doctor_fix(h->report, "echo tsc > " CLOCK_FILE
			      "; or tsc=reliable on the kernel's command line, where it is");
}

void check_clock_synchronised(const struct doctor_host *h)
{
	if (h->ops->synchronised(h->ctx) != 0)
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"the clock is not synchronised; certificates are judged and lines are logged by a "
		"time that drifts");
	doctor_fix(h->report, "timedatectl set-ntp true, or chronyd");
}

void check_clock_date(const struct doctor_host *h)
{
	time_t now = (time_t)h->now_s;
	char text[32];
	struct tm tm;
	if (now >= BEGIN_S || !gmtime_r(&now, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%d", &tm);
	doctor_find(h->report, DOCTOR_ERROR,
		"the clock says %s; certificates seem not to be valid yet", text);
	doctor_fix(h->report, "timedatectl set-time, or chronyc makestep");
}
