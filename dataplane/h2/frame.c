// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/frame.h"

#include "dataplane/h2/h2.h"

uint32_t h2_frame_prefix(const struct h2_frame *f)
{
	if (f->type > H2_HEADERS || !(f->flags & (H2_FLAG_PADDED | H2_FLAG_PRIORITY)))
		return 0;
	return (f->flags & H2_FLAG_PADDED ? 1u : 0u) +
	       (f->type == H2_HEADERS && f->flags & H2_FLAG_PRIORITY ? 5u : 0u);
}

enum id_rule { ID_ANY, ID_STREAM, ID_CONNECTION };

// RFC 9113 6.1 to 6.10. PRIORITY of a wrong length is an error of its stream only.
static const struct {
	enum id_rule id;
	uint32_t min, max;
} rules[H2_N_FRAME_TYPES] = {
	[H2_DATA] = {ID_STREAM, 0, H2_FRAME_MAX},
	[H2_HEADERS] = {ID_STREAM, 0, H2_FRAME_MAX},
	[H2_PRIORITY] = {ID_STREAM, 0, H2_FRAME_MAX},
	[H2_RST_STREAM] = {ID_STREAM, 4, 4},
	[H2_SETTINGS] = {ID_CONNECTION, 0, H2_FRAME_MAX},
	[H2_PUSH_PROMISE] = {ID_ANY, 0, H2_FRAME_MAX},
	[H2_PING] = {ID_CONNECTION, 8, 8},
	[H2_GOAWAY] = {ID_CONNECTION, 8, H2_FRAME_MAX},
	[H2_WINDOW_UPDATE] = {ID_ANY, 4, 4},
	[H2_CONTINUATION] = {ID_STREAM, 0, H2_FRAME_MAX},
};

uint32_t h2_frame_check(const struct h2_frame *f)
{
	if (f->length > H2_FRAME_MAX)
		return H2_FRAME_SIZE_ERROR;
	if (f->type >= H2_N_FRAME_TYPES)
		return H2_NO_ERROR;
	enum id_rule id = rules[f->type].id;
	if ((id == ID_STREAM && f->id == 0) || (id == ID_CONNECTION && f->id != 0))
		return H2_PROTOCOL_ERROR;
	if (f->length < rules[f->type].min || f->length > rules[f->type].max ||
		f->length < h2_frame_prefix(f))
		return H2_FRAME_SIZE_ERROR;
	if (f->type == H2_SETTINGS && (f->flags & H2_FLAG_ACK ? f->length != 0 : f->length % 6))
		return H2_FRAME_SIZE_ERROR;
	return H2_NO_ERROR;
}
