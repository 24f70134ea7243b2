// SPDX-License-Identifier: Apache-2.0

// Gocp serves a folder of xDS resources (one proto3 JSON resource per file) over ADS with
// go-control-plane. It is the second, independent server of the integration tests.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	// The types that resources may hold, for the JSON decoder.
	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

var servedTypes = []string{
	resource.ListenerType, resource.RouteType, resource.ClusterType, resource.EndpointType,
}

// stamp says whether anything in the folder changed, without reading the files.
func stamp(dir string) (string, []string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", nil, err
	}
	sort.Strings(files)
	var b strings.Builder
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return "", nil, err
		}
		fmt.Fprintf(&b, "%s %d %d\n", file, info.ModTime().UnixNano(), info.Size())
	}
	return b.String(), files, nil
}

func load(files []string) (map[string][]types.Resource, error) {
	byType := map[string][]types.Resource{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var packed anypb.Any
		if err := protojson.Unmarshal(text, &packed); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		message, err := packed.UnmarshalNew()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		byType[packed.TypeUrl] = append(byType[packed.TypeUrl], message)
	}
	return byType, nil
}

// publish hands the folder's content to the cache as one snapshot, when it changed.
func publish(ctx context.Context, snapshots cache.SnapshotCache, node, dir, last string) (string, error) {
	now, files, err := stamp(dir)
	if err != nil || now == last {
		return last, err
	}
	byType, err := load(files)
	if err != nil {
		return now, err
	}
	all := map[string][]types.Resource{}
	for _, url := range servedTypes {
		all[url] = byType[url]
	}
	snapshot, err := cache.NewSnapshot(fmt.Sprint(time.Now().UnixNano()), all)
	if err != nil {
		return now, err
	}
	return now, snapshots.SetSnapshot(ctx, node, snapshot)
}

// sameNode gives every client the same resources.
type sameNode struct{}

const node = "any"

func (sameNode) ID(*core.Node) string { return node }

func main() {
	listen := flag.String("listen", "127.0.0.1:18000", "address to serve on")
	poll := flag.Duration("poll", 20*time.Millisecond, "how often to look at the folder")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: gocp [-listen ADDRESS] FOLDER")
	}
	ctx := context.Background()
	snapshots := cache.NewSnapshotCache(false, sameNode{}, nil)
	go watch(ctx, snapshots, flag.Arg(0), *poll)

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	grpcServer := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(grpcServer,
		server.NewServer(ctx, snapshots, nil))
	log.Printf("serving %s on %s", flag.Arg(0), *listen)
	log.Fatal(grpcServer.Serve(listener))
}

func watch(ctx context.Context, snapshots cache.SnapshotCache, dir string, poll time.Duration) {
	last := ""
	for {
		var err error
		// A file may vanish or be replaced between the look and the read: the next turn sees it whole.
		if last, err = publish(ctx, snapshots, node, dir, last); err != nil {
			log.Print(err)
		}
		time.Sleep(poll)
	}
}
