// SPDX-License-Identifier: Apache-2.0

// Churn serves a world of many clusters that never rests, over ADS with go-control-plane's snapshot
// cache. Change number k is made at a fixed time and is the same whoever makes it, so that a server
// that was killed and started again goes on where the other would be. On its output it tells when
// it sent which version of routes and endpoints.
//
// Route /N leads to cluster N alone. Its endpoints are at an address of its own and at one or both of
// two ports, which say whether N is even. Two more routes show which change is live: the address
// that answers has its number.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	routesName     = "routes"
	endpointMarker = "marker"
	firstPort      = 8080 // of even clusters and the next; odd ones have the two after them
	markerPort     = 8090
	maxRequests    = 100_000 // at once; the default of 1024 would be part of what is tested
	leastLimit     = 60
	maxChanges     = 1 << 14 // as many addresses have the markers
)

// world is what is served after some number of changes.
type world struct {
	n           int // clusters that routes lead to
	generation  []int
	policy      []cluster.Cluster_LbPolicy
	ports       []int // bits: the first, the second
	limit       []int // of the route's streams, in seconds above leastLimit
	routeMarker string
	// By type: what is there, and the number of the change that was the last one to it.
	clusters, endpoints, routes map[string]types.Resource
	changed                     map[resource.Type]int
}

func (w *world) name(i int) string { return fmt.Sprintf("c%d-%d", i, w.generation[i]) }

func newWorld(n int) *world {
	w := &world{n: n, generation: make([]int, n), policy: make([]cluster.Cluster_LbPolicy, n),
		ports: make([]int, n), limit: make([]int, n), clusters: map[string]types.Resource{},
		endpoints: map[string]types.Resource{}, routes: map[string]types.Resource{},
		changed: map[resource.Type]int{}}
	for i := range n {
		w.ports[i] = 1
		w.setCluster(i)
		w.setEndpoints(i)
	}
	w.clusters[endpointMarker] = newCluster(endpointMarker, cluster.Cluster_ROUND_ROBIN)
	w.endpoints[endpointMarker] = newMarker(endpointMarker, 0)
	w.setRouteMarker(0)
	w.setRoutes()
	return w
}

// change makes change number k. Of fifty, five are of the endpoints that mark themselves, five of a
// cluster's policy, three of a route; one puts a new cluster in the place of an old one, and one
// does so with the routes' marker; the others are of endpoints.
func (w *world) change(k int) {
	const step = 7919 // prime: everyone gets their turn
	i := k * step % w.n
	all := []resource.Type{resource.ClusterType, resource.EndpointType, resource.RouteType}
	touched := []resource.Type{resource.EndpointType}
	switch k % 50 {
	case 0, 10, 20, 30, 40:
		w.endpoints[endpointMarker] = newMarker(endpointMarker, k)
	case 3, 13, 23, 33, 43:
		w.policy[i] ^= cluster.Cluster_ROUND_ROBIN ^ cluster.Cluster_LEAST_REQUEST
		w.setCluster(i)
		touched = []resource.Type{resource.ClusterType}
	case 15, 25, 45:
		w.limit[i]++
		w.setRoutes()
		touched = []resource.Type{resource.RouteType}
	case 5:
		w.setRouteMarker(k)
		w.setRoutes()
		touched = all
	case 35:
		delete(w.clusters, w.name(i))
		delete(w.endpoints, w.name(i))
		w.generation[i]++
		w.setCluster(i)
		w.setEndpoints(i)
		w.setRoutes()
		touched = all
	default:
		w.ports[i] = w.ports[i]%3 + 1
		w.setEndpoints(i)
	}
	for _, url := range touched {
		w.changed[url] = k
	}
}

func (w *world) setCluster(i int) { w.clusters[w.name(i)] = newCluster(w.name(i), w.policy[i]) }

func (w *world) setEndpoints(i int) {
	var ports []int
	for bit := range 2 {
		if w.ports[i]>>bit&1 == 1 {
			ports = append(ports, firstPort+i%2*2+bit)
		}
	}
	address := fmt.Sprintf("10.82.%d.%d", 16+i>>8, i&255)
	w.endpoints[w.name(i)] = newEndpoints(w.name(i), address, ports...)
}

func newMarker(name string, k int) types.Resource {
	return newEndpoints(name, fmt.Sprintf("10.82.%d.%d", 64+k>>8, k&255), markerPort)
}

func (w *world) setRouteMarker(k int) {
	delete(w.clusters, w.routeMarker)
	delete(w.endpoints, w.routeMarker)
	w.routeMarker = fmt.Sprintf("marker-%d", k)
	w.clusters[w.routeMarker] = newCluster(w.routeMarker, cluster.Cluster_ROUND_ROBIN)
	w.endpoints[w.routeMarker] = newMarker(w.routeMarker, k)
}

func (w *world) setRoutes() {
	routes := []*route.Route{newRoute("/marker/endpoints", endpointMarker, 0),
		newRoute("/marker/routes", w.routeMarker, 0)}
	for i := range w.n {
		routes = append(routes, newRoute(fmt.Sprintf("/%d", i), w.name(i), w.limit[i]))
	}
	w.routes[routesName] = &route.RouteConfiguration{Name: routesName,
		VirtualHosts: []*route.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: routes}}}
}

