// SPDX-License-Identifier: Apache-2.0
// The columns of HAProxy's `show stat`, as of its version 2.6, whose places readers know by heart
// (management guide, 9.1). haproxy_field.h says what tags are.
// Thread: any.
#pragma once

// X(name, tags, type)
// clang-format off
#define HAPROXY_STAT_FIELDS(X) \
	X(pxname, "KNS", "str") X(svname, "KNS", "str") X(qcur, "MGP", "u32") \
	X(qmax, "MMP", "u32") X(scur, "MGP", "u32") X(smax, "MMP", "u32") \
	X(slim, "CLP", "u32") X(stot, "MCP", "u64") X(bin, "MCP", "u64") \
	X(bout, "MCP", "u64") X(dreq, "MCP", "u64") X(dresp, "MCP", "u64") \
	X(ereq, "MCP", "u64") X(econ, "MCP", "u64") X(eresp, "MCP", "u64") \
	X(wretr, "MCP", "u64") X(wredis, "MCP", "u64") X(status, "SGP", "str") \
	X(weight, "MaP", "u32") X(act, "SGP", "u32") X(bck, "SGP", "u32") \
	X(chkfail, "MCP", "u64") X(chkdown, "MCP", "u64") X(lastchg, "MAP", "u32") \
	X(downtime, "MCP", "u32") X(qlimit, "CGS", "u32") X(pid, "KGP", "u32") \
	X(iid, "KGS", "u32") X(sid, "KGS", "u32") X(throttle, "MaP", "u32") \
	X(lbtot, "MCP", "u64") X(tracked, "CNS", "str") X(type, "CGS", "u32") \
	X(rate, "MRP", "u32") X(rate_lim, "CLP", "u32") X(rate_max, "MMP", "u32") \
	X(check_status, "MOP", "str") X(check_code, "MOP", "u32") \
	X(check_duration, "MDP", "u64") X(hrsp_1xx, "MCP", "u64") X(hrsp_2xx, "MCP", "u64") \
	X(hrsp_3xx, "MCP", "u64") X(hrsp_4xx, "MCP", "u64") X(hrsp_5xx, "MCP", "u64") \
	X(hrsp_other, "MCP", "u64") X(hanafail, "MCP", "u64") X(req_rate, "MRP", "u32") \
	X(req_rate_max, "MMP", "u32") X(req_tot, "MCP", "u64") X(cli_abrt, "MCP", "u64") \
	X(srv_abrt, "MCP", "u64") X(comp_in, "MCP", "u64") X(comp_out, "MCP", "u64") \
	X(comp_byp, "MCP", "u64") X(comp_rsp, "MCP", "u64") X(lastsess, "MAP", "u32") \
	X(last_chk, "MOP", "str") X(last_agt, "MOP", "str") X(qtime, "MaP", "u32") \
	X(ctime, "MaP", "u32") X(rtime, "MaP", "u32") X(ttime, "MaP", "u32") \
	X(agent_status, "MOP", "str") X(agent_code, "MOP", "u32") \
	X(agent_duration, "MDP", "u64") X(check_desc, "MOP", "str") \
	X(agent_desc, "MOP", "str") X(check_rise, "CGS", "u32") X(check_fall, "CGS", "u32") \
	X(check_health, "CGS", "u32") X(agent_rise, "CGS", "u32") \
	X(agent_fall, "CGS", "u32") X(agent_health, "CGS", "u32") X(addr, "CGS", "str") \
	X(cookie, "CNS", "str") X(mode, "CGS", "str") X(algo, "CGS", "str") \
	X(conn_rate, "MRP", "u32") X(conn_rate_max, "MMP", "u32") X(conn_tot, "MCP", "u64") \
	X(intercepted, "MCP", "u64") X(dcon, "MCP", "u64") X(dses, "MCP", "u64") \
	X(wrew, "MCP", "u64") X(connect, "MCP", "u64") X(reuse, "MCP", "u64") \
	X(cache_lookups, "MCP", "u64") X(cache_hits, "MCP", "u64") X(srv_icur, "MGP", "u32") \
	X(src_ilim, "CLP", "u32") X(qtime_max, "MMP", "u32") X(ctime_max, "MMP", "u32") \
	X(rtime_max, "MMP", "u32") X(ttime_max, "MMP", "u32") X(eint, "MCP", "u64") \
	X(idle_conn_cur, "MGP", "u32") X(safe_conn_cur, "MGP", "u32") \
	X(used_conn_cur, "MGP", "u32") X(need_conn_est, "MGP", "u32") \
	X(uweight, "MaP", "u32") X(agg_server_status, "MGP", "u32") \
	X(agg_server_check_status, "MGP", "u32") X(agg_check_status, "MGP", "u32")
// clang-format on
