// SPDX-License-Identifier: Apache-2.0
// The metrics: their names, types and meanings, in one list (docs/metrics.md has the same rows, and
// a test holds them together), and where their samples go.
// Thread: ctrl.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };

// X(id, type, name, labels, help). A counter's name is without "_total", an info's without "_info".
// Times are in seconds. Labels are separated by blanks.
#define METRICS(X)                                                                                 \
	X(BUILD, INFO, "shunt_build", "version", "The version that runs.")                         \
	X(START_TIME, GAUGE, "process_start_time_seconds", "", "When it started, in Unix time.")   \
	X(LOG_LOST, COUNTER, "shunt_log_lines_lost", "", "Lines of the log that found no room.")   \
	X(READY, GAUGE, "shunt_ready", "",                                                         \
		"1 while every frontend serves and nothing is drained.")                           \
	X(FRONTEND_UP, GAUGE, "shunt_frontend_up", "frontend",                                     \
		"1 while it has routes and a link.")                                               \
	X(FRONTEND_DRAINS, GAUGE, "shunt_frontend_draining", "frontend",                           \
		"1 from when an operator drains it until that is taken back.")                     \
	X(CONNECTIONS, COUNTER, "shunt_frontend_connections", "frontend",                          \
		"Client connections accepted.")                                                    \
	X(REQUESTS, COUNTER, "shunt_frontend_requests", "frontend", "Requests that came.")         \
	X(IN_FLIGHT, GAUGE, "shunt_frontend_requests_in_flight", "frontend",                       \
		"Requests that have not ended.")                                                   \
	X(ENDED, COUNTER, "shunt_frontend_requests_ended", "frontend cause",                       \
		"Requests by the cause of their end.")                                             \
	X(ANSWERS, COUNTER, "shunt_frontend_answers", "frontend protocol status",                  \
		"Requests by what their clients were answered with.")                              \
	X(BODIES_IN, COUNTER, "shunt_frontend_request_body_bytes", "frontend",                     \
		"Bytes of bodies that came with requests that are over.")                          \
	X(BODIES_OUT, COUNTER, "shunt_frontend_answer_body_bytes", "frontend",                     \
		"Bytes of bodies that their clients were answered with.")                          \
	X(REQUEST_TIME, HISTOGRAM, "shunt_frontend_request_duration_seconds", "frontend",          \
		"Time from a request's HEADERS to the last byte for its client.")                  \
	X(ADDED_TIME, HISTOGRAM, "shunt_frontend_added_duration_seconds", "frontend",              \
		"The part of it that neither backend nor client took.")                            \
	X(VHOST_REQUESTS, COUNTER, "shunt_virtual_host_requests", "virtual_host",                  \
		"Requests to a virtual host.")                                                     \
	X(VHOST_IN_FLIGHT, GAUGE, "shunt_virtual_host_requests_in_flight", "virtual_host",         \
		"Requests to it that have not ended.")                                             \
	X(VHOST_ENDED, COUNTER, "shunt_virtual_host_requests_ended", "virtual_host cause",         \
		"Requests to it by the cause of their end; a cause appears with its first one.")   \
	X(VHOST_ANSWERS, COUNTER, "shunt_virtual_host_answers", "virtual_host protocol status",    \
		"Requests to it by answer; an answer appears with its first one.")                 \
	X(VHOST_TIME, HISTOGRAM, "shunt_virtual_host_request_duration_seconds", "virtual_host",    \
		"Time from a request's HEADERS to the last byte for its client.")                  \
	X(CLUSTER_UP, GAUGE, "shunt_cluster_up", "cluster",                                        \
		"1 unless requests to it fail at once.")                                           \
	X(CLUSTER_ENDPOINTS, GAUGE, "shunt_cluster_endpoints", "cluster",                          \
		"Endpoints that it has.")                                                          \
	X(CLUSTER_READY, GAUGE, "shunt_cluster_endpoints_ready", "cluster",                        \
		"Endpoints that are connected, and neither ejected, unhealthy, draining nor "      \
		"down.")                                                                           \
	X(CLUSTER_FAILING, GAUGE, "shunt_cluster_endpoints_failing", "cluster",                    \
		"Endpoints that cannot be connected to, or are ejected or unhealthy.")             \
	X(CLUSTER_EJECTED, GAUGE, "shunt_cluster_endpoints_ejected", "cluster",                    \
		"Endpoints that outlier detection has ejected.")                                   \
	X(CLUSTER_UNHEALTHY, GAUGE, "shunt_cluster_endpoints_unhealthy", "cluster",                \
		"Endpoints that fail their active health checks.")                                 \
	X(CHECKS, COUNTER, "shunt_cluster_health_check_attempts", "cluster",                       \
		"Active health checks of its endpoints.")                                          \
	X(CHECKS_PASSED, COUNTER, "shunt_cluster_health_check_successes", "cluster",               \
		"Of these, those that passed.")                                                    \
	X(CHECKS_FAILED, COUNTER, "shunt_cluster_health_check_failures", "cluster",                \
		"Of these, those that failed.")                                                    \
	X(CHECKS_UNANSWERED, COUNTER, "shunt_cluster_health_check_network_failures", "cluster",    \
		"Of those that failed, those without a connection, or an answer in time.")         \
	X(EJECTIONS, COUNTER, "grpc_lb_outlier_detection_ejections_enforced",                      \
		"grpc_lb_backend_service grpc_lb_outlier_detection_detection_method",              \
		"Enforced outlier ejections.")                                                     \
	X(EJECTIONS_SPARED, COUNTER, "grpc_lb_outlier_detection_ejections_unenforced",             \
		"grpc_lb_backend_service grpc_lb_outlier_detection_detection_method "              \
		"grpc_lb_outlier_detection_unenforced_reason",                                     \
		"Unenforced outlier ejections; a reason appears with its first one.")              \
	X(WRR_FALLBACK, COUNTER, "grpc_lb_wrr_rr_fallback", "grpc_lb_backend_service",             \
		"Number of scheduler updates in which there were not enough endpoints with valid " \
		"weight.")                                                                         \
	X(WRR_NOT_YET, COUNTER, "grpc_lb_wrr_endpoint_weight_not_yet_usable",                      \
		"grpc_lb_backend_service",                                                         \
		"Number of endpoints from each scheduler update that don't yet have usable "       \
		"weight information.")                                                             \
	X(WRR_STALE, COUNTER, "grpc_lb_wrr_endpoint_weight_stale", "grpc_lb_backend_service",      \
		"Number of endpoints from each scheduler update whose latest weight is older "     \
		"than the expiration period.")                                                     \
	X(DISCONNECTIONS, COUNTER, "grpc_subchannel_disconnections", "grpc_lb_backend_service",    \
		"Number of times an endpoint of it becomes disconnected.")                         \
	X(CONNECTED, COUNTER, "grpc_subchannel_connection_attempts_succeeded",                     \
		"grpc_lb_backend_service", "Number of successful connection attempts.")            \
	X(CONNECT_FAILED, COUNTER, "grpc_subchannel_connection_attempts_failed",                   \
		"grpc_lb_backend_service", "Number of failed connection attempts.")                \
	X(CLUSTER_CONNECTIONS, GAUGE, "shunt_cluster_connections", "cluster",                      \
		"Connections to its endpoints.")                                                   \
	X(CLUSTER_REQUESTS, COUNTER, "shunt_cluster_requests", "cluster",                          \
		"Requests routed to it.")                                                          \
	X(CLUSTER_IN_FLIGHT, GAUGE, "shunt_cluster_requests_in_flight", "cluster",                 \
		"Requests of it that have not ended.")                                             \
	X(CLUSTER_QUEUED, GAUGE, "shunt_cluster_requests_queued", "cluster",                       \
		"Requests of it that wait for a backend or a time.")                               \
	X(CLUSTER_ENDED, COUNTER, "shunt_cluster_requests_ended", "cluster cause",                 \
		"Requests of it by the cause of their end; a cause appears with its first one.")   \
	X(CLUSTER_ANSWERS, COUNTER, "shunt_cluster_answers", "cluster protocol status",            \
		"Requests of it by answer; an answer appears with its first one.")                 \
	X(CLUSTER_BODIES_IN, COUNTER, "shunt_cluster_request_body_bytes", "cluster",               \
		"Bytes of bodies that came with requests of it that are over.")                    \
	X(CLUSTER_BODIES_OUT, COUNTER, "shunt_cluster_answer_body_bytes", "cluster",               \
		"Bytes of bodies that their clients were answered with.")                          \
	X(BREAKER_IN_FLIGHT, GAUGE, "shunt_cluster_breaker_requests", "cluster",                   \
		"Places that are taken in its circuit breaker.")                                   \
	X(BREAKER_LIMIT, GAUGE, "shunt_cluster_breaker_limit", "cluster",                          \
		"Places of its circuit breaker.")                                                  \
	X(CLUSTER_REQUEST_TIME, HISTOGRAM, "shunt_cluster_request_duration_seconds", "cluster",    \
		"Time from a request's HEADERS to the last byte for its client.")                  \
	X(CLUSTER_ATTEMPT_TIME, HISTOGRAM, "shunt_cluster_attempt_duration_seconds", "cluster",    \
		"Time from an attempt's HEADERS to its end, as its backend sees it.")              \
	X(CLUSTER_ADDED_TIME, HISTOGRAM, "shunt_cluster_added_duration_seconds", "cluster",        \
		"The part of a request's time that neither backend nor client took.")              \
	X(ENDPOINT_UP, GAUGE, "shunt_endpoint_up", "cluster leaf endpoint",                        \
		"1 while it is connected, and neither ejected, unhealthy, draining nor down.")     \
	X(ENDPOINT_EJECTED, GAUGE, "shunt_endpoint_ejected", "cluster leaf endpoint",              \
		"1 while outlier detection has ejected it.")                                       \
	X(ENDPOINT_UNHEALTHY, GAUGE, "shunt_endpoint_unhealthy", "cluster leaf endpoint",          \
		"1 while it fails its active health checks.")                                      \
	X(ENDPOINT_CONNECTIONS, GAUGE, "shunt_endpoint_connections", "cluster leaf endpoint",      \
		"Connections to it, those for other clusters included.")                           \
	X(ENDPOINT_REQUESTS, COUNTER, "shunt_endpoint_requests", "cluster leaf endpoint",          \
		"Requests sent to it.")                                                            \
	X(ENDPOINT_FAILURES, COUNTER, "shunt_endpoint_requests_failed", "cluster leaf endpoint",   \
		"Of these, those that outlier detection holds against it.")                        \
	X(LEFT_OUT, GAUGE, "shunt_metrics_left_out", "what",                                       \
		"What is above the bounds of a scrape and not told in it.")                        \
	X(WORKER_UP, GAUGE, "shunt_worker_up", "worker",                                           \
		"1 unless its last turn began more than a second ago.")                            \
	X(WORKER_BUSY, COUNTER, "shunt_worker_busy_seconds", "worker",                             \
		"Time in turns that found work.")                                                  \
	X(WORKER_IDLE, COUNTER, "shunt_worker_idle_seconds", "worker",                             \
		"Time in turns that found none, and asleep.")                                      \
	X(WORKER_TURNS, COUNTER, "shunt_worker_turns", "worker", "Turns of its loop.")             \
	X(WORKER_LONG_TURNS, COUNTER, "shunt_worker_long_turns", "worker",                         \
		"Turns of more than a millisecond.")                                               \
	X(WORKER_LONGEST, GAUGE, "shunt_worker_longest_turn_seconds", "worker",                    \
		"The longest turn since the start, or `clear counters`.")                          \
	X(WORKER_SNAPSHOT, GAUGE, "shunt_worker_snapshot_version", "worker",                       \
		"The configuration that it uses.")                                                 \
	X(WORKER_CLIENTS, GAUGE, "shunt_worker_client_connections", "worker",                      \
		"Client connections that it has.")                                                 \
	X(POOL_OBJECTS, GAUGE, "shunt_pool_objects", "worker pool", "Objects of the pool.")        \
	X(POOL_USED, GAUGE, "shunt_pool_used_objects", "worker pool", "Objects in use.")           \
	X(POOL_PEAK, GAUGE, "shunt_pool_peak_objects", "worker pool",                              \
		"The most in use since the start, or `clear counters`.")                           \
	X(RETRIES, COUNTER, "shunt_retries", "kind", "Attempts after a request's first one.")      \
	X(RETRIES_REFUSED, COUNTER, "shunt_retries_refused", "reason",                             \
		"Retries that a policy wanted and that were not made.")                            \
	X(QUEUED, COUNTER, "shunt_requests_queued", "for", "How often a request had to wait.")     \
	X(SESSIONS, COUNTER, "shunt_session_requests", "result",                                   \
		"Attempts that went where a session's cookie said, or set one.")                   \
	X(ACCESS, COUNTER, "shunt_access_decisions", "decision",                                   \
		"What access control decided of requests, each filter by itself.")                 \
	X(CONNECTS, COUNTER, "shunt_backend_connects", "", "Attempts to connect to backends.")     \
	X(CONNECT_FAILURES, COUNTER, "shunt_backend_connect_failures", "",                         \
		"Of these, those that failed.")                                                    \
	X(TCP_SENT, COUNTER, "shunt_tcp_sent_segments", "", "Segments sent.")                      \
	X(TCP_RECEIVED, COUNTER, "shunt_tcp_received_segments", "", "Segments received.")          \
	X(TCP_RESENT, COUNTER, "shunt_tcp_retransmitted_segments", "", "Segments sent again.")     \
	X(TCP_SENT_BYTES, COUNTER, "shunt_tcp_sent_bytes", "",                                     \
		"Bytes of payload, each when it was sent first.")                                  \
	X(TCP_RECEIVED_BYTES, COUNTER, "shunt_tcp_received_bytes", "",                             \
		"Bytes of payload, received in order.")                                            \
	X(ROUND_TRIPS, HISTOGRAM, "shunt_tcp_round_trip_seconds", "side",                          \
		"Smoothed round trip times of connections, each looked at every second.")          \
	X(EVENTS, COUNTER, "shunt_events", "layer event",                                          \
		"The counters of `show workers`, of all workers.")                                 \
	X(ACCESS_LINES, COUNTER, "shunt_access_log_lines", "",                                     \
		"Lines and entries of access logs that were written.")                             \
	X(ACCESS_DROPPED, COUNTER, "shunt_access_log_dropped", "reason",                           \
		"Lines and entries of access logs that were lost.")                                \
	X(LOG_UNOPENED, COUNTER, "shunt_log_reopen_failures", "log",                               \
		"Tries to open a log anew after SIGUSR1 that failed; one follows each second.")    \
	X(TRACE_SPANS, COUNTER, "shunt_trace_spans", "",                                           \
		"Spans that the collector of traces took.")                                        \
	X(TRACE_LOST, COUNTER, "shunt_trace_lost", "reason",                                       \
		"Traced requests, or spans of them, that were lost.")                              \
	X(PORT_UP, GAUGE, "shunt_port_up", "port device", "1 while it is there and has a link.")   \
	X(PORT_LINK_DOWNS, COUNTER, "shunt_port_link_downs", "port device",                        \
		"How often the link went.")                                                        \
	X(PORT_COUNTERS_OF, COUNTER, "shunt_port_events", "port device event",                     \
		"The counters of `show ports`: frames, bytes and losses.")                         \
	X(PORT_MEMBER_UP, GAUGE, "shunt_port_member_up", "port member",                            \
		"1 while this member of a bond carries frames or stands by to.")                   \
	X(PORT_MEMBER_DOWNS, COUNTER, "shunt_port_member_downs", "port member",                    \
		"How often its link or its device went.")                                          \
	X(GATEWAY_UP, GAUGE, "shunt_gateway_up", "port gateway",                                   \
		"1 while the gateway answers, of those that are watched.")                         \
	X(GATEWAY_DOWNS, COUNTER, "shunt_gateway_downs", "port gateway",                           \
		"How often it stopped to.")                                                        \
	X(SNAPSHOT, GAUGE, "shunt_snapshot_version", "", "The configuration published last.")      \
	X(SNAPSHOT_AGE, GAUGE, "shunt_snapshot_age_seconds", "", "Time since that was.")           \
	X(XDS_AGE, GAUGE, "shunt_xds_newest_resource_age_seconds", "grpc_xds_resource_type",       \
		"Time since the server's last resource of this type was accepted.")                \
	X(XDS_OLDEST, GAUGE, "shunt_xds_oldest_resource_age_seconds", "grpc_xds_resource_type",    \
		"The same of the one that has not been updated for longest.")                      \
	X(XDS_ACKS, COUNTER, "shunt_xds_acks", "grpc_xds_server", "Responses accepted.")           \
	X(XDS_NACKS, COUNTER, "shunt_xds_nacks", "grpc_xds_server", "Responses refused.")          \
	X(XDS_SINCE, GAUGE, "shunt_xds_server_state_seconds", "grpc_xds_server state",             \
		"How long the stream has been in this state.")                                     \
	X(XDS_STALE, GAUGE, "shunt_xds_stale_resources", "grpc_xds_server",                        \
		"Resources that serve from disk, or are absent as there, until the server speaks " \
		"of them.")                                                                        \
	X(XDS_KEPT, COUNTER, "shunt_xds_state_writes", "result",                                   \
		"Attempts to write the file in state_dir.")                                        \
	X(XDS_KEPT_FAILING, GAUGE, "shunt_xds_state_failing", "",                                  \
		"1 while the last attempt to write that file has failed.")                         \
	X(XDS_KEPT_AGE, GAUGE, "shunt_xds_state_age_seconds", "",                                  \
		"Time since that file was written by this process.")                               \
	X(XDS_CONNECTED, GAUGE, "grpc_xds_client_connected", "grpc_xds_server",                    \
		"Whether or not the xDS client currently has a working ADS stream to the xDS "     \
		"server.")                                                                         \
	X(XDS_FAILURES, COUNTER, "grpc_xds_client_server_failure", "grpc_xds_server",              \
		"Times that the xDS server went from healthy to unhealthy.")                       \
	X(XDS_VALID, COUNTER, "grpc_xds_client_resource_updates_valid",                            \
		"grpc_xds_server grpc_xds_resource_type",                                          \
		"Resources received that were considered valid, changed or not.")                  \
	X(XDS_INVALID, COUNTER, "grpc_xds_client_resource_updates_invalid",                        \
		"grpc_xds_server grpc_xds_resource_type",                                          \
		"Resources received that were considered invalid.")                                \
	X(XDS_RESOURCES, GAUGE, "grpc_xds_client_resources",                                       \
		"grpc_xds_authority grpc_xds_cache_state grpc_xds_resource_type",                  \
		"Number of xDS resources.")                                                        \
	X(CERTIFICATE_LEFT, GAUGE, "shunt_certificate_seconds_left", "provider kind",              \
		"Time until the first certificate of that kind expires; below 0 it has.")          \
	X(CERTIFICATE_LIFETIME, GAUGE, "shunt_certificate_lifetime_seconds", "provider kind",      \
		"How long that certificate is valid in all.")                                      \
	X(CERTIFICATE_VERSION, GAUGE, "shunt_certificate_version", "provider",                     \
		"What the provider has; 0: nothing was good yet.")                                 \
	X(CERTIFICATE_READINGS, COUNTER, "shunt_certificate_readings", "provider result",          \
		"How often the provider's files were read.")                                       \
	X(CERTIFICATE_FAILING, GAUGE, "shunt_certificate_failing", "provider",                     \
		"1 while the provider's files, as they were read last, cannot be taken.")          \
	X(TLS_CONTEXTS, GAUGE, "shunt_tls_contexts", "role state",                                 \
		"TLS contexts by what they do: connections of those that refuse fail.")            \
	X(TLS_CLIENT, COUNTER, "grpc_client_tls_handshakes",                                       \
		"grpc_tls_handshake_result grpc_tls_handshake_resumed",                            \
		"Handshakes with backends by how they ended.")                                     \
	X(TLS_SERVER, COUNTER, "grpc_server_tls_handshakes",                                       \
		"grpc_tls_handshake_result grpc_tls_handshake_resumed",                            \
		"Handshakes with clients by how they ended.")

#define X(id, type, name, labels, help) METRIC_ID_##id,
enum metric_id { METRICS(X) N_METRICS };
#undef X

struct metric {
	enum metric_type type;
	const char *name, *labels, *help; // as in the list
};
extern const struct metric metrics[N_METRICS];
const char *metric_type_name(const struct metric *); // "counter", …
// What a sample's name has behind the metric's: "_total", "_info", or "".
const char *metric_suffix(const struct metric *);

#define METRIC_MAX_LABELS 4
struct metric_label {
	const char *name, *value; // value: any bytes
};
struct metric_sample { // borrowed for the call
	const char *suffix; // "_bucket" and others of a histogram; else metric_suffix()
	struct metric_label labels[METRIC_MAX_LABELS];
	uint32_t n_labels;
	double value; // whole numbers below 2^53 are exact
};

// Where metrics go. All samples of a metric stand together, behind their head.
struct metric_sink {
	void (*head)(struct metric_sink *, const struct metric *);
	void (*sample)(struct metric_sink *, const struct metric *, const struct metric_sample *);
};