func newRoute(path, target string, limit int) *route.Route {
	seconds := durationpb.Duration{Seconds: int64(leastLimit + limit)}
	return &route.Route{
		Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Path{Path: path}},
		Action: &route.Route_Route{Route: &route.RouteAction{
			MaxStreamDuration: &route.RouteAction_MaxStreamDuration{MaxStreamDuration: &seconds},
			ClusterSpecifier:  &route.RouteAction_Cluster{Cluster: target}}}}
}

func ads() *core.ConfigSource {
	return &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}
}

func newCluster(name string, policy cluster.Cluster_LbPolicy) types.Resource {
	return &cluster.Cluster{Name: name, LbPolicy: policy,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig:     &cluster.Cluster_EdsClusterConfig{EdsConfig: ads()},
		CircuitBreakers: &cluster.CircuitBreakers{Thresholds: []*cluster.CircuitBreakers_Thresholds{
			{MaxRequests: wrapperspb.UInt32(maxRequests)}}}}
}

func newEndpoints(name, address string, ports ...int) types.Resource {
	var members []*endpoint.LbEndpoint
	for _, port := range ports {
		socket := &core.SocketAddress{Address: address,
			PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)}}
		members = append(members, &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{
			Endpoint: &endpoint.Endpoint{Address: &core.Address{
				Address: &core.Address_SocketAddress{SocketAddress: socket}}}}})
	}
	return &endpoint.ClusterLoadAssignment{ClusterName: name,
		Endpoints: []*endpoint.LocalityLbEndpoints{{
			Locality:            &core.Locality{Region: "lab"},
			LoadBalancingWeight: wrapperspb.UInt32(1), LbEndpoints: members}}}
}

func packed(message proto.Message) *anypb.Any {
	found, err := anypb.New(message)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

func newListener() types.Resource {
	filter := &manager.HttpFilter{Name: "router",
		ConfigType: &manager.HttpFilter_TypedConfig{TypedConfig: packed(&router.Router{})}}
	return &listener.Listener{Name: "web", ApiListener: &listener.ApiListener{
		ApiListener: packed(&manager.HttpConnectionManager{StatPrefix: "web",
			HttpFilters: []*manager.HttpFilter{filter},
			RouteSpecifier: &manager.HttpConnectionManager_Rds{Rds: &manager.Rds{
				ConfigSource: ads(), RouteConfigName: routesName}}})}}
}

// snapshot gives each type the version of its own last change, as servers do that care.
func (w *world) snapshot() *cache.Snapshot {
	found := &cache.Snapshot{}
	set := func(kind types.ResponseType, url resource.Type, items map[string]types.Resource) {
		resources := cache.Resources{Version: fmt.Sprint(w.changed[url]),
			Items: make(map[string]types.ResourceWithTTL, len(items))}
		for name, item := range items {
			resources.Items[name] = types.ResourceWithTTL{Resource: item}
		}
		found.Resources[kind] = resources
	}
	set(types.Cluster, resource.ClusterType, w.clusters)
	set(types.Endpoint, resource.EndpointType, w.endpoints)
	set(types.Route, resource.RouteType, w.routes)
	set(types.Listener, resource.ListenerType, map[string]types.Resource{"web": newListener()})
	return found
}

// sameNode gives every client the same resources.
type sameNode struct{}

const node = "any"

func (sameNode) ID(*core.Node) string { return node }

func tell(url, version string) {
	if url == resource.RouteType || url == resource.EndpointType {
		fmt.Printf("sent %s %s %d\n", url, version, time.Now().UnixNano())
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:18000", "address to serve on")
	n := flag.Int("clusters", 1000, "how many clusters")
	epoch := flag.Int64("epoch", 0, "when change 0 was, in ns since 1970")
	every := flag.Duration("every", 10*time.Millisecond, "from one change to the next")
	last := flag.Int("last", 0, "the number of the last change")
	flag.Parse()
	if *last > maxChanges {
		log.Fatalf("more than %d changes", maxChanges)
	}
	ctx := context.Background()
	snapshots := cache.NewSnapshotCache(false, sameNode{}, nil)
	go churn(ctx, snapshots, newWorld(*n), time.Unix(0, *epoch), *every, *last)

	socket, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	grpcServer := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(grpcServer,
		server.NewServer(ctx, snapshots, server.CallbackFuncs{
			StreamResponseFunc: func(_ context.Context, _ int64, _ *discovery.DiscoveryRequest,
				response *discovery.DiscoveryResponse) {
				tell(response.TypeUrl, response.VersionInfo)
			},
			StreamDeltaResponseFunc: func(_ int64, _ *discovery.DeltaDiscoveryRequest,
				response *discovery.DeltaDiscoveryResponse) {
				tell(response.TypeUrl, response.SystemVersionInfo)
			},
		}))
	log.Fatal(grpcServer.Serve(socket))
}

// churn makes each change when its time has come; what is late by then goes into one snapshot.
func churn(ctx context.Context, snapshots cache.SnapshotCache, w *world, epoch time.Time,
	every time.Duration, last int) {
	for k, published := 0, -1; published < last; {
		for ; k < last && time.Since(epoch) >= time.Duration(k+1)*every; k++ {
			w.change(k + 1)
		}
		if k != published {
			if err := snapshots.SetSnapshot(ctx, node, w.snapshot()); err != nil {
				log.Fatal(err)
			}
			published = k
			fmt.Printf("set %d\n", k)
		}
		time.Sleep(time.Until(epoch.Add(time.Duration(k+1) * every)))
	}
}
