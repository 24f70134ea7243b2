// SPDX-License-Identifier: Apache-2.0

// Grpcgo makes calls on one channel of grpc-go, for the integration tests: with an xds: target it is
// another client of the xDS servers, and has TLS where its cluster does. Each line of its input is a batch
// of calls as JSON; for each it prints a line, which counts the answers by their text and the failures by theirs.
// What is the request over again, if that has bytes, counts as "echo".
//
// As `grpcgo serve ADDRESS` it is a server whose listener and certificates come by xDS: each call gets its request back,
// or for an empty one its method's name, and the name of the certificate that its client showed with the version of TLS.
//
// With FOLDER and VERSION behind, neither has xDS: ca.pem and back.pem or client.pem with their keys are in the folder,
// and TLS is of that version, 1.2 or 1.3.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscredentials "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds" // the resolver and the balancers, too
)

const (
	callTimeout = 10 * time.Second
	serverName  = "front.example" // without xDS
)

type batch struct {
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Count   int               `json:"count"`
	Bytes   int               `json:"bytes"` // of each request
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

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func (b batch) run(channel *grpc.ClientConn) result {
	found := result{map[string]int{}, map[string]int{}}
	random := rand.NewChaCha8([32]byte{1})
	request := make([]byte, b.Bytes)
	for range b.Count {
		must(random.Read(request))
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		ctx = metadata.NewOutgoingContext(ctx, metadata.New(b.Headers))
		var answer []byte
		if err := channel.Invoke(ctx, b.Method, &request, &answer); err != nil {
			found.Failures[err.Error()]++
		} else if len(request) > 0 && bytes.Equal(request, answer) {
			found.Answers["echo"]++
		} else if len(request) > 0 {
			found.Failures["other bytes"]++
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
	if len(request) > 0 {
		return stream.SendMsg(&request)
	}
	text := []byte(method + " to nobody")
	if from, ok := peer.FromContext(stream.Context()); ok {
		if info, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			text = []byte(method + " to " + info.State.PeerCertificates[0].Subject.CommonName + " by " +
				tls.VersionName(info.State.Version))
		}
	}
	return stream.SendMsg(&text)
}

// files are the credentials of who has no xDS.
func files(own, folder, version string) credentials.TransportCredentials {
	pair := must(tls.LoadX509KeyPair(filepath.Join(folder, own+".pem"), filepath.Join(folder, own+".key")))
	cas := x509.NewCertPool()
	if !cas.AppendCertsFromPEM(must(os.ReadFile(filepath.Join(folder, "ca.pem")))) {
		log.Fatal("ca.pem: no certificate")
	}
	number := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: cas, ClientCAs: cas, ServerName: serverName,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: number, MaxVersion: number,
	})
}

type server interface{ Serve(net.Listener) error }

func newServer(more []string) server {
	options := []grpc.ServerOption{grpc.ForceServerCodec(plain{}), grpc.UnknownServiceHandler(answer)}
	if len(more) > 0 {
		return grpc.NewServer(append(options, grpc.Creds(files("back", more[0], more[1])))...)
	}
	creds := must(xdscredentials.NewServerCredentials(
		xdscredentials.ServerOptions{FallbackCreds: insecure.NewCredentials()}))
	return must(xds.NewGRPCServer(append(options, grpc.Creds(creds))...))
}

func newChannel(target string, more []string) *grpc.ClientConn {
	var creds credentials.TransportCredentials
	if len(more) > 0 {
		creds = files("client", more[0], more[1])
	} else {
		creds = must(xdscredentials.NewClientCredentials(
			xdscredentials.ClientOptions{FallbackCreds: insecure.NewCredentials()}))
	}
	return must(grpc.NewClient(target, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{}))))
}

func main() {
	words := os.Args[1:]
	serves := len(words) > 0 && words[0] == "serve"
	if serves {
		words = words[1:]
	}
	if len(words) != 1 && len(words) != 3 {
		log.Fatal("usage: grpcgo TARGET [FOLDER VERSION] | grpcgo serve ADDRESS [FOLDER VERSION]")
	}
	if serves {
		log.Fatal(newServer(words[1:]).Serve(must(net.Listen("tcp", words[0]))))
	}
	channel := newChannel(words[0], words[1:])
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var asked batch
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(must(json.Marshal(asked.run(channel)))))
	}
}
