// SPDX-License-Identifier: Apache-2.0
// A grace period (lb/slot.h) for memory that a driver frees on EAL's own thread. When the peer of a
// memif ends, DPDK 22.11 says that it is no longer connected, forgets the handler of its socket,
// and unmaps its rings, all at once; a worker that had been taken off its core in a burst would
// read them afterwards. So rte_intr_callback_unregister() of this file stands before DPDK's: on
// that thread it waits until each worker has passed a quiescent state, and has seen the first.
// Thread: ctrl, behind rte_eal_init(); EAL's own.
#pragma once

// Until it is called EAL's thread frees without waiting. Returns 0 or -errno.
[[nodiscard]] int eal_grace_begin(void);
