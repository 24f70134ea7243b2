// SPDX-License-Identifier: Apache-2.0
// What the files of a look share.
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"
#include "lb/base/twheel.h"

#include <inttypes.h>
#include <string.h>

char *look_copy(struct look *l, const char *text)
{
	char *copy = strdup(text);
	l->failed = l->failed || !copy;
	return copy;
}

double look_age_s(const struct look *l, uint64_t ns)
{
	uint64_t now_ns = twheel_now(l->from->wheel);
	if (!ns)
		return -1;
	return now_ns > ns ? (double)(now_ns - ns) / (double)NS_PER_SECOND : 0;
}

void look_section_begin(struct look *l, const char *id, const char *title)
{
	fprintf(l->out, "<section id=\"%s\" aria-labelledby=\"%s-h\"><h2 id=\"%s-h\">%s</h2>", id,
		id, id, title);
}

void look_section_end(struct look *l, uint64_t n_left_out, const char *more)
{
	if (n_left_out)
		fprintf(l->out,
			"<p class=\"more\">%" PRIu64 " more are not shown. <code>%s</code> tells "
			"all.</p>",
			n_left_out, more);
	fputs("</section>", l->out);
}

void look_note(struct look *l, const char *text)
{
	fprintf(l->out, "<p class=\"none\">%s</p>", text);
}
