// SPDX-License-Identifier: Apache-2.0
// VLAN tags (IEEE 802.1Q) in frames as bytes. Knows no device.
// Thread: any.
#pragma once

#include <stdint.h>
#include <string.h>

#define VLAN_MAX 4094 // 4095 is reserved
#define VLAN_TAG 4 // bytes
#define VLAN_NONE (-1)
#define VLAN_MACS 12 // the tag is behind both addresses
#define VLAN_HEADER 18 // of Ethernet with a tag

// The VLAN that a frame names; 0 = it has a priority alone; VLAN_NONE = no tag.
static inline int vlan_of(const uint8_t *frame, uint32_t len)
{
	if (len < VLAN_HEADER || frame[12] != 0x81 || frame[13] != 0)
		return VLAN_NONE;
	return (frame[14] & 0xf) << 8 | frame[15];
}

// Of a frame with a tag: where it begins once that is taken out.
static inline uint8_t *vlan_strip(uint8_t *frame)
{
	memmove(frame + VLAN_TAG, frame, VLAN_MACS);
	return frame + VLAN_TAG;
}

// frame has room for a tag in front of it. Returns where it begins now. Priority 0.
static inline uint8_t *vlan_insert(uint8_t *frame, uint16_t vlan)
{
	uint8_t *p = frame - VLAN_TAG;
	memmove(p, frame, VLAN_MACS);
	p[12] = 0x81;
	p[13] = 0;
	p[14] = (uint8_t)(vlan >> 8);
	p[15] = (uint8_t)vlan;
	return p;
}
