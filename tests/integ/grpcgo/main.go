// SPDX-License-Identifier: Apache-2.0

// Grpcgo makes calls on one channel of grpc-go, for the integration tests: with an xds: target it is
// another client of the xDS servers, and has TLS where its cluster does. Each line of its input is a batch
// of calls as JSON; for each it prints a line, which counts the answers by their text and the failures by theirs.
//
// As `grpcgo serve ADDRESS` it is a server whose listener and certificates come by xDS: each call gets its method's
// name back, and the name of the certificate that its client showed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscredentials "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds" // the resolver and the balancers, too
)

const callTimeout = 10 * time.Second

type batch struct {
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Count   int               `json:"count"`
}

type result struct {
	Answers  map[string]int `json:"answers"`
	Failures map[string]int `json:"failures"`
}

// plain leaves messages as they are.
type plain struct{}

func (plain) Name() string                    { return "plain" }
func (plain) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (plain) Unmarshal(b []byte, v any) error { *v.(*[]byte) = append([]byte{}, b...); return nil }

func (b batch) run(channel *grpc.ClientConn) result {
	found := result{map[string]int{}, map[string]int{}}
	for range b.Count {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		ctx = metadata.NewOutgoingContext(ctx, metadata.New(b.Headers))
		var request, answer []byte
		if err := channel.Invoke(ctx, b.Method, &request, &answer); err != nil {
			found.Failures[err.Error()]++
		} else {
			found.Answers[string(answer)]++
		}
		cancel()
	}
	return found
}

func answer(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	text := []byte(method + " to nobody")
	if from, ok := peer.FromContext(stream.Context()); ok {
		if tls, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(tls.State.PeerCertificates) > 0 {
			text = []byte(method + " to " + tls.State.PeerCertificates[0].Subject.CommonName)
		}
	}
	return stream.SendMsg(&text)
}

func serve(address string) error {
	creds, err := xdscredentials.NewServerCredentials(
		xdscredentials.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		return err
	}
	server, err := xds.NewGRPCServer(grpc.Creds(creds), grpc.ForceServerCodec(plain{}),
		grpc.UnknownServiceHandler(answer))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		log.Fatal(serve(os.Args[2]))
	}
	if len(os.Args) != 2 {
		log.Fatal("usage: grpcgo TARGET | grpcgo serve ADDRESS")
	}
	creds, err := xdscredentials.NewClientCredentials(
		xdscredentials.ClientOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		log.Fatal(err)
	}
	channel, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
	if err != nil {
		log.Fatal(err)
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var asked batch
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		line, err := json.Marshal(asked.run(channel))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
}
