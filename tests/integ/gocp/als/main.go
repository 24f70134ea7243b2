// SPDX-License-Identifier: Apache-2.0

// Als is an access log service with go-control-plane's messages: it prints a line of JSON for each
// entry that it hears.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"os"

	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
)

type service struct {
	accesslog.UnimplementedAccessLogServiceServer
	out *json.Encoder
}

type line struct {
	Log     string `json:"log"`
	Path    string `json:"path"`
	Method  string `json:"method"`
	Code    uint32 `json:"code"`
	Status  string `json:"status"`
	Cluster string `json:"cluster"`
	Start   int64  `json:"start"`
}

func (s *service) StreamAccessLogs(stream accesslog.AccessLogService_StreamAccessLogsServer) error {
	name := ""
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&accesslog.StreamAccessLogsResponse{})
		}
		if err != nil {
			return err
		}
		if message.Identifier != nil {
			name = message.Identifier.LogName
		}
		for _, entry := range message.GetHttpLogs().GetLogEntry() {
			err := s.out.Encode(line{
				Log: name, Path: entry.Request.Path, Method: entry.Request.RequestMethod.String(),
				Code:    entry.Response.ResponseCode.GetValue(),
				Status:  entry.Response.ResponseHeaders[":status"],
				Cluster: entry.CommonProperties.UpstreamCluster,
				Start:   entry.CommonProperties.StartTime.GetSeconds(),
			})
			if err != nil {
				return err
			}
		}
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9001", "address to serve on")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	accesslog.RegisterAccessLogServiceServer(server, &service{out: json.NewEncoder(os.Stdout)})
	log.Fatal(server.Serve(listener))
}
