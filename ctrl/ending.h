// SPDX-License-Identifier: Apache-2.0
// Looks on while the process ends, after its drain. Its parts end in the control thread, one after
// the other, each within bounds of its own. What nevertheless waits for something that never comes
// is named in the log; and since nothing can be lost any more, the process then ends without it.
// Thread: ctrl; it has one of its own, which goes with the process.
#pragma once

#include <stdint.h>

#define ENDING_LOOK_MS 1000
// Looks at a part before it is named, and again after twice as many, and so on.
#define ENDING_LATE 3
#define ENDING_MOST 25 // before it is given up

// Without a thread for it nobody looks on. beat: called at each look, on that thread, so that a
// service manager waits for what has to end still, part after part; NULL = none does.
void ending_begin(uint32_t look_ms, void (*beat)(void));
// From here on it is this part that is waited for: a few words that stay.
void ending_part(const char *name);
