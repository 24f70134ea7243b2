// SPDX-License-Identifier: Apache-2.0
// DPDK's telemetry socket, out of reach while a device is closed. Threads of DPDK's read devices
// for whoever asks there, without a lock, and one that is closed under them ends the process; DPDK
// 22.11 has no call that stops them.
// Thread: any.
#pragma once

// Takes the socket's name away, hangs up on everybody, and waits until nobody is answered any more:
// some milliseconds, a second at most. Calls nest. Without a socket nothing happens.
void telemetry_socket_hide(void);
// Whoever asks again is answered, once each telemetry_socket_hide() has its own.
void telemetry_socket_show(void);
// Hides it for good, and removes it.
void telemetry_socket_end(void);
