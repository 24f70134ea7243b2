// SPDX-License-Identifier: Apache-2.0
// What a faultlink does to the frames of one direction, read from words such as
// "loss=0.5% delay=20ms rate=200mbit queue=300".
// Thread: the program's one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct faults {
	double loss; // probabilities are from 0 to 1
	double burst_begin, burst_end; // Gilbert: each frame begins or ends a time of losing all
	double corrupt; // one bit flipped
	double forge; // one bit behind the IP header flipped, checksum made right again
	double duplicate;
	double reorder; // held back by up to reorder_ns, while later frames overtake
	uint64_t reorder_ns;
	uint64_t delay_ns;
	uint64_t jitter_ns; // up to so much more, in order
	uint64_t rate; // bits a second of the bottleneck; 0 = none
	uint64_t queue; // frames that wait for it; one more is dropped
	uint64_t dark_from_ns, dark_ns; // blackout: nothing at all passes
	uint64_t pause_every_ns, pause_ns; // frames wait for the end of the pause, in order
	uint64_t mtu; // of IP packets; 0 = any
	uint64_t silent; // 1: no ICMP tells of the MTU (a black hole)
};

// Changes what the text names and leaves the rest. 0, or -EINVAL; then *ret_word, which borrows
// from the text, is the word that is wrong.
[[nodiscard]] int faults_parse(struct faults *, const char *text, const char **ret_word);
