// SPDX-License-Identifier: Apache-2.0
// Pieces of resources for tests, with ' for ".
// Thread: any.
#pragma once

#define URL "type.googleapis.com/"
#define HTTP_FILTERS "envoy.extensions.filters.http."
#define HCM_TYPE "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
#define ROUTER_TYPE HTTP_FILTERS "router.v3.Router"
#define FAULT_TYPE HTTP_FILTERS "fault.v3.HTTPFault"
#define SESSION_TYPE HTTP_FILTERS "stateful_session.v3.StatefulSession"
#define PER_ROUTE_TYPE HTTP_FILTERS "stateful_session.v3.StatefulSessionPerRoute"
#define COOKIE_TYPE "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState"
#define FILTER_CONFIG_TYPE "envoy.config.route.v3.FilterConfig"
#define TYPED_STRUCT "xds.type.v3.TypedStruct"
#define OLD_TYPED_STRUCT "udpa.type.v1.TypedStruct"

// An Any; fields start with a comma.
#define ANY(type, fields) "{'@type':'" URL type "'" fields "}"
#define STRUCT_ANY(wrapper, type, fields)                                                          \
	ANY(wrapper, ",'typeUrl':'" URL type "','value':{" fields "}")

// Route configurations.
#define VHOST_AND(domains, routes, more)                                                           \
	"{'name':'r','virtualHosts':[{'name':'v','domains':[" domains "],'routes':[" routes        \
	"]" more "}]}"
#define VHOST(domains, routes) VHOST_AND(domains, routes, "")
#define ROUTE(match, action) VHOST("'*'", "{'match':{" match "}," action "}")
#define TO_C "'route':{'cluster':'c'}"
#define MATCH(match) ROUTE(match, TO_C)
#define HEADER(matcher) MATCH("'prefix':'/','headers':[{" matcher "}]")
#define STRING(matcher) HEADER("'name':'x','stringMatch':{" matcher "}")
#define FRACTION(fraction) MATCH("'prefix':'/','runtimeFraction':{" fraction "}")
#define ACTION(action) ROUTE("'prefix':'/'", "'route':{" action "}")
#define WITH(action) ACTION("'cluster':'c'," action)
#define WEIGHTED(weighted) ACTION("'weightedClusters':{" weighted "}")
#define OVERRIDES(entries) "'typedPerFilterConfig':{" entries "}"
#define OVERRIDE(any) ROUTE("'prefix':'/'", TO_C "," OVERRIDES("'f':" any))
#define ROUTE_0 "=virtual host \"v\": route 0: "
#define ROUTE_0_WARNS "virtual host \"v\": route 0: "

// Listeners.
#define ROUTER "{'name':'router','typedConfig':" ANY(ROUTER_TYPE, "") "}"
#define RDS "'rds':{'configSource':{'ads':{}},'routeConfigName':'r'}"
#define LISTENER(hcm) "{'name':'l','apiListener':{'apiListener':" ANY(HCM_TYPE, "," hcm) "}}"
#define FILTERS(list) LISTENER(RDS ",'httpFilters':[" list "]")
#define FILTER_AND(any, more) FILTERS("{'name':'f','typedConfig':" any more "}," ROUTER)
#define FILTER(any) FILTER_AND(any, "")
#define ROUTED(hcm) LISTENER(hcm ",'httpFilters':[" ROUTER "]")
#define FILTER_F "=api_listener: http filter \"f\": "

// Socket listeners.
#define SOCKET_LISTENER(more)                                                                      \
	"{'name':'l','address':{'socketAddress':{'address':'0.0.0.0','portValue':1}}" more "}"
#define CHAIN_OF(hcm) "'filters':[{'name':'hcm','typedConfig':" ANY(HCM_TYPE, "," hcm) "}]"
#define CHAIN_FILTERS CHAIN_OF(RDS ",'httpFilters':[" ROUTER "]")
